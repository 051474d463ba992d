"""The one error of this package."""

from __future__ import annotations

from pathlib import Path


class LabError(ValueError):
    """Says where something is wrong, what it is, and what would be accepted."""

    def __init__(self, place: str | Path, problem: str) -> None:
        self.place = str(place)
        self.problem = problem
        super().__init__(f"{place}: {problem}")
