"""Units of columns. Their names end with them, so names come from the data alone; `docs/data.md` explains each one."""

from __future__ import annotations

import re

import pandas as pd

_UNITS = {
    "kbps": "kbit/s",
    "mbps": "Mbit/s",
    "s": "s",
    "ms": "ms",
    "us": "µs",
    "m": "m",
    "db": "dB",
    "bytes": "bytes",
    "packets": "packets",
    "segments": "segments",
}
#: The beginnings of a series' `what` that say its unit.
_KINDS = {"airtime": "s", "frame": "µs", "lost": "µs", "stretch": "µs"}


def unit(name: str) -> str:
    """The unit of a column, of a path or of what a series holds; empty for numbers without one."""
    kind = name.partition(":")[0]
    return _KINDS.get(kind) or _UNITS.get(re.split(r"[_.]", name)[-1], "")


def columns(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for each column of a frame: its unit, its type, and the number of rows that do not know it."""
    return pd.DataFrame(
        {
            "unit": [unit(str(name)) for name in frame.columns],
            "dtype": [str(dtype) for dtype in frame.dtypes],
            "missing": [int(frame[name].isna().sum()) for name in frame.columns],
        },
        index=pd.Index(frame.columns, name="column"),
    )
