"""Sightings of a mounted ConfigMap, with times, printed by a loop that runs in the container."""

import ast
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.processes import spawn

# Read the file fifty times a second, which costs half a percent of a core, and print each change on a line.
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
    """A new content of the file; at: seconds since the epoch. Node and machine have the same clock."""

    at: float
    content: str

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts of a discover_hosts.sh."""
        return tuple(_HOST.findall(self.content))


class Watcher:
    """Reader of the output of such a loop."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def sights(self) -> list[Sight]:
        """Return all sights so far, in order: without an incomplete line, and without messages of kubectl."""
        text = self._output.read_text()
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n") and line[0].isdigit()]
        told = (line.rstrip("\n").partition(" ") for line in lines)
        return [Sight(at=float(at), content=str(ast.literal_eval(content))) for at, _, content in told]


def first(sights: Sequence[Sight], *, content: str) -> Sight | None:
    """Return the first sight of exactly this content."""
    return next((sight for sight in sights if sight.content == content), None)


@contextmanager
def watched(cluster: Cluster, *, namespace: str, pod: str, path: str, output: Path) -> Iterator[Watcher]:
    """Watch a file in a pod that has Python, during the block."""
    kubectl = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "--namespace", namespace]
    command = [*kubectl, "exec", pod, "--", "python3", "-c", _LOOP, path]
    process = spawn(command, log=output, environment=os.environ)
    try:
        yield Watcher(output)
    finally:
        process.kill()
        process.wait()
