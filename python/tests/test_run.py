"""A single run."""

from __future__ import annotations

from pathlib import Path

import pytest

import hopwise_lab as lab


def test_a_run_has_its_result_flows_radios_and_series(run: Path) -> None:
    loaded = lab.load_run(run)
    assert repr(loaded) == "Run(chain in sim: arm every, seed 1)"
    assert loaded.flows["goodput_kbps"].sum() == pytest.approx(loaded.result["total"]["goodput_kbps"], abs=1e-3)
    assert loaded.flows["completed"].isna().all()
    assert loaded.air["airtime_s"].sum() == pytest.approx(loaded.result["air"]["airtime_s"], abs=1e-4)
    assert loaded.air["node"].tolist() == [f"n{nth}" for nth in range(9)]
    assert loaded.settings["topology"]["hops"] == 8
    assert {"what", "who", "changes"} == set(loaded.series.lines.columns)


def test_a_run_without_a_series_says_how_to_get_one(run: Path, tmp_path: Path) -> None:
    for name in ("run.json", "settings.json", "flows.csv"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    loaded = lab.load_run(tmp_path)
    with pytest.raises(lab.LabError, match="series.csv: there is no such file; expected .*`hopwise run --series`"):
        _ = loaded.series
    with pytest.raises(lab.LabError, match=r"air.csv: there is no such file; .* virtual time \(sim\)"):
        _ = loaded.air
