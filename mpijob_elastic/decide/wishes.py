"""The wishes of capabilities for a job, and the rules by which several wishes combine.

No other file decides what happens when two capabilities meet. A capability says what it wants and
why, and the mechanisms of the core carry that out, with their safety rules. A wish comes from facts
alone: no capability sees the wishes of another, so one pass is enough, and the order of the
capabilities decides only whose words come first.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.step import first


class LeaveKind(IntEnum):
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

    #: The author: the name of the capability.
    by: str
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
class Suspend(Wish):
    """Nothing of an elastic job may run."""

    #: What suspends the job, in words.
    why: str
    #: The command that ends the suspension; "" if the user has none.
    ends_by: str = ""
    #: A queue suspends the job until its turn comes.
    queued: bool = False


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
    kind: LeaveKind
    #: The reason, in words.
    why: str
    #: The cause, in a word; "" if the state of the worker tells the cause.
    cause: str = ""
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
    controller: str
    #: False while it is not known whether the controller does so.
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The wishes of all capabilities for a job, combined."""

    manage: Manage | None = None
    suspend: Suspend | None = None
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

    @property
    def suspended_by(self) -> str:
        """What suspends the job, in words; "" if nothing does."""
        if self.suspend:
            return self.suspend.why
        return ""


NOTHING = Wishes()


def gather(wishes: Iterable[Wish], *, may_suspend: bool) -> Wishes:
    """Return these wishes combined; without `may_suspend` no wish Suspend counts."""
    found: dict[type[Wish], list[Any]] = defaultdict(list)
    for wish in wishes:
        if may_suspend or not isinstance(wish, Suspend):
            found[type(wish)].append(wish)
    suspend = _first(found[Suspend])
    leaves = _leaves(found[Leave], suspends=suspend is not None)
    found[Leave] = list(leaves.values())
    rations = found[Ration]
    return Wishes(
        manage=_first(found[Manage]),
        suspend=suspend,
        leaves=leaves,
        wanted_back=any(leave.kind is LeaveKind.END for leave in leaves.values()),
        held={wish.pod: wish.why for wish in found[Hold]},
        places={wish.pod: wish for wish in found[Place]},
        relaunch=None if suspend else _first(found[Relaunch]),
        end=_first(found[End]),
        keeps=bool(found[Keep]),
        rationed_by=tuple(wish.controller for wish in rations if wish.controller),
        is_rationed=_is_rationed(rations),
        until=_until(found.values()),
    )


def _first(wishes: list[Any]) -> Any:
    """Return the first wish of a kind, which counts; None if there is none."""
    if wishes:
        return wishes[0]
    return None


def _is_rationed(rations: Collection[Ration]) -> bool | None:
    if any(not ration.known for ration in rations):
        return None
    return bool(rations)


def _until(of_kinds: Iterable[Collection[Wish]]) -> float | None:
    """Return the time at which the first of these wishes ends; None if none ends by the clock."""
    return first([wish.until for wishes in of_kinds for wish in wishes])


def _leaves(wished: Iterable[Leave], *, suspends: bool) -> Mapping[str, Leave]:
    """Return the wish that counts for each worker; no worker is replaced while the job stops."""
    leaves: dict[str, Leave] = {}
    for leave in wished:
        if suspends and leave.kind is LeaveKind.REPLACE:
            continue
        before = leaves.get(leave.pod)
        if before is None or leave.kind < before.kind:
            leaves[leave.pod] = leave
        elif leave.kind is before.kind and leave.release:
            leaves[leave.pod] = replace(before, until=leave.until, release=leave.release)
    return leaves
