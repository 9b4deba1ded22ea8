"""The JSON of a Grafana dashboard (schema 39, Grafana 10 and later) from rows of panels.

https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# The PodMonitor's interval; Grafana makes $__rate_interval four times as long.
_SCRAPES = "30s"
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _IN_A_ROW = 8, 8, 3


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query and the legend of its lines; `{{label}}` in it stands for a label's value."""

    promql: str
    legend: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart of lines; bars: of bars on top of one another; number: only the latest value."""

    title: str
    about: str
    queries: tuple[Query, ...]
    unit: str = "short"
    bars: bool = False
    number: bool = False


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A variable that stands for the values that a user chooses among those that a query yields."""

    name: str
    of: str


def dashboard(
    *, uid: str, title: str, about: str, choices: Iterable[Choice], rows: Mapping[str, tuple[Panel, ...]]
) -> str:
    """Return the JSON, with a line for each panel: a diff shows which panel has changed."""
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    settings = {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": [uid],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [source, *map(_variable, choices)]},
    }
    panels = ",\n".join(map(json.dumps, _placed(rows)))
    return f'{json.dumps(settings)[:-1]}, "panels": [\n{panels}\n]}}\n'


def _variable(choice: Choice) -> dict[str, Any]:
    return {
        "name": choice.name,
        "label": choice.name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": choice.of, "refId": choice.name},
        "refresh": 2,  # whenever the time changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _placed(rows: Mapping[str, tuple[Panel, ...]]) -> Iterator[dict[str, Any]]:
    """Yield the rows' titles and their panels, from top to bottom, left to right."""
    number = y = 0
    for title, panels in rows.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}, "panels": []}
        y += 1
        for index, panel in enumerate(panels):
            number += 1
            row, column = divmod(index, _IN_A_ROW)
            place = {"x": column * _WIDTH, "y": y + row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            yield {"id": number, "gridPos": place, **_drawn(panel)}
        y += -(-len(panels) // _IN_A_ROW) * _HEIGHT


def _drawn(panel: Panel) -> dict[str, Any]:
    bars = {"drawStyle": "bars", "fillOpacity": 80, "stacking": {"mode": "normal", "group": "A"}}
    style = bars if panel.bars else {}
    return {
        "type": "stat" if panel.number else "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "interval": _SCRAPES,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": style}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "expr": query.promql, "legendFormat": query.legend}
            for index, query in enumerate(panel.queries)
        ],
    }
