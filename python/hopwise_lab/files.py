"""Reading files, with errors that name the file, the line and what is expected."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from . import seal
from .errors import LabError

Json = dict[str, Any]


#: No file of a trial or a run comes near this.
_LARGEST = 1 << 30
# A link in somebody else's folder leads out of it, and a pipe is waited for. Not all systems have both.
_CAREFUL = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def below(folder: Path, *names: str) -> Path:
    """A path below a folder of a trial, in which no folder on the way is a link."""
    path = folder
    for name in names:
        if path != folder and path.is_symlink():
            raise LabError(path, "it is a link, and links are not followed below a trial's folder; expected a folder")
        if name in ("", ".", "..") or Path(name).name != name:
            raise LabError(folder, f"`{name}` leads out of the folder; expected the name of something in it")
        path = path / name
    return path


def text_of(path: Path, wanted: str) -> str:
    """The text of a regular file that is no link; `wanted` says what is expected where there is none."""
    if path.is_symlink():
        raise LabError(path, f"it is a link, and links are not followed here; expected {wanted}")
    try:
        with open(os.open(path, _CAREFUL), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise LabError(path, f"it is a folder, a pipe or a device; expected {wanted}")
            if facts.st_nlink > 1:
                raise LabError(path, f"it is a hard link, a file with several names; expected {wanted}")
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise LabError(path, f"it has more than {_LARGEST >> 20} MiB; expected {wanted}")
        return text.decode()
    except FileNotFoundError:
        raise LabError(path, f"there is no such file; expected {wanted}") from None
    except UnicodeDecodeError as error:
        raise LabError(path, f"it is not UTF-8 ({error}); expected {wanted}") from None
    except OSError as error:
        raise LabError(path, f"{error.strerror}; expected {wanted}") from None


def object_in(path: Path, text: str, line: int = 0) -> Json:
    """The JSON object that a text is; `line` is its line in the file, 0 for a whole file."""
    place = f"line {line}: " if line else ""
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if line else f"line {error.lineno}, column {error.colno}"
        raise LabError(path, f"{place}no JSON at {at} ({error.msg}); expected one whole object") from None
    except (RecursionError, ValueError) as error:
        raise LabError(path, f"{place}no JSON of ours ({error}); expected one whole object") from None
    if not isinstance(value, dict):
        raise LabError(path, f"{place}expected a JSON object, not {type(value).__name__}")
    return value


def json_of(path: Path, wanted: str) -> Json:
    """The object in a file without a checksum."""
    return object_in(path, text_of(path, wanted))


def sealed_json_of(path: Path, wanted: str) -> Json:
    """The object in a file with a checksum."""
    text = text_of(path, wanted)
    problem = seal.broken(text)
    if problem is not None:
        raise LabError(path, f"{problem}; {seal.AGAIN}")
    return object_in(path, text)


def sealed_lines(path: Path, wanted: str) -> Iterator[tuple[int, Json]]:
    """The objects in a file with one a line, each with a checksum; lines count from 1."""
    whole = text_of(path, wanted)
    # Not `splitlines`: JSON may hold other marks that end a line for it.
    lines = whole.split("\n")
    for line, text in enumerate(lines, start=1):
        if text.strip():
            problem = seal.broken(text)
            if problem is not None and line == len(lines):
                problem = "the file ends in the middle of it; expected whole lines"
            if problem is not None:
                raise LabError(path, f"line {line}: {problem}; {seal.AGAIN}")
            yield line, object_in(path, text, line)


def table(path: Path, texts: frozenset[str], wanted: str) -> pd.DataFrame:
    """A CSV file: the columns in `texts` are text, all others numbers, and an empty cell is NaN."""
    return parsed(path, text_of(path, wanted), texts)


def parsed(path: Path, text: str, texts: frozenset[str]) -> pd.DataFrame:
    """The table that a text is; see `table`."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[list[Any]] = []
    heads: list[str] = []
    try:
        heads = next(rows, [])
        columns = [[] for _ in heads]
        for row in rows:
            if len(row) != len(heads):
                problem = f"line {rows.line_num}: {len(row)} cells; expected {len(heads)}, as in the first line"
                raise LabError(path, problem)
            for head, cells, cell in zip(heads, columns, row):
                cells.append(cell if head in texts else _number(path, rows.line_num, head, cell))
    except csv.Error as error:
        raise LabError(path, f"line {rows.line_num}: {error}; expected a row of CSV") from None
    if not text.endswith("\n"):
        raise LabError(path, f"line {rows.line_num}: it ends in the middle; expected a whole line")
    data = {head: _column(head in texts, cells) for head, cells in zip(heads, columns)}
    return pd.DataFrame(data, columns=heads)


def _column(is_text: bool, cells: list[Any]) -> pd.Series[Any]:
    return pd.Series(cells, dtype="string" if is_text else "float64")


def _number(path: Path, line: int, head: str, cell: str) -> float:
    if cell == "":
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise LabError(path, f"line {line}, column {head}: `{cell}`; expected a number or an empty cell")
    return number
