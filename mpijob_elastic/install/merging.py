"""JSON merge patches (RFC 7386), made and applied: how overlays are put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The patch that makes `after` of `before`. Neither may hold a null, which in a patch means removal."""
    gone = {key: None for key in before if key not in after}
    changed = {key: _value(before.get(key), value) for key, value in after.items() if before.get(key) != value}
    return {**gone, **changed}


def patched(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """What the patch makes of `before`."""
    kept = {key: value for key, value in before.items() if key not in patch}
    return {**kept, **{key: _applied(before.get(key), value) for key, value in patch.items() if value is not None}}


def _value(before: object, after: object) -> object:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return difference(before, after)
    return after


def _applied(before: object, value: object) -> object:
    if isinstance(value, Mapping):
        return patched(before if isinstance(before, Mapping) else {}, value)
    return value
