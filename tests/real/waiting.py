"""Waiting for what a training job does."""

import time
from collections.abc import Callable
from typing import TypeVar

POLL = 0.5  # seconds

T = TypeVar("T")


def until(what: str, look: Callable[[], T | None], *, patience: float = 180.0) -> T:
    """Return what `look` finds, as soon as that is not None; fail after `patience` seconds."""
    deadline = time.monotonic() + patience
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what}"
        time.sleep(POLL)
    return found
