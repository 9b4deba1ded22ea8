"""JSON merge patches (RFC 7386), made and applied, to combine overlays.

Beyond the RFC, a list whose objects have the same names before and after (containers) is patched object by object:
two overlays may change different fields of one container.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch from `before` to `after`. Neither may hold a null, which in a patch means removal."""
    gone = {key: None for key in before if key not in after}
    changed = {key: _value(before.get(key), value) for key, value in after.items() if before.get(key) != value}
    return {**gone, **changed}


def patched(before: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `before` with the patch applied."""
    kept = {key: value for key, value in before.items() if key not in patch}
    return {**kept, **{key: _applied(before.get(key), value) for key, value in patch.items() if value is not None}}


@dataclass(frozen=True)
class _Each:
    """A patch for each object of a list."""

    patches: tuple[dict[str, Any], ...]


def _value(before: object, after: object) -> object:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return difference(before, after)
    if isinstance(before, list) and isinstance(after, list) and _names(before) == _names(after) != []:
        return _Each(tuple(difference(old, new) for old, new in zip(before, after, strict=True)))
    return after


def _names(objects: list[object]) -> list[object]:
    """Return the names of the objects; none if any object has no name."""
    names = [one.get("name") for one in objects if isinstance(one, Mapping)]
    return names if len(names) == len(objects) and None not in names else []


def _applied(before: object, value: object) -> object:
    if isinstance(value, _Each):
        assert isinstance(before, list)  # no overlay adds or removes a container
        return [patched(one, patch) for one, patch in zip(before, value.patches, strict=True)]
    if isinstance(value, Mapping):
        return patched(before if isinstance(before, Mapping) else {}, value)
    return value
