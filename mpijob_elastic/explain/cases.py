"""One worker that is to be explained, with everything that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpijob_elastic.decide.hosts import Next
from mpijob_elastic.explain.facts import Facts, Look, Pod
from mpijob_elastic.explain.findings import Finding, kubectl
from mpijob_elastic.model.job import JobView, Worker


@dataclass(frozen=True, kw_only=True)
class Case:
    """A worker by name; worker: its pod, None where there is none. following: the next step of the host list."""

    view: JobView
    facts: Facts
    now: float
    following: Next
    name: str
    worker: Worker | None

    @property
    def pod(self) -> Pod:
        """How its pod is."""
        return self.facts.pods.get(self.name, Pod())

    @property
    def look(self) -> Look | None:
        """What exec showed of it, None where nobody looked."""
        return self.facts.looks.get(self.name)

    @property
    def published(self) -> bool:
        """Whether discover_hosts.sh names it."""
        return self.name in self.view.host_of

    def kubectl(self, *words: str) -> str:
        """The command for the job's namespace."""
        return kubectl(self.view, *words)


# Gives the cause where it holds.
Check = Callable[[Case], Finding | None]


def first(checks: tuple[Check, ...], case: Case) -> Finding | None:
    """The first that holds."""
    return next((finding for finding in (check(case) for check in checks) if finding), None)
