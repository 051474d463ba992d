"""Several worlds: trials beside an agreement of the shape that `lab/src/agreement.rs` writes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import hopwise_lab as lab


@pytest.fixture
def worlds(chain: Path, tmp_path: Path) -> Path:
    """The same trial under two names: real time takes root, which a test of Python has not."""
    for world in ("sim", "netns"):
        shutil.copytree(chain, tmp_path / world)
    trial = lab.load_trial(chain)
    goodput = trial.means("goodput_kbps").set_index("arm")

    def of_arm(arm: str) -> dict[str, object]:
        row = goodput.loc[arm]
        summary = {"mean": row["mean"], "ci95": [row["low"], row["high"]], "n": int(row["n"])}
        measured = [
            {"world": "sim", "goodput_kbps": summary, "beside": {"timeouts": 0.5}},
            {"world": "netns", "goodput_kbps": None, "beside": {"timeouts": 0.0, "rtt_ms": 487.5}},
        ]
        comparison = {"arm": f"{arm} in netns", "against": f"{arm} in sim", "blocks": 3, "ratio": 1.0}
        return {
            "arm": arm,
            "worlds": measured,
            "comparisons": [{**comparison, "ci95": [0.99, 1.01], "verdict": "no difference"}],
        }

    points = [{"point": {}, "arms": [of_arm(arm) for arm in trial.arms], "orders": [], "contradictions": []}]
    agreement = {"scenario": "chain", "worlds": ["sim", "netns"], "within": 0.05, "points": points}
    (tmp_path / "agreement.json").write_text(json.dumps(agreement) + "\n")
    return tmp_path


def test_worlds_have_their_trials_and_what_compares_them(worlds: Path) -> None:
    loaded = lab.load_worlds(worlds)
    assert list(loaded.trials) == ["sim", "netns"]
    assert len(loaded.runs) == 18
    assert loaded.runs["completion_s"].isna().all()
    assert list(loaded.runs.columns) == ["world", *loaded.trials["sim"].runs.columns]
    compared = loaded.compared
    assert compared["world"].tolist() == ["sim", "netns"] * 3
    assert compared["ratio"].isna().tolist() == [True, False] * 3
    assert compared["verdict"].tolist()[1] == "no difference"
    assert compared["rtt_ms"].isna().tolist() == [True, False] * 3
    assert compared["mean"].isna().tolist() == [False, True] * 3


def test_a_world_that_is_gone_is_named(worlds: Path) -> None:
    shutil.rmtree(worlds / "netns")
    with pytest.raises(lab.LabError, match=r"netns.trial.json: there is no such file"):
        lab.load_worlds(worlds)
    with pytest.raises(lab.LabError, match="it holds several worlds, which load_worlds loads"):
        lab.load_trial(worlds)
    (worlds / "agreement.json").write_text("{}")
    with pytest.raises(lab.LabError, match="no list `worlds`; expected an agreement"):
        lab.load_worlds(worlds)
