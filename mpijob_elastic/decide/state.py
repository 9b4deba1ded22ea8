"""The state of a job: everything that a look derives from view, memory and time, and that the steps read.

`derive.derive` makes it once per look. Steps, explanations and the command line read it and derive nothing again.
All times are seconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from mpijob_elastic.decide.wishes import How, Leave, Release, Wishes
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Tries
from mpijob_elastic.model.pod import Worker

# Seconds until a driver has surely followed a change that its launcher was shown: two discovery periods of 1 s, and
# what the kubelet takes to show a touched launcher its file (measured: 0.3-0.7 s).
SETTLE = 3.0
# The clocks of a cluster's machines may differ by this many seconds.
SKEW = 5.0


def honest(at: float, *, now: float) -> float:
    """Return `at`, or 0 (long ago) where it lies too far ahead: another clock wrote it, or ours was set back."""
    return at if at <= now + SKEW else 0.0


class Standing(StrEnum):
    """The role of a worker in the job now; the first that holds."""

    SURPLUS = "surplus"  # beyond the size asked for
    GIVEN_UP = "given up"  # failed, or lost its rank, too often
    FAILED = "failed"  # ended, with whatever exit code; it is deleted, so that the operator creates it again
    ENDED = "ended"  # ended, and stays as it is
    TERMINATING = "terminating"  # being deleted, and wanted again
    RANK_LOST = "rank lost"  # the pod runs on without its rank; it comes back under a new host name
    GOING = "going"  # its node or pod is about to go; it leaves and comes back elsewhere
    HELD = "held"  # the same, but it must stay until a replacement trains
    STARTING = "starting"  # not Ready yet
    WANTED = "wanted"  # Ready, and belongs into the host list


@dataclass(frozen=True, kw_only=True)
class Drain:
    """A worker that left the host list.

    since: when it left. began: since when the launcher knows, None while it cannot know. deadline: when the worker may
    be deleted whatever runs in it; it counts from `began`, or from when this process first saw the drain. drained: exec
    has shown that nothing trains in it any more.
    """

    since: float
    began: float | None = None
    deadline: float | None = None
    drained: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """One worker pod.

    wanted: the size asks for it. published: its host name in discover_hosts.sh, "" where it has none. host: the
    host name that it has or will get; incarnation: the number in that. succeeds_lost: a rank may have died in the
    pod that had its host name before. failed: it ended, and is to be replaced; astray: why it waits for a
    node in vain, and its replacement will not, "" if it does not. rank_lost: its rank is lost, and it is to get a
    new host name. going: node or pod is about to go, so the worker is to be elsewhere. leaves: going, and not held
    back until a replacement trains. leave: the wish that it leaves. stopped: the job is suspended, and the worker
    goes after its launcher. drain: None where no driver can have seen the worker in the list, or where it is
    listed. due_at: when a back-off lets it be deleted, None where there is no back-off or its count is not written
    down yet. back_at: from when on it may be published again; 0 where nothing speaks against it.
    """

    pod: Worker
    name: str
    standing: Standing
    wanted: bool
    ready: bool
    published: str
    host: str
    incarnation: int
    succeeds_lost: bool = False
    failed: bool = False
    astray: str = ""
    rank_lost: bool = False
    going: bool = False
    leaves: bool = False
    leave: Leave | None = None
    stopped: bool = False
    drain: Drain | None = None
    due_at: float | None = None
    back_at: float = 0.0

    @cached_property
    def cause(self) -> str:
        """Why it is to be elsewhere, "" if it may stay."""
        return self.leave.why if self.leave and self.leave.how is How.MOVE else ""

    @cached_property
    def release(self) -> Release | None:
        """How its end is left to somebody else, None if it is ours."""
        return self.leave.release if self.leave and self.leave.how is How.MOVE else None

    @property
    def evicted(self) -> bool:
        """True if its end is left to somebody else now."""
        if not (self.wanted and self.cause and self.leave and self.leave.release):
            return False
        return not (self.stopped or self.pod.terminated or self.pod.facts.deleting or self.pod.facts.node_gone_at)


@dataclass(frozen=True, kw_only=True)
class LauncherState:
    """The launcher, and its knowledge of the host list.

    The kubelet brings a new ConfigMap to the launcher a minute late perhaps, unless the launcher pod is touched. So a
    change counts from the touch on: nothing further is published and no worker is taken for drained before. The
    launcher's annotation says which change it was touched for and when, so a restart knows too.

    sees_hosts: the launcher that trains can learn of a change; true where none trains. Else no worker may be deleted.
    can_be_shown: a touch helps it. shown_at: when it was touched for what is published now,
    None where it was not or the time cannot be believed; again: the repetition of that touch (config_map).
    refresh_due: it has yet to be touched for that.
    """

    sees_hosts: bool
    can_be_shown: bool
    shown_at: float | None
    refresh_due: bool
    again: int = 0


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A job at a moment, before its workers are looked at.

    stopped: no worker may run, because the job is suspended, or was when its launcher was created. foreign: why the job
    is left alone, in words, "" where it is ours. memory_known: the memory tells of every worker
    that is not in the list why it is not. drains_count: it is known which workers were told to leave. edited: the
    script is not the script that our memory was written with; mends_at: when it may be put right. may_number: the
    launcher finds the pod of a numbered host name, or will once kubexec.sh says how. losses: lost ranks that are not
    forgiven, by worker.
    """

    view: JobView
    wishes: Wishes
    now: float
    stopped: bool
    foreign: str
    memory_known: bool
    drains_count: bool
    may_number: bool
    edited: bool
    mends_at: float
    launcher: LauncherState
    losses: Mapping[str, Tries] = field(default_factory=dict)

    def known_since(self, left: Left) -> float | None:
        """Return when the launcher could know that a pod left the list; None while it cannot."""
        if known_at := honest(left.known_at, now=self.now):
            return known_at
        if not self.launcher.can_be_shown:
            return left.at
        return None if self.launcher.shown_at is None else max(left.at, self.launcher.shown_at)


@dataclass(frozen=True, kw_only=True)
class JobState(Moment):
    """A job at a moment, with the standing of each worker.

    leaving: workers that are to be deleted, in this order. idle: published workers whose rank is lost, given up or not.
    cut_off: published workers whose node is gone and that may leave the list.
    settled_at: the earliest time of the next change of the list that is ours to time, 0 while no driver can read it.
    resume_at: the earliest time of an addition after a loss, 0 where there is nothing to wait for.
    """

    workers: tuple[WorkerState, ...]
    by_name: Mapping[str, WorkerState]
    leaving: tuple[WorkerState, ...]
    idle: frozenset[str]
    cut_off: frozenset[str]
    settled_at: float
    resume_at: float
