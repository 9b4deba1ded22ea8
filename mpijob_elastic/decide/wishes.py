"""What capabilities want of a job, and how several wishes combine: the whole truth about two capabilities that meet.

A capability says what it wants and why. The mechanisms of the core carry that out, with their
safety rules. A wish comes from facts alone: no capability sees what another wants, so one pass
does, and their order decides only who speaks first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts, Known
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, Signs, Worker
from mpijob_elastic.model.policy import Annotation, Policy, Problem
from mpijob_elastic.model.wire import Fact, Owned

if TYPE_CHECKING:
    from mpijob_elastic.decide.state import JobState

F = TypeVar("F", bound=Fact)
# Returns what is known of a job by the objects that are about it.
See = Callable[[JobView, Collection[F]], Known | None]


class How(IntEnum):
    """How a worker leaves; of two wishes for one worker the first here counts."""

    END = 0  # it is not wanted: it drains, we delete it, and nobody counts how often
    REPLACE = 1  # it is useless where it is: it is made again, counted and at a back-off
    # it trains, and does so elsewhere soon, counted, and never so that fewer than the least workers
    # stay
    MOVE = 2


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Something that a capability wants of the core."""

    #: The time at which the wish ends by the clock and the job is looked at again (seconds since the
    #: epoch); None if only facts end the wish.
    until: float | None = None


@dataclass(frozen=True, kw_only=True)
class Manage(Wish):
    """Another controller manages the job."""

    #: The reason, in words.
    why: str
    #: The notice that the user gets once; None while its words are not known.
    note: Note | None


@dataclass(frozen=True, kw_only=True)
class Stop(Wish):
    """Nothing of an elastic job may run."""

    #: What suspends the job, in words.
    why: str
    #: The command that ends the suspension, after `kubectl -n NAMESPACE`; "" if the user has none.
    ends_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Hold(Wish):
    """A pod with a gate of ours may not start, because `why`."""

    pod: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Place(Wish):
    """Changes written to a pod together with the removal of its gates, and `words` for the Event."""

    pod: str
    adds: tuple[str, ...]
    words: str


@dataclass(frozen=True, kw_only=True)
class Release:
    """Another controller deletes the leaving worker once its pod carries `annotation: mark`."""

    annotation: str
    mark: str
    #: The pod carries the annotation.
    done: bool


@dataclass(frozen=True, kw_only=True)
class Leave(Wish):
    """A worker leaves."""

    #: The name of the pod.
    pod: str
    how: How
    #: The reason, in words.
    why: str
    #: The earliest time of a REPLACE (seconds since the epoch).
    after: float = 0.0
    #: The way in which another controller deletes the worker; None if we delete it.
    release: Release | None = None


@dataclass(frozen=True, kw_only=True)
class Relaunch(Wish):
    """A launcher that has not started is made again, because it `why`, and not before `after`."""

    why: str
    after: float


@dataclass(frozen=True, kw_only=True)
class End(Wish):
    """The launcher ends as Failed, and the job with it."""

    note: Note


@dataclass(frozen=True, kw_only=True)
class Keep(Wish):
    """The job must not be deleted yet, although it has finished."""


