"""The dashboard of docs/grafana, read by Grafana's own types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conftest import ROOT
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

# Grafana's import reads the first two, and its editor shows the third. The number of a new dashboard is null.
BESIDE = ("__inputs", "__requires", "definition", "id")


def lost(before: Any, after: Any, at: str = "") -> Iterator[str]:
    """The places of what was there before, and is not there in the same form after."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], f"{at}.{key}")
            elif key not in BESIDE:
                yield f"{at}.{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for nth, (one, other) in enumerate(zip(before, after)):
            yield from lost(one, other, f"{at}[{nth}]")
    elif before != after:
        yield at


def through_grafana(dashboard: dict[str, Any]) -> list[str]:
    """What Grafana's types do not know of a dashboard."""
    register_default_plugins()
    return list(lost(dashboard, json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))))


def test_grafana_knows_each_field_of_the_dashboard() -> None:
    dashboard = json.loads((ROOT / "docs/grafana/hopwise.json").read_text())
    assert through_grafana(dashboard) == []
    dashboard["panels"][0]["gridPosition"] = dashboard["panels"][0].pop("gridPos")
    assert through_grafana(dashboard) == [".panels[0].gridPosition"]
