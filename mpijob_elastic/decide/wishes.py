"""The wishes of capabilities for a job, and the rules by which several wishes combine.

No other file decides what happens when two capabilities meet. A capability says what it wants and
why, and the mechanisms of the core carry that out, with their safety rules. A wish comes from facts
alone: no capability sees the wishes of another, so one pass is enough, and the order of the
capabilities decides only whose words come first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

from mpijob_elastic.decide.actions import Action, Note
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.job_facts import JobFacts, Known
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Launcher, Signs, Worker
from mpijob_elastic.model.policy import Annotation, Policy, Problem
from mpijob_elastic.model.wire import Fact, Owned

if TYPE_CHECKING:
    from mpijob_elastic.decide.state import JobState

F = TypeVar("F", bound=Fact)
# Returns what a capability knows of a job from the objects that are about the job.
See = Callable[[JobView, Collection[F]], Known | None]


class How(IntEnum):
    """The way in which a worker leaves; of two wishes for one worker, the lower number counts."""

    #: The worker is not wanted: it drains, we delete it, and the deletions are not counted.
    END = 0
    #: The worker is useless where it is: it is made again, after a back-off, and the tries are
    #: counted.
    REPLACE = 1
    #: The worker trains, and is to train elsewhere soon. The moves are counted, and the job always
    #: keeps its least number of workers.
    MOVE = 2


@dataclass(frozen=True, kw_only=True)
class Wish:
    """Something that a capability wants of the core."""

    #: The time at which the wish ends by the clock and the job is looked at again (seconds since
    #: the epoch); None if only facts end the wish.
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
    #: The command that ends the suspension; "" if the user has none.
    ends_by: str = ""


@dataclass(frozen=True, kw_only=True)
class Hold(Wish):
    """A pod with a gate of ours may not start."""

    #: The name of the pod.
    pod: str
    #: The reason, in words.
    why: str


@dataclass(frozen=True, kw_only=True)
class Place(Wish):
    """Changes are written to a pod together with the removal of its gates."""

    #: The name of the pod.
    pod: str
    #: The changes.
    adds: tuple[str, ...]
    #: The words for the Event.
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
    """A launcher that has not started is made again."""

    #: The reason, as words that follow the name of the launcher.
    why: str
    #: The earliest time of the deletion (seconds since the epoch).
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
    #: False while it is not known whether the controller does so.
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Reading(Generic[F]):
    """Objects from which a command learns what a capability knows of jobs."""

    resource: Resource
    #: Parses one object.
    read: Callable[[bytes], F]
    #: Returns the place of each object in its queue, by uid, given all objects.
    places: Callable[[Collection[F]], Mapping[str, int]] = lambda _: {}
    #: Returns the function that makes what is known of a job, given all objects.
    seeing: Callable[[Collection[F]], See[F]]


@dataclass(frozen=True, kw_only=True)
class Holding:
    """Objects of ours that hold quota until they are deleted."""

    resource: Resource
    #: The label selector of the objects.
    selector: str
    #: Parses one object, and returns it with its owner while it holds quota; else None.
    read: Callable[[bytes], Owned | None]


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


class Capability(Known):
    """An optional capability of one job: what it wants of the core, and what it does itself.

    By default it wants and does nothing.
    """

    #: The annotations of MPIJobs that belong to the capability.
    annotations: Sequence[Annotation] = ()
    #: The labels and annotations of pods that their scheduler starts together.
    groups: Collection[str] = ()
    #: The annotations of workers that the capability reads.
    pod_marks: Collection[str] = ()
    #: The objects of the capability that hold quota; None without such objects.
    holding: Holding | None = None
    #: The cause for which workers leave at its wish, in a word for the history.
    cause: str = ""

    @classmethod
    def asked(cls, _job: MPIJob, _known: Policy) -> tuple[Known | None, Sequence[Problem]]:
        """Return the request of an MPIJob, or None; and the problems of its values."""
        return None, ()

    @classmethod
    def told(cls, _view: JobView) -> Capability | None:
        """Return the capability, from the job's own objects; None if they do not concern it."""
        return None

    @classmethod
    def node_signs(cls, _more: Iterable[str], _ignored: Iterable[str]) -> Signs | None:
        """Return the signs that a node is about to go; None from a capability without signs.

        `more` are signs besides the usual signs; signs in `ignored` never count. Raises ValueError.
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
        """Yield records to store once these pods are published: name, and JSON of at most 1 KiB."""
        return ()

    def beside(self, _config: Config, _memory: Memory) -> Iterable[tuple[str, str]]:
        """Yield annotations of the ConfigMap, with their texts, that this memory is written with.

        `_config` is the ConfigMap before the write. Nothing is read for them: the write publishes
        the host list.
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

    def resize(self, _state: JobState) -> tuple[Action | None, float | None]:
        """Return the write of another size, or None; and when to look again.

        The core calls it only while a driver may train.
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
        """Return the state of a job that may not run and whose status does not say so; else ""."""
        return ""

    def phase_word(self, _pod: Launcher | Worker) -> str:
        """Return the phase of a pod if the kubelet does not know that phase; "" otherwise."""
        return ""

    def quota_word(self, _view: JobView, _pod: Worker) -> str:
        """Return the quota by which a worker runs; "" if it runs by no quota."""
        return ""

    def turn(self, _state: JobState) -> Turn | None:
        """Return the queue in which the job is; None if it is in no queue."""
        return None


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The wishes of all capabilities for a job, combined."""

    capabilities: tuple[Capability, ...] = ()
    manage: Manage | None = None
    #: What suspends the job, in words; "" if nothing does.
    stop: str = ""
    #: The first capability that suspends the job.
    stopped_by: Capability | None = None
    #: The command that ends this suspension; "" if the user has none.
    stop_ends_by: str = ""
    #: The wish that a worker leaves, by the name of its pod.
    leaves: Mapping[str, Leave] = field(default_factory=dict)
    #: Somebody waits for the quota of a worker (a wish END).
    wanted_back: bool = False
    #: The pods that may not start, each with the reason in words.
    held: Mapping[str, str] = field(default_factory=dict)
    #: The changes to a pod together with the removal of its gates, by the name of the pod.
    places: Mapping[str, Place] = field(default_factory=dict)
    relaunch: Relaunch | None = None
    end: End | None = None
    #: The finished job must not be deleted yet.
    keeps: bool = False
    #: The controllers that let workers start one by one, in words.
    rationed_by: tuple[str, ...] = ()
    #: A controller lets workers start one by one; None while that is not known.
    is_rationed: bool | None = False
    #: The time at which the first wish ends by the clock (seconds since the epoch); None if only
    #: facts end the wishes.
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
                if not view.facts.acts_elastic:
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
        wanted_back=any(leave.how is How.END for leave in found[Leave]),
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
    """Return the wish that counts for each worker; no worker is replaced while the job stops."""
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
