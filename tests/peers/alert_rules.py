"""The alerts of the overlay `prometheus`, as they are and in a hurry."""

import re
from typing import Any

from mpijob_elastic.install import overlays
from mpijob_elastic.install.overlays import Overlay


def spec() -> Any:
    """Return the spec of the PrometheusRule, which is a rule file."""
    [rule] = [
        one for one in overlays.rendered(Overlay.PROMETHEUS) if one["kind"] == "PrometheusRule"
    ]
    return rule["spec"]


def hurried() -> Any:
    """Return the rule file with seconds for minutes, in `for` and in ranges; thresholds stay."""
    found = spec()
    for group in found["groups"]:
        for rule in group["rules"]:
            rule["expr"] = re.sub(r"(?<=\[)\w+(?=\])", _in_seconds, rule["expr"])
            if "for" in rule:
                rule["for"] = re.sub(r"\w+", _in_seconds, rule["for"])
    return found


def _in_seconds(duration: re.Match[str]) -> str:
    return f"{int(duration[0][:-1]) * {'m': 1, 'h': 60}[duration[0][-1]]}s"
