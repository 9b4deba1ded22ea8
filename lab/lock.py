"""File locks, which the kernel releases however their holder ends: one supervisor a lab, one builder at a time.

So the lock of a lab, and no pid, says whether it lives. Who holds it may clear away what a killed
lab has left.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.layout import Layout
from lab.node import cgroups
from lab.state import read_state

# A caller of `is_held` holds a free lock for some microseconds.
PATIENCE = 1.0  # seconds
# seconds that components may take to end after their supervisor; the kernel kills them at once
DYING = 10.0


@contextmanager
def held(layout: Layout) -> Iterator[bool]:
    """Hold the lock of a lab if it can be had within a second; yield whether it could.

    Creates the lab's directory.
    """
    deadline = time.monotonic() + PATIENCE
    while (descriptor := _try(layout)) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_held(layout: Layout) -> bool:
    """Tell whether a living supervisor (or a `down` at work) has this lab."""
    if not layout.lock.exists():
        return False
    descriptor = _try(layout)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def clear(layout: Layout) -> None:
    """Remove all files of a lab but its lock, which the caller holds.

    Raise LabError if another version wrote them.
    """
    state = read_state(layout)
    for identity in state.components.values() if state else ():
        identity.ends_within(DYING)
    cgroups.remove(cgroups.name(layout))
    for path in layout.root.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != layout.lock:
            path.unlink()


def _try(layout: Layout) -> int | None:
    layout.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The holder before us may have removed the file with the lab: then we hold a lock nobody
        # else can see.
        if os.path.samestat(os.fstat(descriptor), layout.lock.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


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
