"""Scenarios that Python writes, and a receiver agent in Python."""

from __future__ import annotations

import sys
from pathlib import Path

import hopwise_lab as lab
import pytest
from conftest import command

SCENARIO = {
    "title": "an agent in Python",
    "world": "sim",
    "topology": {"kind": "chain", "hops": 3, "spacing_m": 200},
    "radio": {"profile": "dsss-11mbps"},
    "traffic": [{"from": "first", "to": "last", "kind": "bulk", "segment_bytes": 1000}],
    "arms": {
        "ours": {"receiver": "delayed:d=4,hold=100ms", "sender": ["newreno"]},
        "python": {"receiver": "program:4", "sender": ["newreno"]},
    },
    "run": {"duration": "10s", "warmup": "2s", "seeds": 2},
}

DELAYED = """
from hopwise_lab.agent import ACK, join, serve, value

def delayed(segment):
    if segment["class"] != "in-order" or segment["owed_segments"] >= value():
        return ACK
    return join(0.1)

serve(delayed)
"""


def program(folder: Path, text: str) -> Path:
    file = folder / "agent.py"
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(0o755)
    return file


def test_the_rule_of_delayed_in_python_carries_what_ours_does(tmp_path: Path) -> None:
    trial = lab.run_trial(SCENARIO, tmp_path / "trial", agent=program(tmp_path, DELAYED), hopwise=command())
    runs = trial.runs.pivot(index="seed", columns="arm", values="goodput_kbps")
    assert len(runs) == 2
    assert (runs["ours"] == runs["python"]).all(), runs


def test_results_of_two_drafts_are_not_mixed(tmp_path: Path) -> None:
    agent = program(tmp_path, DELAYED)
    trial = lab.run_trial(SCENARIO, tmp_path / "trial", agent=agent, hopwise=command())
    program(tmp_path, DELAYED + "\n# Another draft.\n")
    with pytest.raises(lab.LabError, match="choose another --out"):
        lab.run_trial(SCENARIO, trial.folders[0], "--resume", agent=agent, hopwise=command())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('nonsense', flush=True)", "it answered \"nonsense\\n\": expected `ack`, or `hold MS`"),
        ("print('hold 491', flush=True)", "milliseconds from 0 to 490"),
        ("raise SystemExit(3)", "agent.py: it ended (exit status: 3)"),
    ],
)
def test_a_program_that_fails_ends_the_command(tmp_path: Path, text: str, said: str) -> None:
    agent = program(tmp_path, f"input()\n{text}\ninput()\n")
    with pytest.raises(lab.LabError) as error:
        lab.run_scenario(SCENARIO, tmp_path / "run", "--arm", "python", agent=agent, hopwise=command())
    assert said in str(error.value)


def test_a_scenario_that_is_wrong_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(lab.LabError, match="wrold"):
        lab.run_scenario({**SCENARIO, "wrold": "sim"}, tmp_path / "run", hopwise=command())
    with pytest.raises(lab.LabError, match="expected a program's file"):
        lab.run_scenario(SCENARIO, tmp_path / "run", agent=tmp_path / "none.py", hopwise=command())
    with pytest.raises(lab.LabError, match="no receiver agent is called `program`"):
        lab.run_scenario(SCENARIO, tmp_path / "run", "--arm", "python", hopwise=command())
