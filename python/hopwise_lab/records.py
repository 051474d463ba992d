"""Records of runs as tables: a row for each run, and a row for each flow."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from . import files
from .errors import LabError
from .files import Json

#: The columns of `records.csv` that are text, besides those of paths.
TEXTS = frozenset({"id", "scenario", "arm"})
_MEMBERS = {"id": str, "scenario": str, "point": dict, "arm": str, "seed": int, "block": int, "result": dict}
_PARTS = {"total": dict, "air": dict, "flows": list}
#: The names that `flows.csv` has for members of a flow's objects.
_NAMES = {
    "id": "flow",
    "round_trips.median_ms": "rtt_median_ms",
    "round_trips.p95_ms": "rtt_p95_ms",
    "round_trips.p99_ms": "rtt_p99_ms",
    "completed.count": "completed",
    "completed.mean_s": "completion_s",
    "completed.median_s": "completion_median_s",
    "completed.p95_s": "completion_p95_s",
    "completed.longest_s": "completion_longest_s",
}


def check_shape(path: Path, line: int, record: Json, version: str) -> None:
    """Refuses a record without what each one has."""
    result = record.get("result")
    for holder, members, place in ((record, _MEMBERS, ""), (result, _PARTS, "result.")):
        for name, kind in members.items():
            if not isinstance(holder, dict) or not isinstance(holder.get(name), kind):
                problem = f"line {line}: no `{place}{name}` as this package knows it; hopwise {version} wrote this"
                raise LabError(path, f"{problem}, expected records of 0.1")
    if not re.fullmatch("[0-9A-Za-z-]+", record["id"]):
        raise LabError(path, f"line {line}: id is `{record['id']}`; expected letters, digits and hyphens")
    own = f"series/{record['id']}.csv"
    if record.get("series", own) != own:
        raise LabError(path, f"line {line}: series is `{record['series']}`; expected `{own}`")
    if "series" in record and not isinstance(record.get("series_sum"), str):
        raise LabError(path, f"line {line}: `series_sum` is missing; expected the SHA-256 of {own}")


def plain(value: object) -> object:
    """A value of a point as a cell: numbers and texts as they are, anything else as JSON."""
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def cells(path: str, points: Sequence[Json]) -> list[object]:
    """The cells of a matrix's column at each of its points: numbers if it has nothing else, otherwise text."""
    values = [plain(point[path]) for point in points]
    return values if all(isinstance(value, (int, float)) for value in values) else [str(value) for value in values]


def in_force(record: Json, path: str) -> object:
    """The value in force at a path of a run's settings; None if they have none there."""
    settings = record["settings"]
    found = None
    if path.startswith("tcp."):
        found = _at(settings.get("tcp", {}).get("in_force"), path.removeprefix("tcp."))
    return _at(settings, path) if found is None else found


