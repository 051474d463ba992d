"""The notebook, and the page that leads to a figure: their code runs, and the page shows what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import matplotlib
import nbclient
import nbformat
import pytest

import hopwise_lab
from conftest import ROOT, command, trial

PAGE = ROOT / "docs/figure.md"
NOTEBOOK = ROOT / "python/notebooks/figures.ipynb"
#: As wide as a column: 88 mm in points.
WIDTH_PT = 88 / 25.4 * 72


def is_as_wide_as_a_column(figure: Path) -> bool:
    text = figure.read_bytes().decode("latin-1")
    pattern = r"/MediaBox \[ 0 0 ([\d.]+)" if figure.suffix == ".pdf" else r'<svg[^>]* width="([\d.]+)pt"'
    found = re.search(pattern, text)
    return found is not None and float(found.group(1)) == pytest.approx(WIDTH_PT, abs=0.01)


@pytest.mark.parametrize("matrix", [[], ["--set", "matrix={topology.hops: [2, 3]}"]], ids=["one point", "a matrix"])
def test_the_notebook_draws_three_figures(matrix: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPWISE_TRIAL", str(trial(tmp_path / "trial", "quickstart", *matrix)))
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = [output for cell in notebook.cells for output in cell.get("outputs", []) if output.get("name") == "stderr"]
    assert said == []
    figures = sorted((tmp_path / "figures").iterdir())
    assert [figure.name for figure in figures] == [
        f"{name}.{ending}" for name in ("delay", "goodput", "time") for ending in ("pdf", "svg")
    ]
    assert all(map(is_as_wide_as_a_column, figures))


def test_the_notebook_is_stored_without_outputs() -> None:
    notebook: Any = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [(cell.outputs, cell.execution_count) for cell in code] == [([], None)] * len(code)


def test_the_page_runs_as_it_stands_and_shows_what_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/hopwise").symlink_to(Path(command()).resolve())
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    page = PAGE.read_text()
    names: dict[str, object] = {}
    printed = ""

    def run(block: re.Match[str]) -> str:
        nonlocal printed
        kind, code = block.groups()
        if kind == "text":
            return f"```text\n{printed}```"
        # The installation is the one block that stays out: it was made before this test.
        if kind == "sh" and "pip install" not in code:
            subprocess.run(["bash", "-euc", code], check=True, capture_output=True, timeout=300)
        elif kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, names)
            printed = out.getvalue()
        return block.group()

    shown = re.sub(r"```(\w+)\n(.*?)```", run, page, flags=re.DOTALL)
    if "HOPWISE_WRITE_DOCS" in os.environ:
        PAGE.write_text(shown)
    assert shown == page, "`HOPWISE_WRITE_DOCS=1 scripts/check-python` writes what the code prints"
    assert all(is_as_wide_as_a_column(tmp_path / f"hops.{ending}") for ending in ("pdf", "svg"))


def test_the_page_installs_what_there_is() -> None:
    extras = re.findall(r"pip install '\./python\[(\w+)\]'", PAGE.read_text())
    manifest = (ROOT / "python/pyproject.toml").read_text()
    assert extras == ["figures"]
    assert f"\n{extras[0]} = [" in manifest


def test_the_package_has_the_version_of_the_command() -> None:
    found = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert found is not None
    assert hopwise_lab.__version__ == found.group(1)
    assert f'version = "{found.group(1)}"' in (ROOT / "python/pyproject.toml").read_text()
