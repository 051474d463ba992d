"""The command `hopwise`, called with a scenario that Python has written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import LabError
from .run import Run, load_run
from .trial import Trial, load_trial

Scenario = Mapping[str, Any]


def run_scenario(
    scenario: Scenario | str | Path,
    out: str | Path,
    *options: str,
    agent: str | Path | None = None,
    hopwise: str | Path | None = None,
) -> Run:
    """One run of a scenario: a mapping as its file has it, or the file. `options` are those of `hopwise run`."""
    _call("run", scenario, Path(out), options, agent, hopwise)
    return load_run(out)


def run_trial(
    scenario: Scenario | str | Path,
    out: str | Path,
    *options: str,
    agent: str | Path | None = None,
    hopwise: str | Path | None = None,
) -> Trial:
    """A trial of a scenario. `agent` is a program of one's own, which arms name as `receiver: program`.

    `hopwise` is the command: by default the one that the variable HOPWISE names, or that is on the path.
    """
    _call("trial", scenario, Path(out), options, agent, hopwise)
    return load_trial(out)


def _call(
    verb: str,
    scenario: Scenario | str | Path,
    out: Path,
    options: Sequence[str],
    agent: str | Path | None,
    hopwise: str | Path | None,
) -> None:
    command = hopwise or os.environ.get("HOPWISE") or shutil.which("hopwise")
    if command is None:
        raise LabError("hopwise", "it is not on the path; expected the command there, or as `hopwise=`")
    environment = dict(os.environ)
    if agent is not None:
        environment["HOPWISE_AGENT"] = str(agent)
    with tempfile.TemporaryDirectory() as folder:
        file = scenario
        if isinstance(scenario, Mapping):
            # JSON is YAML. Results bear the name of the file.
            file = Path(folder, f"{out.resolve().name}.yaml")
            file.write_text(json.dumps(scenario, indent=2, ensure_ascii=False), encoding="utf-8")
        words = [str(command), verb, str(file), "--out", str(out), *options]
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            raise LabError(command, f"{error.strerror}; expected the command `hopwise`") from error
    if done.returncode == 0:
        # Remarks, and what an agent has printed.
        sys.stderr.write(done.stderr)
    else:
        said = " ".join(done.stderr.split()) or f"it ended with status {done.returncode}"
        raise LabError(f"hopwise {verb}", said)
