"""JSON patches (RFC 6902) that fail if the object has changed since they were made.

A `test` of the value that is replaced, or of the object that gets a key, precedes every operation: a change that
somebody else makes between our read and our write is never undone.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]
Patch = tuple[Operation, ...]


def guarded(before: Mapping[str, Any], after: Mapping[str, Any], *, at: str = "") -> Patch:
    """Return the operations from `before`, at the JSON pointer `at`, to `after`; none if they are equal."""
    return tuple(_mapping(before, after, at))


def _mapping(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> Iterator[Operation]:
    added = [key for key in after if key not in before]
    if added:
        yield {"op": "test", "path": at, "value": dict(before)}
    for key in before:
        path = f"{at}/{_escaped(key)}"
        if key not in after:
            yield from ({"op": "test", "path": path, "value": before[key]}, {"op": "remove", "path": path})
        else:
            yield from _value(before[key], after[key], path)
    for key in added:
        yield {"op": "add", "path": f"{at}/{_escaped(key)}", "value": after[key]}


def _value(before: Any, after: Any, path: str) -> Iterator[Operation]:  # noqa: ANN401 - JSON
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _mapping(before, after, path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _value(old, new, f"{path}/{index}")
    elif _differ(before, after):
        yield {"op": "test", "path": path, "value": before}
        yield {"op": "replace", "path": path, "value": after}


def _differ(before: object, after: object) -> bool:
    # In Python 1 and True are equal, in JSON they are not.
    return before != after or isinstance(before, bool) != isinstance(after, bool)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
