"""A single run: the folder that `hopwise run` leaves."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from . import files
from .errors import LabError, shown
from .files import Json
from .series import Series

_WANTED = "a folder that hopwise run has written"


class Run:
    """The result of one run, its flows, its radios and what they did over time. These files have no checksums."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "run.json").exists() and (folder / "trial.json").exists():
            raise LabError(folder, f"it holds a trial, which load_trial loads; expected {_WANTED}")
        self.folder = folder
        #: `run.json`.
        self.result: Json = files.json_of(folder / "run.json", f"{_WANTED}, which has one")
        #: Every parameter in force.
        self.settings: Json = files.json_of(folder / "settings.json", f"{_WANTED}, which has one")
        #: A row for each flow.
        self.flows: pd.DataFrame = files.table(folder / "flows.csv", frozenset({"flow", "from", "to"}), _WANTED)
        self._check_flows()

    def __repr__(self) -> str:
        result = self.result
        return shown(f"Run({result['scenario']} in {result['world']}: arm {result['arm']}, seed {result['seed']})")

    @property
    def air(self) -> pd.DataFrame:
        """A row for each node's radio: frames by kind, drops, and the uses of its time."""
        return files.table(self.folder / "air.csv", frozenset({"node"}), "the radios of a run in virtual time (sim)")

    @property
    def series(self) -> Series:
        """The run over time, of `hopwise run --series`."""
        return Series.read(self.folder / "series.csv")

    def _check_flows(self) -> None:
        """Both files are of one run."""
        for member, kind in {"scenario": str, "world": str, "arm": str, "seed": int, "flows": list}.items():
            if not isinstance(self.result.get(member), kind):
                problem = f"no `{member}` as this package knows it; expected a run of hopwise 0.1"
                raise LabError(self.folder / "run.json", problem)
        ids = [flow.get("id") for flow in self.result["flows"]]
        if list(self.flows.get("flow", [])) != ids:
            raise LabError(self.folder / "flows.csv", f"its rows are not the flows in run.json; expected {ids}")


def load_run(folder: str | Path) -> Run:
    """Loads the run in a folder."""
    return Run(Path(folder))
