"""A trial: the folder that `hopwise trial` leaves, or the folders of its parts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import pandas as pd

from . import figures, files, records, statistics
from .errors import FOREIGN, LabError, shown
from .files import Json
from .series import Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WANTED = "a folder that hopwise trial has written"
_GOES_ON = "the command that began it goes on with --resume"

_PLAN = {"version": str, "scenario": str, "world": str, "arms": list, "points": list, "seeds": list}

Point = Mapping[str, object]


class Trial:
    """Runs, flows, series, means and comparisons of one trial."""

    def __init__(self, plan: Json, parts: Sequence[Part]) -> None:
        self.folders = [part.folder for part in parts]
        #: `trial.json`: scenario, version, certificate, world, arms, points, seeds, margin, stop.
        self.plan = plan
        #: The arms' names, the baseline first.
        self.arms: list[str] = plan["arms"]
        #: The values that each point sets, such as `{"topology.hops": 8}`; one empty point without a matrix.
        self.points: list[dict[str, Any]] = plan["points"]
        #: The paths that the matrix sets; each is a column.
        self.paths: list[str] = list(self.points[0])
        #: The paths that arms set; each is a column too, with the value in force.
        self.arm_paths: list[str] = plan.get("arm_paths", [])
        self.world: str = plan["world"]
        #: The version that made the runs, with the hash of its sources.
        self.version: str = plan["version"]
        #: Planned runs that are not there: of an unfinished trial, or of one that ended early.
        self.missing = self._planned() - sum(len(part.records) for part in parts)
        self._summaries = [part.summary for part in parts]
        order = self._order([record for part in parts for record in part.records])
        every = [record for part in parts for record in part.records]
        #: The records as they are in `records.jsonl`, by points, blocks and arms.
        self.records: list[Json] = [every[at] for at in order]
        figures = pd.concat([part.figures for part in parts], ignore_index=True)
        #: A row for each run: the columns of `records.csv`.
        in_order = figures.iloc[order].reset_index(drop=True)
        self.runs = records.runs(self.records, self.points, self.arm_paths, in_order)
        self._folder_of = {record["id"]: part.folder for part in parts for record in part.records}
        self._check_settings()

    def __repr__(self) -> str:
        missing = f", {self.missing} missing" if self.missing else ""
        return shown(
            f"Trial({self.plan['scenario']} in {self.world}: {len(self.arms)} arms, {len(self.points)} points, "
            f"{len(self.records)} runs{missing}; hopwise {self.version})"
        )

    @property
    def flows(self) -> pd.DataFrame:
        """A row for each flow of each run, with the names of `flows.csv`."""
        return records.flows(self.records, self.points, self.arm_paths)

    @property
    def verdicts(self) -> pd.DataFrame:
        """The laboratory's own comparisons, as `summary.json` has them: a row for each point, figure and arm.

        `figure` is the name of the figure, NaN for goodput, and no column where goodput alone decides.
        """
        rows: list[Json] = []
        for point, comparison in self._each("comparisons"):
            low, high = comparison.get("ci95") or (math.nan, math.nan)
            row = {name: value for name, value in comparison.items() if name != "ci95"}
            rows.append({**point, **row, "low": low, "high": high})
        heads = [*self.paths, "arm", "against", "blocks", "ratio", "low", "high"]
        frame = pd.DataFrame(rows, columns=list(dict.fromkeys([*heads, *(name for row in rows for name in row)])))
        numbers = ["ratio", "low", "high", "p", "p_holm", "p_equivalence"]
        return frame.astype({name: "float64" for name in numbers if name in frame.columns})

    @property
    def summaries(self) -> pd.DataFrame:
        """The laboratory's own means, as `summary.json` has them: a row for each point, arm and figure."""
        rows = []
        for point, (arm, of_arm) in self._each("arms"):
            for figure, found in of_arm.items():
                low, high = found.get("ci95") or (math.nan, math.nan)
                row = {"arm": arm, "figure": figure, "mean": found["mean"], "low": low, "high": high, "n": found["n"]}
                rows.append({**point, **row})
        return pd.DataFrame(rows, columns=[*self.paths, "arm", "figure", "mean", "low", "high", "n"])

    def settings(self, arm: str, point: Point | None = None) -> Json:
        """Every parameter in force for an arm at a point."""
        return self._some(arm, point, None)["settings"]  # type: ignore[no-any-return]

    def series(self, arm: str, point: Point | None = None, seed: int | None = None) -> Series:
        """A run over time; in the world `sim` the first seed's runs have a series."""
        record = self._some(arm, point, seed)
        if "series" not in record:
            having = sorted({other["seed"] for other in self.records if "series" in other})
            wanted = (
                f"a seed that has one: {having}" if having else "a trial in the world sim, whose first seed has them"
            )
            raise LabError(_name(record), f"the run has no series; expected {wanted}")
        path = files.below(self._folder_of[record["id"]], "series", f"{record['id']}.csv")
        return Series.read(path, record["series_sum"])

    def means(self, figure: str, runs: pd.DataFrame | None = None) -> pd.DataFrame:
        """The mean of a column for each point and arm, with the 95 % interval by Student's t (`low`, `high`, `n`).

        Runs that do not know the figure take no part. Intervals begin at 0 or above, as the laboratory's do. They are
        of an arm alone: `compare` says whether two arms differ.
        """
        rows = []
        for point, arm, values in self._samples(figure, runs):
            found = statistics.mean(list(values.values()))
            rows.append([*point, arm, found.mean, found.low, found.high, found.n])
        return pd.DataFrame(rows, columns=[*self.paths, "arm", "mean", "low", "high", "n"])

    def plot(self, figure: str, runs: pd.DataFrame | None = None, axes: Axes | None = None) -> Figure:
        """Draws the means of a column with their 95 % intervals, and returns matplotlib's figure.

        There is a line for each arm over the matrix's first path, and for each point of its other paths; without a
        matrix the arms stand side by side. The figure is as wide as a column of a paper, or it is that of `axes`.
        """
        drawn: Figure = figures.draw(self.means(figure, runs), figure, self.paths, axes)
        return drawn

    @overload
    def table(
        self, figure: str, to: None = None, runs: pd.DataFrame | None = None, digits: int | None = None
    ) -> pd.DataFrame: ...

    @overload
    def table(
        self,
        figure: str,
        to: Literal["latex", "markdown", "html"],
        runs: pd.DataFrame | None = None,
        digits: int | None = None,
    ) -> str: ...

    def table(
        self, figure: str, to: str | None = None, runs: pd.DataFrame | None = None, digits: int | None = None
    ) -> pd.DataFrame | str:
        """The means of a column with their 95 % intervals: a row for each arm, a column for each point.

        `to` is None for a DataFrame of texts, or "latex", "markdown" or "html". Numbers have `digits` decimals, and
        without it as many as leave the middle one of the intervals two digits.
        """
        if to is not None:
            self._known("to", to, ["latex", "markdown", "html"])
        cells = figures.table(self.means(figure, runs), figure, self.paths, digits)
        return cells if to is None else figures.written(cells, to)

    def compare(
        self,
        figure: str = "goodput_kbps",
        against: str | None = None,
        by: Literal["ratio", "difference"] = "ratio",
        runs: pd.DataFrame | None = None,
    ) -> pd.DataFrame:
        """Each arm against another one (the baseline), block by block, at each point.

        By `ratio`: the geometric mean of the blocks' ratios, with Student's t interval on their logs. This is what the
        laboratory computes for goodput. By `difference`: the mean of the blocks' differences with Student's t interval,
        in the figure's unit; for figures that may be 0. `p` is the paired t test's, two-sided and not corrected for the
        number of comparisons: `verdicts` has p after Holm's correction. Blocks in which one of the two is missing take
        no part.
        """
        against = self.arms[0] if against is None else against
        self._known("arm", against, self.arms)
        self._known("by", by, ["ratio", "difference"])
        if self.plan.get("stop") == "when-sure":
            problem = "the trial stopped when it was sure, and an ordinary interval would be too narrow"
            raise LabError(self.folders[0], f"{problem}; expected a trial of all seeds. `verdicts` has its intervals")
        samples = self._samples(figure, runs)
        baselines = {point: values for point, arm, values in samples if arm == against}
        rows = []
        for point, arm, values in samples:
            baseline = baselines.get(point, {})
            pairs = [(values[block], baseline[block]) for block in sorted(values) if block in baseline]
            if arm == against:
                continue
            if by == "difference":
                found = statistics.difference(pairs)
            else:
                self._check_positive(figure, arm, against, pairs)
                found = statistics.ratio(pairs)
            rows.append([*point, arm, against, found.n, found.mean, found.low, found.high, found.p])
        return pd.DataFrame(rows, columns=[*self.paths, "arm", "against", "blocks", by, "low", "high", "p"])

    def _samples(
        self, figure: str, runs: pd.DataFrame | None
    ) -> list[tuple[tuple[object, ...], str, dict[int, float]]]:
        """The figure by block, for each point and arm that has runs, in the order of the plan."""
        frame = self.runs if runs is None else runs
        varied = {*self.paths, *self.arm_paths}
        figures = [name for name in self.runs.columns if self.runs[name].dtype == "float64" and name not in varied]
        self._known("figure", figure, figures)
        keys = list(zip(*(frame[name].tolist() for name in [*self.paths, "arm"])))
        there = set(keys)
        every = [(*point, arm) for point in self._cells() for arm in self.arms]
        samples: dict[tuple[object, ...], dict[int, float]] = {key: {} for key in every if key in there}
        for key, block, value in zip(keys, frame["block"].tolist(), frame[figure].tolist()):
            if not math.isnan(value):
                samples[key][block] = value
        return [(key[:-1], str(key[-1]), values) for key, values in samples.items()]

    def _cells(self) -> list[tuple[object, ...]]:
        """The cells of the matrix's columns at each point."""
        return list(zip(*(records.cells(path, self.points) for path in self.paths))) if self.paths else [()]

    def _check_positive(self, figure: str, arm: str, against: str, pairs: list[tuple[float, float]]) -> None:
        if any(min(pair) <= 0.0 for pair in pairs):
            problem = f"{figure} of {arm} or {against} is 0 in a block, which has no ratio"
            raise LabError(self.folders[0], f'{problem}; expected by="difference", or `verdicts` for goodput')

    def _known(self, what: str, name: str, known: Sequence[str]) -> None:
        if name not in known:
            raise LabError(self.folders[0], f"{what} `{name}` is not there; expected one of {', '.join(known)}")

    def _some(self, arm: str, point: Point | None, seed: int | None) -> Json:
        """A run of the arm at the point; the first one where no seed is named."""
        self._known("arm", arm, self.arms)
        if point is None and len(self.points) > 1:
            raise LabError(self.folders[0], f"the trial has several points; expected one of {self.points}")
        wanted = self.points[0] if point is None else dict(point)
        if wanted not in self.points:
            raise LabError(self.folders[0], f"{wanted} is no point of the trial; expected one of {self.points}")
        there = [record for record in self.records if record["arm"] == arm and record["point"] == wanted]
        for record in there:
            if seed is None or record["seed"] == seed:
                return record
        seeds = [record["seed"] for record in there]
        raise LabError(self.folders[0], f"no run of `{arm}` with seed {seed} is there; expected one of {seeds}")

    def _each(self, member: str) -> list[tuple[Json, Any]]:
        """The items of `arms` or `comparisons` in the summary, with the columns of their points."""
        if len(self._summaries) != 1 or self._summaries[0] is None:
            wanted = "expected a finished trial in one folder, which has a summary.json"
            problem = f"the trial is unfinished or in parts; {wanted}. `means` and `compare` work without it"
            raise LabError(self.folders[0], problem)
        summary = self._summaries[0]
        points = summary.get("points", [{"point": self.points[0], **summary}])
        cells = self._cells()
        items: list[tuple[Json, Any]] = []
        for at in points:
            columns = dict(zip(self.paths, cells[self.points.index(at["point"])]))
            of_point = at[member].items() if isinstance(at[member], dict) else at[member]
            items.extend((columns, item) for item in of_point)
        return items

    def _planned(self) -> int:
        return len(self.points) * len(self.arms) * len(self.plan["seeds"])

    def _order(self, every: Sequence[Json]) -> list[int]:
        def key(at: int) -> tuple[int, int, int]:
            record = every[at]
            return self.points.index(record["point"]), record["block"], self.arms.index(record["arm"])

        return sorted(range(len(every)), key=key)

    def _check_settings(self) -> None:
        """Runs of one arm at one point differ in their seeds alone."""
        known: dict[str, Json] = {}
        for record in self.records:
            first = known.setdefault(f"{record['arm']} {record['point']}", record)
            if record["settings"] != first["settings"]:
                problem = f"{_name(record)} has other settings than {_name(first)}"
                raise LabError(self._folder_of[record["id"]], f"{problem}; expected parts made with the same")


