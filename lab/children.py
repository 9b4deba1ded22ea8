"""The components that a supervisor runs: started, watched, and all ended with it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Self

from lab.components import Component
from lab.errors import LabError
from lab.layout import Layout
from lab.processes import LOG_LINES, Identity, spawn

LOST_PORT = "address already in use"


class ComponentEndedError(LabError):
    """A component ended by itself; `lost_port` if another program had taken its port meanwhile."""

    def __init__(self, name: str, code: int, log: Path) -> None:
        text = log.read_text(errors="replace")
        tail = "\n".join(text.splitlines()[-LOG_LINES:])
        how = (
            f"was killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with exit code {code}"
        )
        super().__init__(f"{name} {how}. The end of {log}:\n{tail}")
        self.lost_port = LOST_PORT in text


class Children:
    """Running components; a context manager that leaves none of them."""

    def __init__(self, layout: Layout, *, environment: Mapping[str, str]) -> None:
        self._layout = layout
        self._environment = environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end_all()

    def start(self, component: Component) -> None:
        """Start a component; its output goes to a new log."""
        log = self._layout.log(component.name)
        log.unlink(missing_ok=True)
        self._running[component.name] = spawn(
            component.command, log=log, environment=self._environment
        )

    def check(self) -> None:
        """Raise ComponentEndedError if any component has ended."""
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                raise ComponentEndedError(name, code, self._layout.log(name))

    def identities(self) -> dict[str, Identity]:
        """Return who they are, by name; raise ComponentEndedError if one is no more."""
        self.check()
        return {name: Identity.of(process.pid) for name, process in self._running.items()}

    def end(self, killed: Identity, names: Collection[str]) -> None:
        """Kill a process, and wait for the ends of those components, if they run, that end by that."""
        killed.signal(signal.SIGKILL)
        for name in self._running.keys() & set(names):
            self._running.pop(name).wait()

    @contextlib.contextmanager
    def pidfds(self) -> Iterator[list[int]]:
        """Yield a pidfd for each component, readable once it ends."""
        pidfds = [os.pidfd_open(process.pid) for process in self._running.values()]
        try:
            yield pidfds
        finally:
            for pidfd in pidfds:
                os.close(pidfd)

    def end_all(self) -> None:
        """Kill all components at once and wait for their ends: a lab keeps nothing that a graceful end would save."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()
        self._running.clear()
