"""Units come from names alone; the book's words about each column agree."""

from __future__ import annotations

import re
from pathlib import Path

import hopwise_lab as lab
from conftest import ROOT

_SAID = {"in kbit/s": "kbit/s", "in ms": "ms", "in s": "s"}
#: These say their unit by the row that they refer to.
_BY_REFERENCE = {"completion_median_s", "data_airtime_s", "ack_airtime_s"}


def book() -> dict[str, str]:
    """The columns that `docs/data.md` explains, with its words."""
    text = (ROOT / "docs/data.md").read_text()
    table = text.split("| column | meaning |\n")[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))


def test_each_column_of_a_trial_stands_in_the_book_and_each_of_the_book_in_a_trial(chain: Path) -> None:
    trial = lab.load_trial(chain)
    runs = trial.runs
    named = ["id", "scenario", *trial.arm_paths, "arm", "seed", "block", "counted_s"]
    assert [name for name in runs.columns if name not in named] == list(book())


def test_units_of_names_are_those_that_the_book_says() -> None:
    for name, words in book().items():
        said = {unit for mark, unit in _SAID.items() if re.search(rf"{mark}\b", words)}
        if name not in _BY_REFERENCE:
            assert {lab.unit(name)} - {""} == said, f"{name}: {words}"
    assert {lab.unit(name) for name in _BY_REFERENCE} == {"s"}


def test_paths_of_a_matrix_and_lines_of_a_series_have_units() -> None:
    units = [
        "topology.spacing_m",
        "radio.queue_packets",
        "topology.hops",
        "airtime:idle",
        "frame:data",
        "cwnd_segments",
    ]
    assert [lab.unit(name) for name in units] == ["m", "packets", "", "s", "µs", "segments"]
