"""What only the command line needs of a capability: an optional interface beside `Capability`.

A capability that shows nothing of its own does not have it. Decisions never ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import Attached, JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Fact
from mpijob_elastic.model.pod import Launcher, Worker

F = TypeVar("F", bound=Fact)
# Returns what a capability knows of a job from the objects that are about the job.
Attach = Callable[[JobView, Collection[F]], Attached | None]


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[F]):
    """Objects from which a command learns what a capability knows of jobs."""

    resource: Resource
    #: Parses one object.
    read: Callable[[bytes], F]
    #: Returns the place of each object in its queue, by uid, given all objects.
    places: Callable[[Collection[F]], Mapping[str, int]] = lambda _: {}
    #: Returns the function that makes what is known of a job, given all objects.
    seeing: Callable[[Collection[F]], Attach[F]]


# Returns the objects that a command reads once for all such jobs; None if it need not.
ReadingOf = Callable[[JobFacts], "Reading[Any] | None"]


@dataclass(frozen=True, kw_only=True)
class Sizing(Generic[F]):
    """Objects from which a command learns who else sets the size of a job."""

    resource: Resource
    #: Parses one object.
    read: Callable[[bytes], F]
    #: Returns the owner of the size, in words; "" if the size has no other owner. It gets the
    #: objects of the job, or none if the command may not read them.
    owner: Callable[[JobView, Collection[F]], str]


class Turn(NamedTuple):
    """The queue in which a job is, and what of the job waits there."""

    queue: str
    #: What of the job waits; "" if nothing does.
    waiting: str = ""
    #: The place in the queue, 1 for the next; None if the place is not known.
    place: int | None = None
    #: The reason for the wait, in the queue's words.
    says: str = ""
    #: The command that shows more; "" for none.
    look: str = ""


class QueueWords(NamedTuple):
    """The words of a capability for one pod."""

    #: The phase of the pod, if the kubelet does not know that phase; "" otherwise.
    phase: str = ""
    #: The quota by which a worker runs; "" if it runs by no quota.
    quota: str = ""
    #: The reason why the scheduler has not tried the pod yet, without the subject; "" otherwise.
    waits: str = ""


class Shown:
    """What a capability shows of a job that may wait in a queue, or for its scheduler."""

    def turn(self, _state: JobState) -> Turn | None:
        """Return the queue in which the job is; None if it is in no queue."""
        return None

    def waits_for(self, _state: JobState) -> str:
        """Return the reason for which the job waits, in words; "" if the job does not wait."""
        return ""

    def state_word(self, _state: JobState) -> str:
        """Return the state of a job that may not run and whose status does not say so; else ""."""
        return ""

    def pod_words(self, _view: JobView, _pod: Launcher | Worker) -> QueueWords:
        """Return the words for a pod."""
        return QueueWords()


def shown_of(view: JobView) -> Iterator[Shown]:
    """Yield the capabilities of a job that show something of their own."""
    return (one for one in view.capabilities if isinstance(one, Shown))


def first_word(words: Iterator[str]) -> str:
    """Return the first word that is not empty; "" if there is none."""
    return next(filter(None, words), "")