class Part:
    """The part of a trial that one folder holds."""

    def __init__(self, folder: Path, unfinished: bool) -> None:
        self.folder = folder
        if not (folder / "trial.json").exists() and (folder / "run.json").exists():
            raise LabError(folder, f"it holds a single run, which load_run loads; expected {_WANTED}")
        if not (folder / "trial.json").exists() and (folder / "agreement.json").exists():
            raise LabError(folder, f"it holds several worlds, which load_worlds loads; expected {_WANTED}")
        self.plan = files.sealed_json_of(folder / "trial.json", f"{_WANTED}, which has one")
        self._check_plan()
        self.summary: Json | None = None
        paths = [*self.plan["points"][0], *self.plan.get("arm_paths", [])]
        if (folder / "records.jsonl").exists():
            self.records = self._finished()
            self.figures = records.figures(folder / "records.csv", self.records, paths)
            self.summary = files.json_of(folder / "summary.json", f"{_WANTED} and that has finished")
            self._check_summary()
        else:
            self.records = self._unfinished(unfinished)
            self.figures = records.own_figures(self.records)

    def _check_plan(self) -> None:
        for member, kind in _PLAN.items():
            if not isinstance(self.plan.get(member), kind) or not self.plan[member]:
                version = self.plan.get("version")
                problem = f"no `{member}` as this package knows it; hopwise {version} wrote this, expected 0.1"
                raise LabError(self.folder / "trial.json", problem)
        paths = (path for point in self.plan["points"] if isinstance(point, dict) for path in point)
        names = (*(self.plan[name] for name in ("scenario", "world", "version")), *self.plan["arms"], *paths)
        if foreign := FOREIGN.search("".join(map(str, names))):
            problem = f"there is U+{ord(foreign[0]):04X} in a name; expected names of one line, in one direction"
            raise LabError(self.folder / "trial.json", problem)

    def _finished(self) -> list[Json]:
        path = self.folder / "records.jsonl"
        found = []
        for line, record in files.sealed_lines(path, _WANTED):
            records.check_shape(path, line, record, self.plan["version"])
            if not self._is_planned(record):
                raise LabError(path, f"line {line}: {_name(record)} is no run of the trial in trial.json; expected one")
            self._check_version(path, record)
            found.append(record)
        return found

    def _unfinished(self, wanted: bool) -> list[Json]:
        found = []
        for path in sorted(files.below(self.folder, "runs", "*").parent.glob("*.json")):
            try:
                lines = list(files.sealed_lines(path, _WANTED))
            except LabError:
                # A file that was being written when the power failed is no record yet: --resume makes the run again.
                continue
            for line, record in lines:
                records.check_shape(path, line, record, self.plan["version"])
                if self._is_planned(record):
                    self._check_version(path, record)
                    found.append(record)
        if not found or not wanted:
            problem = f"the trial has not finished, {len(found)} of its runs have; {_GOES_ON}"
            hint = ", and unfinished=True loads these runs" if found else ""
            raise LabError(self.folder, problem + hint)
        return found

    def _is_planned(self, record: Json) -> bool:
        plan = self.plan
        return record["point"] in plan["points"] and record["arm"] in plan["arms"] and record["seed"] in plan["seeds"]

    def _check_version(self, path: Path, record: Json) -> None:
        made_by = record.get("settings", {}).get("hopwise", {}).get("version")
        if made_by is not None and made_by != self.plan["version"]:
            problem = f"{_name(record)} was made by hopwise {made_by}, and the trial by {self.plan['version']}"
            raise LabError(path, f"{problem}; runs of two versions are not mixed, expected one")

    def _check_summary(self) -> None:
        """The means of `records.csv` are those of `summary.json`: neither file has a checksum."""
        trial = Trial(self.plan, [self])
        rows = trial.summaries
        for figure in (name for name in self.figures.columns if name != "counted_s"):
            theirs = rows[rows["figure"] == figure]
            ours = trial.means(figure)
            ours = ours[ours["n"] > 0]
            same = len(ours) == len(theirs) and all(
                n == planned and math.isclose(mean, known, rel_tol=1e-9, abs_tol=1e-12)
                for n, planned, mean, known in zip(ours["n"], theirs["n"], ours["mean"], theirs["mean"])
            )
            if not same:
                problem = f"the means of column {figure} are not those in summary.json"
                raise LabError(
                    self.folder / "records.csv",
                    f"{problem}; one of the two was changed: expected the files as hopwise trial wrote them",
                )


