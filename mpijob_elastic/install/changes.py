"""The outcome for each object with its difference."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from mpijob_elastic.install.objects import Identity, own_metadata


class Outcome(StrEnum):
    """The words of `kubectl apply`; skipped: the API server does not serve the kind, or the object was left alone."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    DELETED = "deleted"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One object's outcome. difference: a unified diff of an object that changed; note: anything to add."""

    identity: Identity
    outcome: Outcome
    difference: str = ""
    note: str = ""


# Tells the user of an object, or of anything else in words.
Say = Callable[[Change | str], None]
# Asks the user to confirm.
Ask = Callable[[], bool]


def changed(one: Identity, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Change:
    """Return the change from the live object `before` (None: there was none) to `after`."""
    if before is None:
        return Change(identity=one, outcome=Outcome.CREATED)
    old, new = _content(before), _content(after)
    if old == new:
        return Change(identity=one, outcome=Outcome.UNCHANGED)
    difference = "\n".join(difflib.unified_diff(_lines(old), _lines(new), "live", "wanted", lineterm=""))
    return Change(identity=one, outcome=Outcome.CONFIGURED, difference=difference)


def _content(live: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": own_metadata(live)}


def _lines(content: Mapping[str, Any]) -> list[str]:
    return yaml.safe_dump(content, sort_keys=True).splitlines()
