"""Trials and runs of Hopwise as pandas DataFrames.

```python
import hopwise_lab as lab

trial = lab.load_trial("results/quickstart")
trial.runs                                  # a row for each run, the columns of records.csv
trial.means("goodput_kbps")                 # for each point and arm, with 95 % intervals
trial.plot("goodput_kbps")                  # the same as a figure
trial.table("goodput_kbps", to="latex")     # the same as a table for a paper
trial.compare("goodput_kbps")               # each arm against the baseline, block by block
trial.series("train").line("cwnd_segments", "f0")
```

A figure that a run does not know is NaN, never zero. A file that cannot be read is refused with a `LabError`: it says
where, what is wrong and what would be accepted. `docs/figure.md` draws a figure for a paper, `docs/data.md` explains
columns.
"""

from __future__ import annotations

from .columns import columns, unit
from .command import run_scenario, run_trial
from .errors import LabError
from .run import Run, load_run
from .series import Series
from .trial import Trial, load_trial
from .worlds import Worlds, load_worlds

__version__ = "0.1.0"

__all__ = [
    "LabError",
    "Run",
    "Series",
    "Trial",
    "Worlds",
    "columns",
    "load_run",
    "load_trial",
    "load_worlds",
    "run_scenario",
    "run_trial",
    "unit",
]
