"""One trial in several worlds: the folder that `hopwise trial --world sim,netns` leaves."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from . import files, records
from .errors import LabError, shown
from .files import Json
from .trial import Trial, load_trial

_WANTED = "a folder that hopwise trial has written for several worlds"


class Worlds:
    """The trial of each world, and whether the worlds agree."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "agreement.json").exists() and (folder / "trial.json").exists():
            raise LabError(folder, f"it holds the trial of one world, which load_trial loads; expected {_WANTED}")
        self.folder = folder
        #: `agreement.json`; it has no checksum.
        self.agreement: Json = files.json_of(folder / "agreement.json", f"{_WANTED}, which has one")
        for member in ("worlds", "points"):
            if not isinstance(self.agreement.get(member), list):
                path = folder / "agreement.json"
                raise LabError(path, f"no list `{member}`; expected an agreement as hopwise 0.1 writes it")
        #: The trials by world, the reference first.
        self.trials: dict[str, Trial] = {
            world: load_trial(files.below(folder, str(world), "trial.json").parent)
            for world in self.agreement["worlds"]
        }

    def __repr__(self) -> str:
        return shown(f"Worlds({self.agreement.get('scenario')} in {', '.join(self.trials)})")

    @property
    def runs(self) -> pd.DataFrame:
        """The runs of all worlds, with a column `world` in front."""
        frames = []
        for world, trial in self.trials.items():
            named = pd.Series(world, index=trial.runs.index, dtype="string")
            frames.append(trial.runs.assign(world=named).dropna(axis="columns", how="all"))
        joined = pd.concat(frames, ignore_index=True)
        heads = list(dict.fromkeys(name for trial in self.trials.values() for name in trial.runs.columns))
        return joined.reindex(columns=["world", *heads])

    @property
    def compared(self) -> pd.DataFrame:
        """A row for each point, arm and world.

        `mean`, `low` and `high` are of goodput in kbit/s. `ratio` with `ratio_low`, `ratio_high` and `verdict` is
        against the first world that ran the arm; its own row has none. The other columns are means of what was
        measured beside it.
        """
        rows = []
        for at in self.agreement["points"]:
            for of_arm in at["arms"]:
                comparisons = [{}, *of_arm["comparisons"]]
                for measured, comparison in zip(of_arm["worlds"], comparisons):
                    point = {path: records.plain(value) for path, value in at["point"].items()}
                    rows.append({**point, "arm": of_arm["arm"], **_row(measured, comparison)})
        return pd.DataFrame(rows)


def _row(measured: Json, comparison: Json) -> Json:
    goodput = measured.get("goodput_kbps") or {}
    low, high = goodput.get("ci95") or (math.nan, math.nan)
    ratio_low, ratio_high = comparison.get("ci95") or (math.nan, math.nan)
    return {
        "world": measured["world"],
        "mean": goodput.get("mean", math.nan),
        "low": low,
        "high": high,
        "n": goodput.get("n", 0),
        "ratio": comparison.get("ratio", math.nan),
        "ratio_low": ratio_low,
        "ratio_high": ratio_high,
        "verdict": comparison.get("verdict"),
        **measured["beside"],
    }


def load_worlds(folder: str | Path) -> Worlds:
    """Loads the trials of several worlds, and what compares them."""
    return Worlds(Path(folder))