@dataclass(frozen=True, kw_only=True)
class Ration(Wish):
    """Another controller lets workers start one by one, so a job may ask for all of them."""

    #: The controller, in words.
    by: str
    #: False while nobody knows whether it does.
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[F]):
    """Objects by which a command knows a capability, and what all say of a job; places: where each stands, by uid."""

    resource: Resource
    read: Callable[[bytes], F]
    places: Callable[[Collection[F]], Mapping[str, int]] = lambda _: {}
    seeing: Callable[[Collection[F]], See[F]]


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Objects of ours, selected by labels, that hold quota until they are deleted; read: their owner while they do."""

    resource: Resource
    selector: str
    read: Callable[[bytes], Owned | None]


@dataclass(frozen=True, kw_only=True)
class Sizing(Generic[F]):
    """Objects by which a command knows who else sets the size of a job.

    owner: who does, in words, "" if nobody; it gets those of the job, none where nobody may read
    them.
    """

    resource: Resource
    read: Callable[[bytes], F]
    owner: Callable[[JobView, Collection[F]], str]


class Turn(NamedTuple):
    """The queue in which a job is, what of it waits there, "" for nothing, and why, in the queue's words.

    place: 1 is the next, None where that is not known.
    """

    queue: str
    waiting: str = ""
    place: int | None = None
    says: str = ""


class Capability(Known):
    """An optional capability of one job: what it wants of the core, and what it does itself.

    By default nothing.

    annotations: of MPIJobs. groups: labels and annotations of pods that their scheduler starts
    together. pod_marks: annotations of workers that it reads. cause: by what workers leave as it
    wishes, in a word for the history.
    """

    annotations: Sequence[Annotation] = ()
    groups: Collection[str] = ()
    pod_marks: Collection[str] = ()
    holding: Holding | None = None
    cause: str = ""

    @classmethod
    def asked(cls, _job: MPIJob, _known: Policy) -> tuple[Known | None, Sequence[Problem]]:
        """Return the request of an MPIJob (None without a request), and the problems of its values."""
        return None, ()

    @classmethod
    def told(cls, _view: JobView) -> Capability | None:
        """Return the capability, from the job's own objects; None if they do not concern it."""
        return None

    @classmethod
    def node_signs(cls, _more: Iterable[str], _ignored: Iterable[str]) -> Signs | None:
        """Return the signs that a node is about to go; None from a capability without signs.

        Raises ValueError.

        more: other signs than the usual; ignored: those that never count.
        """
        return None

    def wishes(self, _view: JobView, *, now: float) -> Iterable[Wish]:  # noqa: ARG002 - asked for by name
        """Yield the wishes, from facts alone; `now` in seconds since the epoch."""
        return ()

    def prepare(self, _state: JobState) -> Action | None:
        """Return the own write that must be done before pods start, or None."""
        return None

    def due(self, _state: JobState) -> Iterable[Action]:
        """Yield the own writes that are due, whoever manages the job."""
        return ()

    def remember(
        self, _state: JobState, _published: Collection[str]
    ) -> Iterable[tuple[str, bytes]]:
        """Yield records to store once these pods are published: a name, and JSON of at most 1 KiB."""
        return ()

    def marks(self, _state: JobState) -> Iterable[tuple[str, str]]:
        """Yield annotations of the MPIJob that are to change, with their new texts, "" for none: beside the notices."""
        return ()

    def size_owner(self, _view: JobView) -> str:
        """Return who sets the size besides the user, and the remedy; "" if nobody does."""
        return ""

    def resize(self, _state: JobState) -> tuple[Action | None, float | None]:
        """Return the write of another size, or None; and when to look again.

        Asked while a driver may train.
        """
        return None, None

    def remove(self, _state: JobState) -> tuple[Action | None, float | None]:
        """Return the deletion of a finished job, or None; and when to look again."""
        return None, None

    def notes(self, _state: JobState) -> Iterable[Note]:
        """Yield the notices that hold now."""
        return ()

    def waits_for(self, _state: JobState) -> str:
        """Return the reason for which the job waits, in words; "" if the job does not wait."""
        return ""

    @classmethod
    def reading(cls, _job: JobFacts) -> Reading[Any] | None:
        """Return the objects that a command reads once for all such jobs; None if it need not."""
        return None

    @classmethod
    def sizing(cls) -> Sizing[Any] | None:
        """Return the objects that a command reads before it sets a size; None if it need not."""
        return None

    def state_word(self, _state: JobState) -> str:
        """Return the state of a job of which the operator does not know that nothing may run, "" if it knows."""
        return ""

    def phase_word(self, _pod: Launcher | Worker) -> str:
        """Return the phase of a pod that the kubelet does not know, "" if it knows."""
        return ""

    def quota_word(self, _view: JobView, _pod: Worker) -> str:
        """Return by which quota a worker runs, "" for none."""
        return ""

    def turn(self, _state: JobState) -> Turn | None:
        """Return the queue in which the job is, None if it is in none."""
        return None


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is wanted of a job, combined.

    stop: by what it is suspended, "" if it is not; stopped_by: who said so first. leaves, places:
    by pod. held: pods that may not start, and why. rationed_by: who lets workers start one by one;
    is_rationed: None while that is not known. until: when the first wish ends by itself.
    """

    capabilities: tuple[Capability, ...] = ()
    manage: Manage | None = None
    stop: str = ""
    stopped_by: Capability | None = None
    stop_ends_by: str = ""
    leaves: Mapping[str, Leave] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    relaunch: Relaunch | None = None
    end: End | None = None
    keeps: bool = False
    rationed_by: tuple[str, ...] = ()
    is_rationed: bool | None = False
    until: float | None = None


NOTHING = Wishes()


def gather(view: JobView, *, now: float) -> Wishes:
    """Return the wishes of all capabilities of a job, combined."""
    capabilities = cast("tuple[Capability, ...]", view.capabilities)
    found: dict[type[Wish], list[Any]] = defaultdict(list)
    stopped_by: Capability | None = None
    for one in capabilities:
        for wish in one.wishes(view, now=now):
            if isinstance(wish, Stop):
                if not view.facts.elastic:
                    continue
                stopped_by = stopped_by or one
            found[type(wish)].append(wish)
    leaves = _leaves(found[Leave], stops=stopped_by is not None)
    found[Leave] = list(leaves.values())
    return Wishes(
        capabilities=capabilities,
        manage=next(iter(found[Manage]), None),
        stop=found[Stop][0].why if stopped_by else "",
        stopped_by=stopped_by,
        stop_ends_by=found[Stop][0].ends_by if stopped_by else "",
        leaves=leaves,
        held={wish.pod: wish.why for wish in found[Hold]},
        places={wish.pod: wish for wish in found[Place]},
        relaunch=None if stopped_by else next(iter(found[Relaunch]), None),
        end=next(iter(found[End]), None),
        keeps=bool(found[Keep]),
        rationed_by=tuple(wish.by for wish in found[Ration] if wish.by),
        is_rationed=None if any(not wish.known for wish in found[Ration]) else bool(found[Ration]),
        until=min(
            (wish.until for one in found.values() for wish in one if wish.until is not None),
            default=None,
        ),
    )


def _leaves(wished: Iterable[Leave], *, stops: bool) -> Mapping[str, Leave]:
    """Return the wish that counts for each worker; nobody is made again while the job stops."""
    leaves: dict[str, Leave] = {}
    for leave in wished:
        before = leaves.get(leave.pod)
        if stops and leave.how is How.REPLACE:
            continue
        if before is None or leave.how < before.how:
            leaves[leave.pod] = leave
        elif leave.how is before.how and leave.release:
            leaves[leave.pod] = replace(before, until=leave.until, release=leave.release)
    return leaves