def _at(settings: object, path: str) -> object:
    at: Any = settings
    for step in path.split("."):
        try:
            at = at[int(step)] if isinstance(at, list) else at[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return at


def set_by_arms(records: Sequence[Json], path: str) -> pd.Series[Any]:
    """The column of a path that arms set: numbers if it has nothing else, otherwise text."""
    found = [in_force(record, path) for record in records]
    values = [None if value is None else plain(value) for value in found]
    if all(value is None or isinstance(value, (int, float)) for value in values):
        return pd.Series(values, dtype=None if all(isinstance(value, int) for value in values) else "float64")
    return pd.Series([None if value is None else str(value) for value in values], dtype="string")


def names(records: Sequence[Json], points: Sequence[Json], arm_paths: Sequence[str]) -> dict[str, pd.Series[Any]]:
    """The columns that name a run; `points` are the trial's, and `arm_paths` what its arms set."""

    def text(member: str) -> pd.Series[Any]:
        return pd.Series([record[member] for record in records], dtype="string")

    columns = {"id": text("id"), "scenario": text("scenario")}
    at = [points.index(record["point"]) for record in records]
    for path in points[0]:
        values = cells(path, points)
        is_text = any(isinstance(value, str) for value in values)
        columns[path] = pd.Series([values[nth] for nth in at], dtype="string" if is_text else None)
    for path in arm_paths:
        columns[path] = set_by_arms(records, path)
    columns["arm"] = text("arm")
    # A seed has 64 bits and no sign.
    columns["seed"] = pd.Series([record["seed"] for record in records], dtype="uint64")
    columns["block"] = pd.Series([record["block"] for record in records], dtype="int64")
    return columns


def runs(
    records: Sequence[Json], points: Sequence[Json], arm_paths: Sequence[str], figures: pd.DataFrame
) -> pd.DataFrame:
    """A row for each run: its names from the records, and its figures, which are in the order of `records`."""
    named = names(records, points, arm_paths)
    return pd.DataFrame({**named, **{name: figures[name].array for name in figures.columns}})


def own_figures(records: Sequence[Json]) -> pd.DataFrame:
    """The figures that stand in the records themselves under the names of `records.csv`; not all of its columns."""
    rows = [
        {"counted_s": record["result"].get("counted_s"), **record["result"]["total"], **record["result"]["air"]}
        for record in records
    ]
    return pd.DataFrame(rows).astype("float64")


def figures(path: Path, records: Sequence[Json], paths: Sequence[str]) -> pd.DataFrame:
    """The figures in `records.csv`, in the order of the records.

    The file has no checksum. Rows have to be those of the records, with the figures that stand in these themselves.
    """
    table = files.table(path, TEXTS | set(paths), "the table that hopwise trial writes when it ends")
    if list(table.get("id", [])) != [record["id"] for record in records]:
        raise LabError(path, "its rows are not the runs in records.jsonl; expected the same runs in the same order")
    known = own_figures(records)
    for name in (name for name in known.columns if name in table.columns):
        for line, (here, there) in enumerate(zip(table[name], known[name]), start=2):
            if not _same(here, there):
                problem = f"line {line}, column {name}: {here}, and the record with the checksum has {there}"
                raise LabError(path, f"{problem}; it was changed: expected the file as hopwise trial wrote it")
    named = {"id", "scenario", *paths, "arm", "seed", "block"}
    return table[[name for name in table.columns if name not in named]]


def flows(records: Sequence[Json], points: Sequence[Json], arm_paths: Sequence[str]) -> pd.DataFrame:
    """A row for each flow of each run, with the names of `flows.csv`."""
    rows = [flow for record in records for flow in record["result"]["flows"]]
    of = [record for record in records for _ in record["result"]["flows"]]
    flat = [_flat(flow) for flow in rows]
    heads = list(dict.fromkeys(head for row in flat for head in row))
    columns = names(of, points, arm_paths)
    for head in heads:
        column = [row.get(head) for row in flat]
        known = [cell for cell in column if cell is not None]
        if all(isinstance(cell, bool) for cell in known):
            columns[head] = pd.Series([bool(cell) for cell in column], dtype="bool")
        elif all(isinstance(cell, (int, float)) for cell in known):
            columns[head] = pd.Series(column, dtype="float64")
        else:
            columns[head] = pd.Series(column, dtype="string")
    return pd.DataFrame(columns)


def _flat(flow: Json) -> Json:
    flat: Json = {}
    for name, value in flow.items():
        if isinstance(value, dict):
            inner = {f"{name}.{member}": cell for member, cell in value.items()}
        else:
            inner = {name: value}
        for full, cell in inner.items():
            if isinstance(cell, list):
                if not all(isinstance(item, str) for item in cell):
                    # Shadows are objects of their own, and stay in the records.
                    continue
                cell = " ".join(cell)
            flat[_NAMES.get(full, full)] = cell
    return flat


def _same(one: float, two: float) -> bool:
    return (math.isnan(one) and math.isnan(two)) or math.isclose(one, two, rel_tol=1e-12)
