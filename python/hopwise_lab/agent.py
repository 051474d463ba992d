"""A receiver agent in Python, for simulations: the other end of the agent `program` of `hopwise`.

```python
#!/usr/bin/env python3
from hopwise_lab.agent import ACK, Segment, hold, serve


def every_third(segment: Segment) -> str:
    if segment["class"] != "in-order" or segment["owed_segments"] >= 3:
        return ACK
    return hold(0.1)


serve(every_third)
```

The file has to be executable. `hopwise_lab.run_scenario` and `hopwise_lab.run_trial` take it as `agent=`. It asks for each segment,
which makes a simulation some six times slower. Equal segments have to get equal answers: no clock, no random numbers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

#: A segment that has come, with what is known of its connection. `docs/own-agent.md` explains each member.
Segment = dict[str, Any]

#: The answer that an ACK leaves at once.
ACK = "ack"


def hold(seconds: float) -> str:
    """The answer that the segment waits so long for its ACK; a wait that runs already moves its end."""
    return f"hold {seconds * 1000:.3f}"


def join(seconds: float) -> str:
    """The answer that the segment waits, at most so long after the first that waits; a wait keeps its end."""
    return f"join {seconds * 1000:.3f}"


def value(otherwise: int = 0) -> int:
    """The number behind the agent's name in the scenario, as in `program:5`."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else otherwise


def serve(rule: Callable[[Segment], str]) -> None:
    """Answers for a connection until it ends. The answers take standard output; `print` goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(rule(json.loads(line)), file=answers, flush=True)
