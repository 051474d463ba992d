"""The one error of this package, and how it and others show what somebody else's file says."""

from __future__ import annotations

import re
from pathlib import Path

#: Letters that no name has: they would begin a line, steer a terminal, or turn the text behind them.
FOREIGN = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown(text: str) -> str:
    """The text for a terminal: such a letter is a question mark."""
    return FOREIGN.sub("?", text)


class LabError(ValueError):
    """Says where something is wrong, what it is, and what would be accepted."""

    def __init__(self, place: str | Path, problem: str) -> None:
        self.place = str(place)
        self.problem = problem
        super().__init__(shown(f"{place}: {problem}"))
