"""The figure and the table of a trial show its means and their intervals."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib
import pandas as pd
import pytest

matplotlib.use("agg")

import matplotlib.pyplot as plt
from matplotlib.container import ErrorbarContainer

import hopwise_lab as lab
from hopwise_lab import figures

CELL = r"(\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)"


def bars(axes: plt.Axes) -> dict[str, list[tuple[float, float, float]]]:
    """Mean, low and high at each place of a line, as they are drawn."""
    found = {}
    for container in axes.containers:
        assert isinstance(container, ErrorbarContainer)
        line, _, (whiskers,) = container.lines
        ends = [(segment[0][1], segment[1][1]) for segment in whiskers.get_segments()]
        found[str(container.get_label())] = [(y, *both) for y, both in zip(line.get_ydata(), ends)]
    return found


def test_a_plot_draws_each_arm_over_the_matrix_with_its_intervals(mixed: Path) -> None:
    trial = lab.load_trial(mixed)
    means, figure = trial.means("goodput_kbps"), trial.plot("goodput_kbps")
    [axes] = figure.axes
    first, second = trial.paths
    drawn = bars(axes)
    assert len(drawn) == len(trial.arms) * means[second].nunique()
    for (arm, value), rows in means.groupby(["arm", second], sort=False):
        [name] = [name for name in drawn if name.startswith(f"{arm}, ") and name.endswith(str(value))]
        for ours, (mean, low, high) in zip(drawn[name], rows[["mean", "low", "high"]].itertuples(index=False)):
            assert ours == pytest.approx((mean, low, high))
    assert axes.get_ylabel() == "goodput in kbit/s"
    assert axes.get_xlabel() == lab.figures.title(first)
    assert axes.get_xticks().tolist() == means[first].unique().tolist()
    assert axes.get_ylim()[0] == 0
    assert figure.get_size_inches()[0] * 25.4 == pytest.approx(88)
    plt.close(figure)


def test_a_plot_of_one_point_has_the_arms_side_by_side(chain: Path) -> None:
    trial = lab.load_trial(chain)
    figure, axes = plt.subplots()
    assert trial.plot("goodput_kbps", axes=axes) is figure
    assert [label.get_text() for label in axes.get_xticklabels()] == trial.arms
    assert list(bars(axes)) == trial.arms
    plt.close(figure)


def test_a_table_has_a_row_for_each_arm_and_a_column_for_each_point(mixed: Path) -> None:
    trial = lab.load_trial(mixed)
    table, means = trial.table("goodput_kbps"), trial.means("goodput_kbps")
    assert table.index.tolist() == trial.arms
    assert len(table.columns) == len(trial.points)
    assert table.columns.name == "goodput in kbit/s"
    by_point = means.groupby(trial.paths, sort=False)
    for head, (_, rows) in zip(table.columns, by_point):
        for arm, mean, high in rows[["arm", "mean", "high"]].itertuples(index=False):
            found = re.fullmatch(CELL, table.loc[arm, head])
            assert found is not None, table.loc[arm, head]
            half_a_digit = 0.5 * 10 ** -len(found.group(1).partition(".")[2])
            assert float(found.group(1)) == pytest.approx(mean, abs=1.01 * half_a_digit)
            assert float(found.group(2)) == pytest.approx(high - mean, abs=1.01 * half_a_digit)
    for head, point in zip(table.columns, trial.points):
        assert all(str(value) in head for value in point.values()), head


def test_tables_for_papers_and_pages_have_the_cells_of_the_table(chain: Path) -> None:
    trial = lab.load_trial(chain)
    table = trial.table("goodput_kbps", digits=1)
    assert table.columns.tolist() == ["mean"]
    latex = trial.table("goodput_kbps", to="latex", digits=1)
    lines = latex.splitlines()
    assert lines[:4] == [r"\begin{tabular}{lr}", r"\toprule", r"goodput in kbit/s & mean \\", r"\midrule"]
    assert lines[4:-2] == [f"{arm} & {cell} \\\\".replace("±", r"$\pm$") for arm, cell in table["mean"].items()]
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    markdown = trial.table("goodput_kbps", to="markdown", digits=1).splitlines()
    assert markdown[:2] == ["| goodput in kbit/s | mean |", "| --- | --- |"]
    assert markdown[2:] == [f"| {arm} | {cell} |" for arm, cell in table["mean"].items()]
    html = trial.table("goodput_kbps", to="html", digits=1)
    assert re.findall(r"<td>(.*?)</td>", html) == [text for row in table["mean"].items() for text in row]


def test_latex_is_balanced_and_leaves_no_special_character_open() -> None:
    means = pd.DataFrame({"arm": ["a_b & 50%", "{c} #$~^\\"], "mean": [1.0, 2.0], "low": [0.5, 1.5], "high": [1.5, 2.5]})
    cells = figures.table(means, "acks_per_segment", [], None)
    assert cells["mean"].tolist() == ["1.00 ± 0.50", "2.00 ± 0.50"]
    latex = figures.written(cells, "latex")
    body = latex.replace(r"$\pm$", "")
    commands = r"\\textbackslash ?|\\text[a-z]+|\\(begin|end)\{tabular\}|\\[a-z]+rule|\\\\|\\[&%_#${}]|\{lr\}|\{\}"
    left = re.sub(commands, "", body)
    assert not re.search(r"[%_#$~^\\{}]", left), left
    assert left.count("&") == 3, "one between the cells of each row"
    markdown = figures.written(cells.rename(index={"{c} #$~^\\": "a|b"}), "markdown")
    assert markdown.splitlines()[-1] == r"| a\|b | 2.00 ± 0.50 |"
    markdown = figures.written(cells.rename(index={"{c} #$~^\\": "<img onerror=x>\n# & so"}), "markdown")
    assert markdown.splitlines()[-1] == "| &lt;img onerror=x&gt; # &amp; so | 2.00 ± 0.50 |"
    markdown = figures.written(cells.rename(index={"{c} #$~^\\": r"![a](b) [x](javascript:1) \| `*~ _e_"}), "markdown")
    assert markdown.splitlines()[-1] == r"| !\[a\](b) \[x\](javascript:1) \\\| \`\*\~ \_e\_ | 2.00 ± 0.50 |"
    markdown = figures.written(cells.rename(index={"{c} #$~^\\": "http://evil/ www.e.de a@b.c"}), "markdown")
    assert markdown.splitlines()[-1] == r"| http\://evil/ www\.e.de a\@b.c | 2.00 ± 0.50 |"
    assert markdown.splitlines()[-2] == "| a_b &amp; 50% | 1.00 ± 0.50 |"


@pytest.mark.parametrize(
    ("halves", "cells"),
    [
        ([0.04, 0.02, 0.03], ["1.000 ± 0.040", "2.000 ± 0.020", "3.000 ± 0.030"]),
        ([340.0, 250.0, 9.0], ["1 ± 340", "2 ± 250", "3 ± 9"]),
        ([float("nan")] * 3, ["1.0", "2.0", "3.0"]),
        ([0.0] * 3, ["1.0 ± 0.0", "2.0 ± 0.0", "3.0 ± 0.0"]),
    ],
)
def test_decimals_follow_the_intervals(halves: list[float], cells: list[str]) -> None:
    means = pd.DataFrame({"arm": ["a", "b", "c"], "mean": [1.0, 2.0, 3.0]})
    means["low"], means["high"] = means["mean"] - halves, means["mean"] + halves
    assert figures.table(means, "jain", [], None)["mean"].tolist() == cells


def test_a_figure_that_no_run_knows_is_drawn_and_written_empty(chain: Path) -> None:
    trial = lab.load_trial(chain)
    plt.close(trial.plot("completion_s"))
    assert trial.table("completion_s")["mean"].tolist() == ["", "", ""]


def test_what_is_not_there_is_refused(chain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = lab.load_trial(chain)
    with pytest.raises(lab.LabError, match="goodput_kbps"):
        trial.plot("goodput")
    with pytest.raises(lab.LabError, match="latex, markdown, html"):
        trial.table("goodput_kbps", to="pdf")  # type: ignore[call-overload]
    for module in ("jinja2", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install './python\[figures\]'"):
        trial.table("goodput_kbps", to="latex")
    with pytest.raises(ImportError, match=r"pip install './python\[figures\]'"):
        trial.plot("goodput_kbps")
