"""One worker that is to be explained, with everything that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpijob_elastic.decide import host_list, launcher_refresh
from mpijob_elastic.decide.host_list import Next
from mpijob_elastic.explain.facts import Facts, Look, Pod
from mpijob_elastic.explain.findings import Finding, kubectl
from mpijob_elastic.model.job import JobView, Worker


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is the same for all workers of a job, found out once.

    following: the next step of the host list. untold, shown_at: whether the launcher has yet to be touched for what is
    published now, and when it was.
    """

    view: JobView
    facts: Facts
    now: float
    following: Next
    untold: bool
    shown_at: float | None


def known(view: JobView, facts: Facts, *, now: float) -> Known:
    """All of that."""
    return Known(
        view=view,
        facts=facts,
        now=now,
        following=host_list.following(view, now=now),
        untold=launcher_refresh.is_due(view, now=now),
        shown_at=launcher_refresh.shown_at(view, now=now),
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A worker by name; worker: its pod, None where there is none."""

    known: Known
    name: str
    worker: Worker | None

    @property
    def view(self) -> JobView:
        """The job."""
        return self.known.view

    @property
    def facts(self) -> Facts:
        """What only people ask for."""
        return self.known.facts

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.known.now

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
