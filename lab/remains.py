"""Clears away what a lab that was killed has left. The caller holds the lab's lock."""

import shutil

from lab.layout import Layout
from lab.node import cgroups
from lab.state import read_state

DYING = 10.0  # seconds that components may take to end after their supervisor; the kernel kills them at once


def clear(layout: Layout) -> None:
    """Remove all files of a lab but its lock; raise LabError if they are of another version of the lab."""
    state = read_state(layout)
    for identity in state.components.values() if state else ():
        identity.ends_within(DYING)
    cgroups.remove(cgroups.name(layout))
    for path in layout.root.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path != layout.lock:
            path.unlink()
