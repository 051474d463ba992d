"""A figure and a table of one column of a trial: its mean for each arm at each point, with the 95 % interval."""

from __future__ import annotations

import html
import math
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pandas as pd

from .columns import unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "osD^vP*Xhd"
_POINTS = 8


def title(name: str) -> str:
    """A column or a path as people write it: `goodput_kbps` is "goodput in kbit/s", `topology.hops` is "hops"."""
    words, of = _words(name)
    return f"{words} in {of}" if of else words


def _words(name: str) -> tuple[str, str]:
    last, of = name.rpartition(".")[2], unit(name)
    return (re.sub(r"_[a-z]+$", "", last) if of else last).replace("_", " "), of


def _heads(means: pd.DataFrame, paths: list[str]) -> list[str]:
    """A text for each row's point, such as "hops 8, cw 15 ms"; empty where there is one point alone."""

    def text(path: str, value: object) -> str:
        words, of = _words(path)
        return " ".join([words, f"{value:g}" if isinstance(value, float) else str(value), of]).rstrip()

    rows = zip(*(means[path].tolist() for path in paths)) if paths else [()] * len(means)
    return [", ".join(map(text, paths, row)) for row in rows]


def draw(means: pd.DataFrame, figure: str, paths: list[str], axes: Axes | None) -> Any:  # noqa: ANN401 - see `Trial`
    """Draws means with whiskers, a line for each arm over the first path, and returns matplotlib's figure."""
    pyplot = _module("matplotlib.pyplot", "plot")
    if axes is None:
        # 88 mm are a column of IEEE's and ACM's proceedings.
        _, axes = pyplot.subplots(figsize=(88 / 25.4, 60 / 25.4), layout="constrained")
    x, *others = paths or ["arm"]
    lines = means.assign(line=means["arm"])
    if others:
        lines["line"] += [f", {head}" for head in _heads(means, others)]
    for nth, (name, rows) in enumerate(lines.groupby("line", sort=False)):
        if pd.api.types.is_numeric_dtype(rows[x]):
            rows = rows.sort_values(x)
        whiskers = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        look: dict[str, Any] = {"marker": _MARKS[nth % len(_MARKS)], "markersize": 3, "linewidth": 0.8, "capsize": 2}
        axes.errorbar(rows[x].tolist(), rows["mean"], yerr=whiskers, label=name, **look)
    axes.set_xticks(list(dict.fromkeys(means[x])))
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=_POINTS)
    axes.set_ylabel(title(figure), fontsize=_POINTS)
    if paths:
        axes.set_xlabel(title(x), fontsize=_POINTS)
        axes.legend(frameon=False, fontsize=_POINTS, ncols=2)
    return axes.figure


def table(means: pd.DataFrame, figure: str, paths: list[str], digits: int | None) -> pd.DataFrame:
    """A row for each arm and a column for each point, in cells such as "276.9 ± 1.8"."""
    halves = means["high"] - means["mean"]
    digits = _digits(halves if halves.gt(0).any() else means["mean"]) if digits is None else digits

    def cell(mean: float, half: float) -> str:
        if math.isnan(mean):
            return ""
        return f"{mean:.{digits}f}" if math.isnan(half) else f"{mean:.{digits}f} ± {half:.{digits}f}"

    cells = pd.DataFrame({"arm": means["arm"], "point": _heads(means, paths), "cell": map(cell, means["mean"], halves)})
    wide = cells.pivot(index="arm", columns="point", values="cell").fillna("")
    wide = wide.reindex(index=cells["arm"].unique(), columns=cells["point"].unique())
    return wide.rename(columns={"": "mean"}).rename_axis(index=None, columns=title(figure))


def _digits(values: pd.Series[float]) -> int:
    """Decimals that leave the middle one of the values two digits."""
    return min(max(1 - math.floor(math.log10(values[values > 0].median())), 0), 9) if values.gt(0).any() else 0


def written(cells: pd.DataFrame, to: str) -> str:
    """The table for a paper, a page or a README."""
    rows = cells.rename_axis(index=cells.columns.name, columns=None).reset_index()
    if to == "html":
        return str(rows.to_html(index=False, border=0))
    if to == "markdown":
        lines = [list(rows.columns), ["---"] * len(rows.columns), *rows.to_numpy().tolist()]
        return "".join("| " + " | ".join(_of_markdown(cell) for cell in line) + " |\n" for line in lines)
    _module("jinja2", 'table(to="latex")')
    style = rows.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis="columns")
    text = style.to_latex(hrules=True, column_format="l" + "r" * len(cells.columns))
    return str(text).replace("±", r"$\pm$")


def _of_markdown(cell: str) -> str:
    """A name is text: it begins no line, column, link, image, code, emphasis or HTML. Bare addresses are links, too."""
    live = r"[\\`*~\[\]|@]|\b_|_\b|:(?=//)|(?<=www)\."
    return " ".join(re.sub(live, r"\\\g<0>", html.escape(cell, quote=False)).splitlines())


def _module(name: str, of: str) -> Any:  # noqa: ANN401 - a module has no type of its own
    try:
        return import_module(name)
    except ImportError as error:
        problem = f"`{of}` takes the package {name.partition('.')[0]}, which is not installed"
        raise ImportError(f"{problem}; expected hopwise-lab with its extra: pip install './python[figures]'") from error
