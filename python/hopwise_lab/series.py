"""A run over time: what a flow, a node or a link had at each instant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from . import files, seal
from .errors import LabError, shown

_TEXTS = frozenset({"what", "who"})
_COLUMNS = ["what", "who", "at_s", "value"]


class Series:
    """A row for each change: `what`, `who`, `at_s` since the first flow began, and `value`."""

    def __init__(self, path: Path, rows: pd.DataFrame) -> None:
        self.path = path
        #: All rows. A value that was unknown from then on, such as the threshold of slow start at first, is NaN.
        self.rows = rows

    @staticmethod
    def read(path: Path, digest: str | None = None) -> Series:
        """Reads a file; one with another SHA-256 than `digest` is refused."""
        text = files.text_of(path, "the series of a run; `hopwise run --series` writes one")
        if digest is not None and seal.digest(text) != digest:
            raise LabError(path, f"it was changed since it was written: its SHA-256 is another; {seal.AGAIN}")
        rows = files.parsed(path, text, _TEXTS)
        if list(rows.columns) != _COLUMNS:
            raise LabError(path, f"line 1: the columns are {list(rows.columns)}; expected {_COLUMNS}")
        return Series(path, rows)

    def __repr__(self) -> str:
        return shown(f"Series({self.path.name}: {len(self.rows)} rows)")

    @property
    def lines(self) -> pd.DataFrame:
        """The lines that there are: `what`, `who`, and the number of changes."""
        return self.rows.groupby(["what", "who"], sort=False).size().rename("changes").reset_index()

    def line(self, what: str, who: str) -> pd.Series[Any]:
        """A line by seconds, such as `line("cwnd_segments", "f0")`. A value holds until the next one."""
        rows = self.rows[(self.rows["what"] == what) & (self.rows["who"] == who)].sort_values("at_s", kind="stable")
        if rows.empty:
            there = self.rows[self.rows["what"] == what]["who"].unique().tolist()
            known = f"{what} of {', '.join(there)}" if there else ", ".join(self.rows["what"].unique())
            raise LabError(self.path, f"there is no {what} of {who}; expected {known}")
        return pd.Series(rows["value"].to_numpy(), index=pd.Index(rows["at_s"].to_numpy(), name="at_s"), name=what)

    @property
    def lasts_s(self) -> float:
        """The last instant with a sample."""
        return float(self.rows["at_s"].max())

    def rate_kbps(self, who: str, every_s: float = 5.0, what: str = "acked_bytes") -> pd.Series[Any]:
        """The rate in kbit/s at which a count of bytes grew, by the end of each stretch of `every_s` seconds."""
        if not every_s > 0.0:
            raise LabError(self.path, f"every_s is {every_s}; expected a time above 0")
        line = self.line(what, who)
        line = line[~line.index.duplicated(keep="last")]
        ends = pd.Index([nth * every_s for nth in range(int(self.lasts_s / every_s + 1e-9) + 1)], name="at_s")
        held = line.reindex(line.index.union(ends)).ffill().fillna(0.0).reindex(ends)
        return (held.diff().dropna() * 8.0 / 1000.0 / every_s).rename("kbit/s")
