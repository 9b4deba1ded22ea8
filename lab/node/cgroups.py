"""The real nodes' group in each cgroup hierarchy: the one thing of them that is the whole machine's, and its removal.

containerd puts the groups of all containers below one that is called /k8s.io on every node. So a
node has a cgroup namespace: its own group is all that it sees (`as_all_there_is`, and in mounts
`first`), and whatever it makes is in it.

A group is a directory, which no kernel removes for a lab that was killed. So a process that is not
tied to the supervisor, `python -m lab.node.cgroups NAME`, waits for its end and for that of the
nodes' processes, and removes it.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab.errors import LabError
from lab.layout import Layout
from lab.node import namespaces

PATIENCE = 30.0  # seconds until the last killed process is gone
POLL = 0.02
MOUNTS = Path("/proc/self/mounts")
KINDS = ("cgroup", "cgroup2")
PREFIX = "mpijob-lab-"  # of the names of all labs' groups
# Of the node's own processes. On v2 a group cannot have both processes and groups that have limits.
PROGRAMS = "programs"
_JOIN = 'until [ "$1" = -- ]; do echo 0 > "$1"; shift; done; shift; exec "$@"'


def name(layout: Layout) -> str:
    """Return the name of a lab's groups: other users may have labs of the same name."""
    return f"{PREFIX}{hashlib.sha256(os.fsencode(layout.root)).hexdigest()[:12]}"


def of_node(layout: Layout, node: str) -> str:
    """Return the name of a node's groups, below the lab's groups."""
    return f"{name(layout)}/{node}"


def hierarchies() -> list[Path]:
    """Return where cgroup hierarchies are mounted: one on cgroup v2, one for each controller on v1."""
    mounts = (line.split() for line in MOUNTS.read_text().splitlines())
    return [Path(mount[1]) for mount in mounts if mount[2] in KINDS]


def create(group: str) -> None:
    """Make the group in each hierarchy, and those above it, and one below it for programs."""
    for hierarchy in hierarchies():
        there = hierarchy
        for part in Path(group).parts:
            _delegate(there, hierarchy)
            there /= part
            _make(there)
        _make(there / PROGRAMS)


def _make(group: Path) -> None:
    group.mkdir(exist_ok=True)
    if (
        group / "cpuset.effective_cpus"
    ).exists():  # v1: nothing can be in the group before it has these
        for setting in ("cpuset.cpus", "cpuset.mems"):
            (group / setting).write_text((group.parent / setting).read_text())


def _delegate(group: Path, hierarchy: Path) -> None:
    """Enable all of the group's controllers for the groups below it, as cgroup v2 requires."""
    told = group / "cgroup.subtree_control"
    if group != hierarchy and told.exists():
        told.write_text(
            " ".join(f"+{one}" for one in (group / "cgroup.controllers").read_text().split())
        )


def as_all_there_is(group: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` in a cgroup namespace that begins with the group, among its programs."""
    return _joined(group, ["unshare", "--cgroup", *among_programs(group, command)])


def among_programs(group: str, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` in the group's part for programs, and else where we are."""
    return _joined(f"{group}/{PROGRAMS}", command)


def _joined(group: str, command: Sequence[str]) -> list[str]:
    files = [str(hierarchy / group / "cgroup.procs") for hierarchy in hierarchies()]
    return ["sh", "-ec", _JOIN, "sh", *files, "--", *command]


def remove(group: str) -> None:
    """Remove the group and those below it, once their processes have ended; raise LabError if they do not."""
    deadline = time.monotonic() + PATIENCE
    for hierarchy in hierarchies():
        while not _removed(hierarchy / group):
            if time.monotonic() > deadline:
                raise LabError(
                    f"{hierarchy / group} cannot be removed: a process in it does not end."
                )
            time.sleep(POLL)


def _removed(group: Path) -> bool:
    for directory, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            Path(directory).rmdir()
    return not group.exists()


@contextmanager
def removed_afterwards(group: str) -> Iterator[None]:
    """Have the group removed when the block or this process ends."""
    command = namespaces.module("lab.node.cgroups", group)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    ):
        yield  # then Popen closes the pipe, which is what is waited for, and awaits the end


def main() -> None:
    """Wait until nobody holds our standard input open, then remove the groups."""
    sys.stdin.read()
    remove(sys.argv[1])


if __name__ == "__main__":
    main()
