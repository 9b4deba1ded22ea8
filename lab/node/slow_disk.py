"""A real node whose containers read slowly from its disk: nothing of its images is in memory, and their groups are bounded."""

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError
from lab.layout import Layout
from lab.node import cgroups
from lab.node.addresses import CONTAINERD, Place

# The file of a group that bounds what it reads of a disk, and its text: of cgroup v2, and of v1.
BOUNDS: Mapping[str, str] = {
    "io.max": "{disk} rbps={speed}",
    "blkio.throttle.read_bps_device": "{disk} {speed}",
}
POLL = 0.01  # seconds
# The groups of containers below that of their node (lab.node.cgroups).
_CONTAINERS = "k8s.io/*/"


@contextmanager
def slow(layout: Layout, place: Place, *, speed: int) -> Iterator[None]:
    """Let each container that begins on the node during the block read at most `speed` bytes a second.

    The page cache has none of the node's images at first. Raise LabError where no group is bounded.
    """
    disk = _disk(place.lib(layout))
    group = cgroups.of_node(layout, place.name)
    found = [one / group for one in cgroups.hierarchies()]
    files = [one / name for one in found for name in BOUNDS if (one / name).exists()]
    if not files:
        raise LabError("no cgroup hierarchy of this machine bounds what is read of a disk.")
    _forget(place.there(layout, CONTAINERD))
    file, over = files[0], threading.Event()
    text = BOUNDS[file.name].format(disk=disk, speed=speed)
    watch = threading.Thread(target=_bound_all, args=(file.name, text, file.parent, over))
    watch.start()
    try:
        yield
    finally:
        over.set()
        watch.join()


def _disk(path: Path) -> str:
    """Return the number of the whole disk that a path is on, as MAJOR:MINOR; raise LabError."""
    number = path.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if (device / "partition").exists():
        device = device.parent
    if not (device / "dev").exists():
        raise LabError(f"{path} is on no disk of this machine whose reads can be bounded.")
    return (device / "dev").read_text().strip()


def _forget(folder: Path) -> None:
    """Drop the files of a folder from the page cache, but for those that a process has mapped."""
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bound_all(file: str, text: str, node: Path, over: threading.Event) -> None:
    """Write a text to this file of each container's group that comes on the node."""
    seen = set(node.glob(_CONTAINERS))
    while not over.wait(POLL):
        for group in set(node.glob(_CONTAINERS)) - seen:
            seen.add(group)
            with contextlib.suppress(OSError):  # the container has ended
                (group / file).write_text(text)
