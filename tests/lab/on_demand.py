"""Programs that run for several tests: started when the first test asks for one, stopped when a test does not."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

from lab.cluster import Cluster
from lab.processes import Identity

SHOWN = 30  # lines of a log


class Program(Protocol):
    """A program that runs, by its process and its log."""

    @property
    def pid(self) -> int:
        """Its process ID."""

    @property
    def log(self) -> Path:
        """What it prints."""


P = TypeVar("P", bound=Program)


@dataclass(frozen=True, kw_only=True)
class _Running:
    program: Program
    cluster: Cluster
    identity: Identity
    end: ExitStack


class OnDemand:
    """The programs of a session by name.

    A test gets what it asks for, and nothing else runs beside it.
    """

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def get(self, name: str, cluster: Cluster, start: Callable[[], AbstractContextManager[P]]) -> P:
        """Return the program of that name; start it if it does not run there, or ended in an earlier test."""
        found = self._running.get(name)
        if found and not (found.cluster is cluster and found.identity.alive()):
            self.stop(name)
            found = None
        if not found:
            end = ExitStack()
            program = end.enter_context(start())
            found = _Running(
                program=program, cluster=cluster, identity=Identity.of(program.pid), end=end
            )
            self._running[name] = found
        return cast("P", found.program)

    def keep(self, names: Collection[str]) -> None:
        """Stop the programs of all other names, the last to start first."""
        for name in reversed([*self._running]):
            if name not in names:
                self.stop(name)

    def stop(self, name: str) -> None:
        """Stop the program of that name, if it runs."""
        if found := self._running.pop(name, None):
            found.end.close()

    def ends(self) -> list[tuple[str, str]]:
        """Return a title and the end of the log of each program."""
        texts = {
            name: found.program.log.read_text(errors="replace")
            for name, found in self._running.items()
        }
        return [
            (f"end of the log of {name}", "\n".join(text.splitlines()[-SHOWN:]))
            for name, text in texts.items()
        ]
