"""Places in a JSON document, for tests that put something else there."""

from collections.abc import Iterator
from typing import Any


def places(document: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a JSON document, but for its root."""
    steps = document.items() if isinstance(document, dict) else enumerate(document)
    for step, value in steps:
        yield (*at, step)
        if isinstance(value, dict | list):
            yield from places(value, (*at, step))
