"""Commands that run in a node's namespaces: the first process, and later processes."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parents[2]
_UNSHARE = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


def new_network(*command: str) -> list[str]:
    """Return a command that runs `command` in a network namespace of its own."""
    return ["unshare", "--net", *command]


def first(*command: str) -> list[str]:
    """Return a command that runs `command` as the first process of new namespaces, which end with it."""
    return [*_UNSHARE, *command]


def module(name: str, *arguments: str) -> list[str]:
    """Return a command that runs a module of the lab, which is not installed, in whatever environment."""
    return ["env", f"PYTHONPATH={SOURCE}", sys.executable, "-m", name, *arguments]


def inside(node: int, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` on the node; `node` is the pid of the `unshare` that holds its namespaces.

    That process is in all of them but the PID namespace, which only its child is in.
    """
    namespaces = Path(f"/proc/{node}/ns")
    kinds = {"mount": "mnt", "net": "net", "pid": "pid_for_children", "cgroup": "cgroup"}
    return [
        "nsenter",
        *(f"--{kind}={namespaces / file}" for kind, file in kinds.items()),
        "--",
        *command,
    ]


def in_network(process: int, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` in the network namespace of a process, and else where we are."""
    return ["nsenter", f"--net={network_namespace(process)}", "--", *command]


def network_namespace(process: int) -> Path:
    """Path of a process's network namespace."""
    return Path(f"/proc/{process}/ns/net")


def first_of(node: int) -> int:
    """Return the pid of the first process of the node whose `unshare` has the pid `node`; raise OSError."""
    return int(Path(f"/proc/{node}/task/{node}/children").read_text())


def is_root() -> bool:
    """Tell whether we may make namespaces without a user namespace."""
    return os.geteuid() == 0
