"""Folders that are not as they were written: each is refused with its place and what is expected."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hopwise_lab as lab
from hopwise_lab import seal


def refused(folder: Path, *wanted: str) -> None:
    with pytest.raises(lab.LabError) as caught:
        lab.load_trial(folder)
    for words in wanted:
        assert words in str(caught.value)


def edit(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    after = change(before)
    assert after != before
    path.write_text(after)


def resealed(text: str, change: Callable[[dict[str, object]], None]) -> str:
    """A record that another program wrote: changed, and with a checksum that holds."""
    record = json.loads(text)
    del record["sum"]
    change(record)
    body = json.dumps(record)[:-1]
    return f'{body},"sum":"{seal.digest(body)}"}}'


def test_a_record_that_an_editor_changed_is_refused_with_its_line(copy: Path) -> None:
    lines = (copy / "records.jsonl").read_text().split("\n")
    lines[4] = lines[4].replace('"goodput_kbps":', '"goodput_kbps":1', 1)
    (copy / "records.jsonl").write_text("\n".join(lines))
    refused(copy, "records.jsonl: line 5: it was changed since it was written", "run the trial again with --resume")


def test_each_byte_of_a_record_counts(chain: Path) -> None:
    line = (chain / "records.jsonl").read_text().split("\n")[0]
    assert seal.broken(line) is None
    assert seal.broken(line + "\n") is None, "the end of a line"
    for at in range(0, len(line), 7):
        changed = line[:at] + chr(ord(line[at]) ^ 1) + line[at + 1 :]
        assert seal.broken(changed) is not None, changed[at - 20 : at + 20]


def test_a_half_written_last_line_is_refused(copy: Path) -> None:
    edit(copy / "records.jsonl", lambda text: text[:-150])
    refused(copy, "records.jsonl: line 9: the file ends in the middle of it; expected whole lines")


def test_a_lost_checksum_is_refused(copy: Path) -> None:
    edit(copy / "records.jsonl", lambda text: text[: text.index(',"sum"')] + "}" + text[text.index("\n") :])
    refused(copy, "line 1: it has no checksum (`sum`): expected one")


def test_a_changed_plan_is_refused(copy: Path) -> None:
    edit(copy / "trial.json", lambda text: text.replace('"margin": 0.03', '"margin": 0.3'))
    refused(copy, "trial.json: it was changed since it was written")


def test_a_name_of_two_lines_or_directions_is_refused(copy: Path) -> None:
    for letter in ("\n", "\x9b", "\u202e"):
        changed = {
            "arms": [f"dca{letter}faster"],
            "points": [{f"hops{letter}": 4}],
            "scenario": f"chain{letter}",
            "version": f"0.1{letter}",
            "world": f"sim{letter}",
        }
        for member, value in changed.items():
            before = (copy / "trial.json").read_text()
            edit(copy / "trial.json", lambda text: resealed(text, lambda plan: plan.update({member: value})))
            refused(copy, f"trial.json: there is U+{ord(letter):04X} in a name; expected names of one line")
            (copy / "trial.json").write_text(before)


def test_an_error_does_not_steer_a_terminal(copy: Path) -> None:
    first, rest = (copy / "records.jsonl").read_text().split("\n", 1)
    for member in ("id", "arm"):
        forged = resealed(first, lambda record: record.update({member: "\x1b[2J\x9b31m\u202e\n"}))
        (copy / "records.jsonl").write_text(f"{forged}\n{rest}")
        with pytest.raises(lab.LabError) as caught:
            lab.load_trial(copy)
        assert "?[2J?31m??" in str(caught.value)
        assert str(caught.value).isprintable()


def test_a_changed_series_is_refused_when_it_is_read(copy: Path) -> None:
    trial = lab.load_trial(copy)
    record = next(record for record in trial.records if "series" in record)
    edit(copy / record["series"], lambda text: text.replace(",1\n", ",2\n", 1))
    with pytest.raises(lab.LabError, match="it was changed since it was written: its SHA-256 is another"):
        trial.series(record["arm"])


def test_a_table_that_a_spreadsheet_changed_is_refused(copy: Path) -> None:
    table = (copy / "records.csv").read_text().split("\n")
    head = table[0].split(",")

    def with_cell(name: str, value: str) -> None:
        cells = table[3].split(",")
        cells[head.index(name)] = value
        (copy / "records.csv").write_text("\n".join([*table[:3], ",".join(cells), *table[4:]]))

    with_cell("goodput_kbps", "1000")
    refused(copy, "records.csv: line 4, column goodput_kbps: 1000.0, and the record with the checksum has")
    with_cell("rtt_median_ms", "1000")
    refused(copy, "records.csv: the means of column rtt_median_ms are not those in summary.json")
    with_cell("timeouts", "")
    refused(copy, "records.csv: the means of column timeouts are not those in summary.json")
    with_cell("timeouts", "many")
    refused(copy, "records.csv: line 4, column timeouts: `many`; expected a number or an empty cell")
    (copy / "records.csv").write_text("\n".join([*table[:3], table[3].rpartition(",")[0], *table[4:]]))
    refused(copy, f"records.csv: line 4: {len(head) - 1} cells; expected {len(head)}")
    (copy / "records.csv").write_text("\n".join([*table[:3], table[4], table[3], *table[5:]]))
    refused(copy, "its rows are not the runs in records.jsonl")
    (copy / "records.csv").write_text("\n".join(table).rstrip("\n"))
    refused(copy, "line 10: it ends in the middle; expected a whole line")


def test_a_folder_that_is_no_trial_says_what_it_is(copy: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "trial.json: there is no such file; expected a folder that hopwise trial has written")
    refused(tmp_path / "nothing", "there is no such file; expected a folder that hopwise trial has written")
    refused(run, "it holds a single run, which load_run loads; expected a folder that hopwise trial has written")
    with pytest.raises(lab.LabError, match="it holds a trial, which load_trial loads"):
        lab.load_run(copy)
    with pytest.raises(lab.LabError, match="it holds the trial of one world, which load_trial loads"):
        lab.load_worlds(copy)
    (copy / "summary.json").unlink()
    refused(copy, "summary.json: there is no such file")


def test_another_version_is_named(copy: Path) -> None:
    whole = (copy / "records.jsonl").read_text()
    first, rest = whole.split("\n", 1)

    def later(record: dict[str, object]) -> None:
        record["outcome"] = record.pop("result")

    (copy / "records.jsonl").write_text(resealed(first, later) + "\n" + rest)
    refused(copy, "line 1: no `result` as this package knows it; hopwise 0.1.0+", "expected records of 0.1")

    def by_another(record: dict[str, object]) -> None:
        record["settings"] = {"hopwise": {"version": "0.0.9+abc"}}

    (copy / "records.jsonl").write_text(resealed(first, by_another) + "\n" + rest)
    refused(copy, "was made by hopwise 0.0.9+abc, and the trial by 0.1.0+", "runs of two versions are not mixed")

    def foreign(record: dict[str, object]) -> None:
        record["arm"] = "other"

    (copy / "records.jsonl").write_text(resealed(first, foreign) + "\n" + rest)
    refused(copy, "line 1: the run of `other` with seed 1 is no run of the trial in trial.json")


def test_parts_of_two_trials_are_not_joined(chain: Path, mixed: Path, parts: list[Path], tmp_path: Path) -> None:
    with pytest.raises(lab.LabError, match="`scenario` is mixed, and chain in .*; expected parts of one trial"):
        lab.load_trial(chain, mixed)
    other = Path(shutil.copytree(parts[1], tmp_path / "other"))
    first, rest = (other / "records.jsonl").read_text().split("\n", 1)

    def changed(record: dict[str, object]) -> None:
        settings = record["settings"]
        assert isinstance(settings, dict)
        settings["world"] = "elsewhere"

    (other / "records.jsonl").write_text(resealed(first, changed) + "\n" + rest)
    with pytest.raises(lab.LabError, match="has other settings than the run of"):
        lab.load_trial(parts[0], other)


def test_files_of_a_run_that_do_not_belong_together_are_refused(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    edit(folder / "flows.csv", lambda text: text.replace("\nf0,", "\nf9,"))
    with pytest.raises(lab.LabError, match=r"its rows are not the flows in run.json; expected \['f0'\]"):
        lab.load_run(folder)
    (folder / "run.json").write_text("[]")
    with pytest.raises(lab.LabError, match="expected a JSON object, not list"):
        lab.load_run(folder)
    (folder / "run.json").write_text('{\n"a": ')
    with pytest.raises(lab.LabError, match="run.json: no JSON at line 2, column"):
        lab.load_run(folder)


def series_of(copy: Path) -> tuple[str, Path]:
    """The arm of the first record with a series, and that file."""
    record = next(
        record for record in map(json.loads, (copy / "records.jsonl").read_text().splitlines()) if "series" in record
    )
    return record["arm"], copy / record["series"]


def test_links_and_special_files_are_not_read(copy: Path, tmp_path: Path) -> None:
    arm, series = series_of(copy)
    for name in ("trial.json", "records.jsonl", "records.csv", "summary.json", str(series.relative_to(copy))):
        path = copy / name
        kept = path.rename(tmp_path / "kept")
        for link in (kept, Path("/dev/zero")):
            path.symlink_to(link)
            with pytest.raises(lab.LabError, match="it is a link"):
                lab.load_trial(copy).series(arm)
            path.unlink()
        os.link(kept, path)
        with pytest.raises(lab.LabError, match="it is a hard link"):
            lab.load_trial(copy).series(arm)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(lab.LabError, match="a pipe or a device"):
            lab.load_trial(copy).series(arm)
        path.unlink()
        kept.rename(path)
    (copy / "series").rename(tmp_path / "series")
    (copy / "series").symlink_to(tmp_path / "series")
    with pytest.raises(lab.LabError, match="series: it is a link"):
        lab.load_trial(copy).series(arm)


def test_a_series_is_that_of_its_own_record(copy: Path) -> None:
    lines = (copy / "records.jsonl").read_text().split("\n")
    nth = next(nth for nth, line in enumerate(lines) if '"series"' in line)
    changes: list[tuple[str, object, str]] = [
        ("series", "/etc/passwd", "series is `/etc/passwd`; expected `series/"),
        ("series", "../../x.csv", "series is `../../x.csv`; expected `series/"),
        ("series_sum", None, "`series_sum` is missing; expected the SHA-256 of series/"),
        ("id", "../../x", "id is `../../x`; expected letters, digits and hyphens"),
    ]
    for name, value, wanted in changes:
        changed = resealed(lines[nth], lambda record: record.update({name: value}))
        (copy / "records.jsonl").write_text("\n".join([*lines[:nth], changed, *lines[nth + 1 :]]))
        refused(copy, f"records.jsonl: line {nth + 1}: ", wanted)


def test_a_world_is_a_folder_in_that_of_all_worlds(tmp_path: Path) -> None:
    for world in ("/etc", "../x", ".."):
        (tmp_path / "agreement.json").write_text(json.dumps({"worlds": [world], "points": []}))
        with pytest.raises(lab.LabError, match="leads out of the folder"):
            lab.load_worlds(tmp_path)
