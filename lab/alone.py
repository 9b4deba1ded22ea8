"""Lets one process at a time make what all share, by a file lock that the kernel releases however its holder ends."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(lock: Path, say: Callable[[str], None], *, what: str) -> Iterator[None]:
    """Hold the lock; where another process that builds `what` has it, say so and wait."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that builds {what}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
