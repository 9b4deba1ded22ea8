"""The interface of an optional capability of a job: what it wants of the core, and what it does.

A capability says what it wants by wishes (see `wishes`), and the core carries these out with its
safety rules. What only the command line needs stands in the optional interface `shown.Shown`, and
what the webhook needs in `Admission`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import Step, When
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import Attached, JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.json_parts import Owned
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Objects of ours that hold quota until they are deleted."""

    resource: Resource
    #: The label selector of the objects.
    selector: str
    #: Parses one object, and returns it with its owner while it holds quota; else None.
    read: Callable[[bytes], Owned | None]


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a capability remembers with a write of the host list."""

    #: The name of the entry in the job's memory.
    name: str
    #: The entry, as JSON of at most 1 KiB that only the capability reads.
    json: bytes
    #: Annotations of the ConfigMap that are written together with a new entry.
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: The Events for the user once the entry is written.
    notes: tuple[Note, ...] = ()


class Capability(Attached):
    """An optional capability of one job.

    By default it wants and does nothing.
    """

    #: The author of its wishes, in a word.
    name: ClassVar[str]

    @classmethod
    def asked(
        cls, _job: MPIJob, _known: Policy
    ) -> tuple[CapabilityFacts | None, Sequence[Problem]]:
        """Return the request of an MPIJob, or None; and the problems of its values."""
        return None, ()

    @classmethod
    def told(cls, _view: JobView) -> Capability | None:
        """Return the capability, from the job's own objects; None if they do not concern it."""
        return None

    def wishes(self, _view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002 - asked for by name
        """Yield the wishes, from facts alone; `now` in seconds since the epoch."""
        return ()

    def notes(self, _state: JobState) -> Iterable[Note]:
        """Yield the notices that hold now."""
        return ()

    def writes(self, _state: JobState, _when: When) -> Iterable[Step[Action]]:
        """Yield the own writes that are due at this moment, and when to look again for others."""
        return ()

    def remember(self, _state: JobState, _published: Collection[str]) -> Iterable[Record]:
        """Yield all that the memory shall hold for the capability while these pods are published.

        It is asked in each decision. A record that is not yielded is forgotten with the next write.
        """
        return ()

    def marks(self, _state: JobState) -> Iterable[tuple[str, str]]:
        """Yield annotations of the MPIJob that are to change, each with its new text, "" to remove.

        They are written together with the notices.
        """
        return ()

    def size_owner(self, _view: JobView) -> str:
        """Return the owner of the size besides the user, and the remedy; "" without an owner."""
        return ""


def of(view: JobView) -> tuple[Capability, ...]:
    """Return the capabilities of a job, in the order in which they speak."""
    if not view.capabilities:
        return ()  # most jobs
    return view.all_of(Capability)


def wishes(view: JobView, *, now: float) -> Iterable[Wish]:
    """Yield the wishes of all capabilities of a job."""
    for capability in of(view):
        yield from capability.wishes(view, now=now)


def own_writes(state: JobState, when: When) -> Sequence[Step[Action]]:
    """Return the own writes of all capabilities of a job that are due at this moment."""
    return [step for each in of(state.view) for step in each.writes(state, when)]
