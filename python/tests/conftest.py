"""Trials and runs that the tests read, made once by the command itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def hopwise(*arguments: str | Path) -> None:
    """Runs the command in the repository's folder."""
    done = subprocess.run(
        [command(), *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


def command() -> str:
    found = os.environ.get("HOPWISE") or shutil.which("hopwise")
    if found is None:
        pytest.exit("no command `hopwise`: expected its path in HOPWISE, or the command in PATH", returncode=2)
    return found


def trial(folder: Path, scenario: str, *more: str) -> Path:
    short = ["--set", "run.duration=20s", "--set", "run.warmup=5s", "--seeds", "3"]
    hopwise("trial", f"configs/{scenario}.yaml", *short, "--out", folder, *more)
    return folder


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix of two paths, with requests, files and a flow in the background."""
    return trial(tmp_path_factory.mktemp("mixed"), "mixed")


@pytest.fixture(scope="session")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three arms at one point."""
    return trial(tmp_path_factory.mktemp("chain"), "chain")


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The trial of `chain` in two parts."""
    folder = tmp_path_factory.mktemp("parts")
    return [trial(folder / str(nth), "chain", "--shard", f"{nth}/2") for nth in (1, 2)]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the first block of `chain`."""
    folder = tmp_path_factory.mktemp("run")
    short = ["--set", "run.duration=20s", "--set", "run.warmup=5s"]
    hopwise("run", "configs/chain.yaml", "--arm", "every", *short, "--series", "--out", folder)
    return folder


@pytest.fixture
def copy(chain: Path, tmp_path: Path) -> Path:
    """The trial of `chain`, to be broken."""
    return Path(shutil.copytree(chain, tmp_path / "copy"))
