"""A trial as it is on disk: every cell, every mean and every comparison is the laboratory's own."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pandas as pd
import pytest

import hopwise_lab as lab
from conftest import hopwise


def test_runs_are_the_cells_of_records_csv_and_an_empty_one_is_nan(mixed: Path) -> None:
    runs = lab.load_trial(mixed).runs
    with (mixed / "records.csv").open(newline="") as file:
        head, *rows = list(csv.reader(file))
    assert list(runs.columns) == head
    assert len(runs) == len(rows) == 27
    by_id = {row[0]: row for row in rows}
    empty = set()
    for _, run in runs.iterrows():
        for name, cell in zip(head, by_id[run["id"]]):
            if cell == "":
                empty.add(name)
                assert math.isnan(run[name]), name
            elif isinstance(run[name], str):
                assert run[name] == cell
            else:
                assert float(run[name]) == float(cell), name
    no_probe = {"probe_median_ms", "probe_p95_ms", "probe_loss"}
    no_datagrams = {f"datagram_{name}" for name in ("loss", "jitter_ms")}
    no_datagrams |= {f"datagram_delay{name}_ms" for name in ("", "_median", "_p95", "_error")}
    no_fq_codel = {"codel_drops", "ce_marks"}
    no_aggregates = {"reorder_timeouts", "reorder_late"}
    no_mesh = {"station_retries", "station_failures", "channel_busy"}
    expected = {"rtt_ms"} | no_probe | no_datagrams | no_fq_codel | no_aggregates | no_mesh
    assert empty == expected, "a sim of bulk flows alone, with queues that are FIFOs"


def test_a_path_that_an_arm_sets_is_a_column_of_runs_and_flows(chain: Path) -> None:
    trial = lab.load_trial(chain)
    assert trial.arm_paths == ["radio.queue_packets"]
    for rows in (trial.runs, trial.flows):
        of_arms = {arm: list(cells.unique()) for arm, cells in rows.groupby("arm")["radio.queue_packets"]}
        assert of_arms == {"every": [50], "delayed": [50], "shallow": [5]}
    with pytest.raises(lab.LabError):
        trial.means("radio.queue_packets")


def test_a_figure_that_no_run_knows_is_nan_and_never_zero(chain: Path) -> None:
    trial = lab.load_trial(chain)
    assert trial.runs["completion_s"].isna().all()
    assert trial.flows["rtt_median_ms"].notna().all()
    means = trial.means("completion_s")
    assert means["n"].tolist() == [0, 0, 0]
    assert means["mean"].isna().all()
    columns = lab.columns(trial.runs)
    assert columns.loc["completion_s", "missing"] == 9
    assert columns.loc["goodput_kbps", "unit"] == "kbit/s"


def test_columns_have_sensible_types(mixed: Path) -> None:
    types = lab.load_trial(mixed).runs.dtypes.astype(str)
    assert types["id"] == types["arm"] == "string"
    assert types["seed"] == "uint64"
    assert types["block"] == types["topology.hops"] == "int64"
    rest = types.drop(["id", "scenario", "arm", "seed", "block", "topology.hops", "radio.queue_packets"])
    assert set(rest) == {"float64"}


@pytest.mark.parametrize("name", ["mixed", "chain"])
def test_every_mean_and_interval_is_that_of_the_summary(name: str, request: pytest.FixtureRequest) -> None:
    trial = lab.load_trial(request.getfixturevalue(name))
    theirs = trial.summaries
    assert theirs["figure"].nunique() > 20
    for figure, rows in theirs.groupby("figure"):
        ours = trial.means(str(figure))
        ours = ours[ours["n"] > 0].reset_index(drop=True)
        expected = rows[ours.columns].reset_index(drop=True)
        pd.testing.assert_frame_equal(ours, expected, rtol=1e-9, atol=1e-9, check_dtype=False)


@pytest.mark.parametrize("name", ["mixed", "chain"])
def test_comparisons_are_those_that_the_trial_printed(name: str, request: pytest.FixtureRequest) -> None:
    trial = lab.load_trial(request.getfixturevalue(name))
    ours, theirs = trial.compare("goodput_kbps"), trial.verdicts
    assert len(ours) == len(trial.points) * (len(trial.arms) - 1)
    if "figure" in theirs.columns:  # Comparisons of goodput name no figure.
        theirs = theirs[theirs["figure"].isna()].reset_index(drop=True)
    assert set(theirs["verdict"]) <= {"faster", "slower", "no difference", "undecided"}
    pd.testing.assert_frame_equal(ours, theirs[ours.columns], rtol=1e-7, atol=1e-9, check_dtype=False)


def test_pairs_are_runs_of_one_block(chain: Path) -> None:
    trial = lab.load_trial(chain)
    # A baseline whose blocks have other names is another pairing: two of three blocks have no partner.
    moved = trial.runs.copy()
    moved.loc[moved["arm"] == "every", "block"] += 2
    assert trial.compare(runs=moved)["blocks"].tolist() == [1, 1]
    # The order of the rows is none of it.
    pd.testing.assert_frame_equal(trial.compare(runs=trial.runs[::-1]), trial.compare())


def test_differences_are_in_the_unit_of_the_figure(chain: Path) -> None:
    trial = lab.load_trial(chain)
    wide = trial.runs.pivot_table(index="block", columns="arm", values="timeouts")
    found = trial.compare("timeouts", by="difference").set_index("arm")
    for arm in ("delayed", "shallow"):
        each = wide[arm] - wide["every"]
        assert found.loc[arm, "difference"] == pytest.approx(each.mean())
        half = 4.302652729749464 * each.std(ddof=1) / math.sqrt(3)
        assert found.loc[arm, "high"] - found.loc[arm, "low"] == pytest.approx(2 * half)
    against = trial.compare(against="shallow")
    assert against["arm"].tolist() == ["every", "delayed"]


def test_a_block_of_zero_has_no_ratio_and_says_what_has(chain: Path) -> None:
    trial = lab.load_trial(chain)
    dead = trial.runs.copy()
    dead.loc[(dead["arm"] == "delayed") & (dead["block"] == 2), "goodput_kbps"] = 0.0
    with pytest.raises(lab.LabError, match=r'goodput_kbps of delayed or every is 0 .* expected by="difference"'):
        trial.compare(runs=dead)
    assert trial.compare(by="difference", runs=dead)["blocks"].tolist() == [3, 3]


def test_a_part_of_the_runs_has_the_points_and_arms_that_are_in_it(mixed: Path) -> None:
    trial = lab.load_trial(mixed)
    some = trial.runs[(trial.runs["topology.hops"] == 2) & (trial.runs["arm"] != "dca")]
    assert trial.means("jain", some)[["topology.hops", "arm"]].to_numpy().tolist() == [[2, "delayed"], [2, "every"]]


def test_flows_have_the_names_of_flows_csv(mixed: Path, chain: Path, run: Path) -> None:
    single = lab.load_run(run)
    flows = lab.load_trial(chain).flows
    first = flows[(flows["arm"] == "every") & (flows["block"] == 1)].iloc[0]
    for name in single.flows.columns:
        if name in flows.columns:
            cell = single.flows[name].iloc[0]
            assert first[name] == (cell if isinstance(cell, str) else pytest.approx(cell, abs=1e-3)), name
    # The columns of a table are always there, the members of an object where the run knows them.
    absent = set(single.flows.columns) - set(flows.columns)
    assert single.flows[sorted(absent)].isna().all(axis=None)
    of_mixed = lab.load_trial(mixed).flows
    assert absent >= {"completed", "completion_s", "completion_median_s", "completion_p95_s"}
    assert set(single.flows.columns) - set(of_mixed.columns) <= {"rtt_ms"}
    assert of_mixed["background"].any()
    assert not of_mixed["background"].all()
    assert "newreno tell-cwnd" in set(of_mixed["sender"])


def test_series_are_of_the_run_that_was_asked_for(mixed: Path, chain: Path, run: Path) -> None:
    trial = lab.load_trial(chain)
    ours, theirs = trial.series("every"), lab.load_run(run).series
    pd.testing.assert_series_equal(ours.line("acked_bytes", "f0"), theirs.line("acked_bytes", "f0"))
    rate = ours.rate_kbps("f0", every_s=5)
    assert rate.index.tolist() == [5.0, 10.0, 15.0, 20.0]
    last = ours.line("acked_bytes", "f0").iloc[-1]
    assert rate.sum() * 5 * 1000 / 8 == pytest.approx(last)
    assert ours.line("ssthresh_segments", "f0").notna().any()
    with pytest.raises(lab.LabError, match="there is no cwnd_segments of f7; expected cwnd_segments of f0"):
        ours.line("cwnd_segments", "f7")
    with pytest.raises(lab.LabError, match=r"has no series; expected a seed that has one: \[1\]"):
        trial.series("every", seed=2)
    with pytest.raises(lab.LabError, match="several points; expected one of"):
        lab.load_trial(mixed).series("dca")
    point = {"radio.queue_packets": 50, "topology.hops": 2}
    assert lab.load_trial(mixed).series("dca", point).lasts_s == pytest.approx(20.0)


def test_settings_are_all_that_were_in_force(mixed: Path) -> None:
    trial = lab.load_trial(mixed)
    settings = trial.settings("dca", {"radio.queue_packets": 10, "topology.hops": 4})
    assert settings["topology"]["hops"] == 4
    assert settings["radio"]["queue_packets"] == 10
    assert settings["arm"]["receiver"] == "dca"


def test_parts_make_up_the_whole(parts: list[Path], chain: Path) -> None:
    joined = lab.load_trial(*parts)
    whole = lab.load_trial(chain)
    assert lab.load_trial(parts[0]).missing > 0
    assert joined.missing == whole.missing == 0
    pd.testing.assert_frame_equal(joined.runs, whole.runs)
    pd.testing.assert_frame_equal(joined.compare(), whole.compare())
    with pytest.raises(lab.LabError, match="in parts; expected a finished trial in one folder"):
        _ = joined.verdicts
    with pytest.raises(lab.LabError, match="expected each run once"):
        lab.load_trial(chain, parts[0])


def test_a_trial_that_stopped_when_sure_has_no_ordinary_interval(tmp_path: Path) -> None:
    sure = ["--set", "run.stop=when-sure", "--set", "run.duration=10s", "--set", "run.warmup=2s", "--seeds", "4"]
    hopwise("trial", "configs/chain.yaml", *sure, "--out", tmp_path)
    trial = lab.load_trial(tmp_path)
    assert len(trial.verdicts) == 4  # two arms by two figures
    with pytest.raises(lab.LabError, match="stopped when it was sure"):
        trial.compare()


def test_unfinished_trials_are_loaded_as_far_as_they_came_when_asked(copy: Path) -> None:
    (copy / "records.jsonl").unlink()
    gone, *_ = sorted((copy / "runs").glob("*.json"))
    gone.write_text(gone.read_text()[:200])
    with pytest.raises(lab.LabError, match="has not finished, 8 of its runs have; .*unfinished=True"):
        lab.load_trial(copy)
    trial = lab.load_trial(copy, unfinished=True)
    assert (len(trial.runs), trial.missing) == (8, 1)
    assert trial.runs["goodput_kbps"].notna().all()
    assert "1 missing" in repr(trial)
    assert sorted(trial.compare()["blocks"]) in ([2, 2], [2, 3])


def test_numbers_and_texts_of_a_matrix_are_columns(tmp_path: Path) -> None:
    matrix = "matrix={radio.queue_packets: [5, 50], mac.rules: [standard, ns2]}"
    short = ["--set", "run.duration=5s", "--set", "run.warmup=1s", "--seeds", "2", "--set", "topology.hops=2"]
    hopwise("trial", "configs/quickstart.yaml", *short, "--set", matrix, "--out", tmp_path)
    trial = lab.load_trial(tmp_path)
    assert trial.runs["mac.rules"].dtype == "string"
    assert set(trial.runs["mac.rules"]) == {value["mac.rules"] for value in trial.points}
    assert len(trial.compare()) == 5 * 4
    assert json.loads((tmp_path / "summary.json").read_text())["points"][0]["point"] in trial.points


def test_questions_about_nothing_say_what_there_is(chain: Path) -> None:
    trial = lab.load_trial(chain)
    with pytest.raises(lab.LabError, match="figure `goodput` is not there; expected one of counted_s, goodput_kbps"):
        trial.means("goodput")
    with pytest.raises(lab.LabError, match="arm `fast` is not there; expected one of every, delayed, shallow"):
        trial.compare(against="fast")
    with pytest.raises(lab.LabError, match="is no point of the trial"):
        trial.settings("every", {"topology.hops": 3})
