"""One worker to explain, with everything that is known about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import host_list, launcher_refresh
from mpijob_elastic.decide.host_list import Next
from mpijob_elastic.explain.facts import Facts, Look, Pod
from mpijob_elastic.explain.findings import Finding, kubectl
from mpijob_elastic.model.job import JobView, Worker


@dataclass(frozen=True, kw_only=True)
class Case:
    """A worker by name; worker: its pod, None where there is none.

    following: the next step of the host list. refresh_due: the launcher has yet to be touched for the published list;
    shown_at: when it was.
    """

    view: JobView
    facts: Facts
    now: float
    following: Next
    refresh_due: bool
    shown_at: float | None
    name: str = ""
    worker: Worker | None = None

    @property
    def pod(self) -> Pod:
        """The state of its pod."""
        return self.facts.pods.get(self.name, Pod())

    @property
    def look(self) -> Look | None:
        """The result of an exec into it, None where nobody looked."""
        return self.facts.looks.get(self.name)

    @property
    def published(self) -> bool:
        """True if discover_hosts.sh names it."""
        return self.name in self.view.host_of

    def kubectl(self, *words: str) -> str:
        """Return a kubectl command for the job's namespace."""
        return kubectl(self.view, *words)

    @property
    def describe(self) -> str:
        """The command that describes its pod."""
        return self.kubectl("describe pod", self.name)

    @property
    def controller_log(self) -> str:
        """The command that prints the controller's log."""
        return f"kubectl -n {self.facts.home} logs deployment/{names.CONTROLLER}"


def of_job(view: JobView, facts: Facts, *, now: float) -> Case:
    """Return the case of a job without a worker in it."""
    return Case(
        view=view,
        facts=facts,
        now=now,
        following=host_list.following(view, now=now),
        refresh_due=launcher_refresh.is_due(view, now=now),
        shown_at=launcher_refresh.shown_at(view, now=now),
    )


# Returns the finding where the cause holds; its words continue the object's name.
Check = Callable[[Case], Finding | None]


def first(checks: tuple[Check, ...], case: Case) -> Finding | None:
    """Return the first finding that holds, with the object's name."""
    found = next((finding for finding in (check(case) for check in checks) if finding), None)
    return found.about(case.name) if found else None
