"""A container's view of its ConfigMap over time, from a loop that runs in it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.processes import spawn

# Looks fifty times a second, which costs half a percent of a core, and tells of each change on one line.
_LOOP = """
import sys, time
seen = None
while True:
    with open(sys.argv[1]) as file:
        now = file.read()
    if now != seen:
        print(time.time(), repr(now), flush=True)
        seen = now
    time.sleep(0.02)
"""
_HOST = re.compile(r"echo ([^\s:]+):\d")


@dataclass(frozen=True, kw_only=True)
class Sight:
    """A new content of the file; at: seconds since the epoch, the node's clock being this machine's."""

    at: float
    content: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of a discover_hosts.sh."""
        return tuple(_HOST.findall(self.content))


class Watcher:
    """Read the output of such a loop so far."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def sights(self) -> list[Sight]:
        """All of them so far, in order."""
        return parse(self._output.read_text())


def parse(text: str) -> list[Sight]:
    """Read the loop's output; a line that is not complete yet, and what kubectl says besides, is left out."""
    lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()]
    told = (line.rstrip("\n").partition(" ") for line in lines)
    return [Sight(at=float(at), content=_unquoted(content)) for at, _, content in told]


def first(sights: Sequence[Sight], *, content: str) -> Sight | None:
    """The first sight of exactly this content."""
    return next((one for one in sights if one.content == content), None)


@contextmanager
def watched(cluster: Cluster, *, namespace: str, pod: str, path: str, output: Path) -> Iterator[Watcher]:
    """Watch a file in a pod that has Python, for as long as the block lasts."""
    kubectl = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace]
    command = [*kubectl, "exec", pod, "--", "python3", "-c", _LOOP, path]
    process = spawn(command, log=output, environment=os.environ)
    try:
        yield Watcher(output)
    finally:
        process.kill()
        process.wait()


def _unquoted(text: str) -> str:
    value = ast.literal_eval(text)
    assert isinstance(value, str)
    return value