def load_trial(folder: str | Path, *parts: str | Path, unfinished: bool = False) -> Trial:
    """Loads the trial in a folder, or that of which several folders are the parts (`--shard`).

    Each record has a checksum, and one that was changed is refused. `records.csv` has none: it is held against the
    records and against `summary.json`. With `unfinished` the runs of a trial that has not finished are loaded. They
    have the columns that stand in the records themselves: goodput, Jain's index and the radios' counters.
    """
    read = [Part(Path(each), unfinished) for each in (folder, *parts)]
    plans = [{name: value for name, value in part.plan.items() if name not in ("shard", "sum")} for part in read]
    for part, plan in zip(read, plans):
        for name in plans[0]:
            if plan.get(name) != plans[0][name]:
                problem = f"`{name}` is {plan.get(name)}, and {plans[0][name]} in {read[0].folder}"
                raise LabError(part.folder, f"{problem}; expected parts of one trial, made by one version")
    seen: dict[str, Path] = {}
    for part in read:
        for record in part.records:
            other = seen.setdefault(record["id"], part.folder)
            if other != part.folder:
                raise LabError(part.folder, f"{_name(record)} is in {other}, too; expected each run once")
    return Trial(plans[0], read)


def _name(record: Json) -> str:
    return f"the run of `{record['arm']}` with seed {record['seed']}"
