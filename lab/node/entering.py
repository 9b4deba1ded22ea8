"""How a process gets into the node's namespaces: as the first one, or where the node is already."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parents[2]
_UNSHARE = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


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
    kinds = {"mount": "mnt", "net": "net", "pid": "pid_for_children"}
    return ["nsenter", *(f"--{kind}={namespaces / file}" for kind, file in kinds.items()), "--", *command]


def network_namespace(node: int) -> Path:
    """Path of the node's network namespace."""
    return Path(f"/proc/{node}/ns/net")


def is_root() -> bool:
    """Tell whether we may make namespaces without a user namespace."""
    return os.geteuid() == 0
