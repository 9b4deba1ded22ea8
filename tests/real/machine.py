"""Traces that a lab could leave on the machine around it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.node import cgroups, first, switch
from lab.node.addresses import Place, places
from lab.state import State

KINDS = ("pid", "mnt", "net")
_CONTAINER = re.compile(
    r"[0-9a-f]{64}"
)  # how containerd names sandboxes and containers, and runc their groups


@dataclass(frozen=True, kw_only=True)
class Machine:
    """State that a careless lab changes: interfaces, mounts, firewall rules, kernel settings, directories, cgroups."""

    interfaces: list[str]
    mounts: list[str]
    rules: list[str]
    settings: list[str]
    directories: list[str]
    groups: list[str]

    @classmethod
    def now(cls) -> "Machine":
        links = subprocess.run(
            ["ip", "-oneline", "link"], capture_output=True, text=True, check=True
        ).stdout
        mounts = Path("/proc/self/mounts").read_text()
        above = [Path(path) for path in ("/var/lib", "/var/log", "/run", "/opt", "/etc/cni")]
        return cls(
            interfaces=[line.split(": ")[1] for line in links.splitlines()],
            mounts=sorted(line.split()[1] for line in mounts.splitlines()),
            rules=_rules(),
            settings=[(Path("/proc/sys") / name).read_text() for name in first.TUNABLES],
            directories=[
                str(one) for path in above if path.is_dir() for one in sorted(path.iterdir())
            ],
            groups=sorted(
                str(group) for hierarchy in cgroups.hierarchies() for group in _foreign(hierarchy)
            ),
        )


def _rules() -> list[str]:
    """The firewall's rules without their counters."""
    if shutil.which("iptables-save") is None:
        return []
    lines = subprocess.run(
        ["iptables-save"], capture_output=True, text=True, check=False
    ).stdout.splitlines()
    return [line.partition(" [")[0] for line in lines if not line.startswith("#")]


def namespaces(state: State) -> set[str]:
    """Return the namespaces of all real nodes, and of the network between them."""
    nodes = [namespaces_of(state, place) for place in places(state.options.real_nodes)]
    return set().union(*nodes, _links(state, switch.COMPONENT, "net"))


def namespaces_of(state: State, place: Place) -> set[str]:
    """Return the namespaces of one real node."""
    return _links(state, place.name, "pid_for_children", "mnt", "net")


def _links(state: State, component: str, *names: str) -> set[str]:
    there = Path(f"/proc/{state.components[component].pid}/ns")
    return {str((there / name).readlink()) for name in names}


def processes_in(wanted: set[str]) -> list[str]:
    """Command lines of all processes in any of these namespaces."""
    return [
        text
        for process in Path("/proc").glob("[0-9]*")
        if (text := _if_in(process, wanted)) is not None
    ]


def _if_in(process: Path, wanted: set[str]) -> str | None:
    try:
        there = {str((process / "ns" / kind).readlink()) for kind in KINDS}
        return (process / "cmdline").read_text() if there & wanted else None
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return None


def groups(name: str) -> list[Path]:
    """The cgroups of that name. While there is a process in one, it stays."""
    all_of_them = (hierarchy / name for hierarchy in cgroups.hierarchies())
    return [group for group in all_of_them if group.exists()]


def containers(group: Path) -> list[Path]:
    """The cgroups of containers and sandboxes at whatever depth below one."""
    return [
        path
        for directory, _, _ in os.walk(group)
        if _CONTAINER.fullmatch((path := Path(directory)).name)
    ]


def _foreign(hierarchy: Path) -> Iterator[Path]:
    """All cgroups at the top, and all of containers, but those of labs.

    Others come and go as systemd likes.
    """
    for top in hierarchy.iterdir():
        if top.is_dir() and not top.name.startswith(cgroups.PREFIX):
            yield top
            yield from containers(top)
