"""The state of a job: everything that a look derives from view, memory and time.

`derive.derive` makes the state once per look. The steps, the explanations and the command line read
the state and derive nothing again. The file starts with the shared constants: clock tolerances and
retry delays. All times are seconds since the epoch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from mpijob_elastic import names
from mpijob_elastic.decide.wishes import Leave, LeaveKind, Release, Wishes
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Mended, Tries
from mpijob_elastic.model.pod import PodFacts, Worker

# Seconds until a driver has surely followed a change that its launcher was shown: two discovery
# periods of 1 s, and what the kubelet takes to show a touched launcher its file (measured: 0.3-0.7
# s).
SETTLE = 3.0
# The clocks of a cluster's machines may differ by this many seconds.
SKEW = 5.0


def honest(at: float, *, now: float) -> float:
    """Return `at`, or 0 (long ago) if `at` lies more than SKEW ahead.

    Such a time was written by another clock, or our clock was set back.
    """
    if at <= now + SKEW:
        return at
    return 0.0


# Seconds that a pod must be old before it is deleted because it passed by the webhook, or because
# it cannot be read: so may the pod that follows, and this sets the pace.
PACE = 5.0


def deletable_at(pod: PodFacts, *, now: float) -> float:
    """Return the time from which such a pod may be deleted."""
    return honest(pod.created_at, now=now) + PACE


# Trouble after so many seconds without trouble has a new reason: counting starts again.
FORGIVEN_AFTER = 1800.0


@dataclass(frozen=True, kw_only=True)
class Delays:
    """The pauses between tries of the same write."""

    #: Seconds before the first, second, ... try.
    delays: tuple[float, ...]
    #: Seconds of rest after the last of these tries.
    given_up_for: float = 0.0

    def is_given_up(self, tries: Tries | None) -> bool:
        """Tell whether there were more tries than delays."""
        return tries is not None and tries.count > len(self.delays)

    def due_at(self, tries: Tries | Mended, *, now: float) -> float:
        """Return the time of the next try."""
        return honest(tries.at, now=now) + self.delays[min(tries.count, len(self.delays)) - 1]

    def again_at(self, tries: Tries, *, now: float) -> float:
        """Return the time of the next try; after the last try, the end of the rest."""
        if not self.is_given_up(tries):
            return self.due_at(tries, now=now)
        return honest(tries.at, now=now) + self.given_up_for


# Failed workers, deleted so that the operator creates them again.
REPLACED = Delays(delays=(0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0), given_up_for=3600.0)
# Workers on a node that is about to go, deleted so that they come back elsewhere; after the last
# try they stay.
MOVED = Delays(delays=(0.0, 30.0, 120.0))
# Workers whose rank is lost, published under a new host name.
RENAMED = Delays(delays=(0.0, 30.0, 60.0, 120.0, 240.0), given_up_for=3600.0)
# Launchers that were created without discover_hosts.sh, deleted before they start.
RELAUNCHED = Delays(delays=(0.0, 15.0, 30.0))
# Touches of a launcher that the API server refuses; after the last delay each further try follows
# that delay again.
TOUCHED = Delays(delays=(1.0, 2.0, 5.0, 10.0, 30.0, 60.0))
# A touch that is refused so often in a row is worth a notice: short trouble of the API server does
# not refuse so many.
REFUSED_OFTEN = 2
# Pods that come back after our deletion although the MPIJob asks for nothing else: two programs
# that work against one another come to one deletion in five minutes for each pod.
DELETED = Delays(delays=(0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0))
# A pod that was deleted so often in a row is worth a notice: each of these deletions was in vain.
DELETED_OFTEN = 4
# Scripts of another writer, replaced by ours: five edits by hand are put right within seconds, and
# two programs that write against one another come to one write in five minutes.
MENDED = Delays(delays=(0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0))


def of_this_pod(before: Mapping[str, Tries], worker: Worker) -> Tries | None:
    """Return the count that this very pod brought about.

    None if the count is another pod's, or is not written down yet.
    """
    last = before.get(worker.name)
    if last is None or last.uid != worker.ref.uid:
        return None
    return last


def is_there(pod: Worker) -> bool:
    """Tell whether nothing has ended the pod, and nothing is ending it."""
    if pod.terminated or pod.facts.deleting:
        return False
    return not pod.facts.node_gone_at


def counted(last: Tries | None, uid: str, *, now: float) -> Tries:
    """Return the count with this pod; the same pod is counted once."""
    if last is None:
        return Tries(count=1, at=now, uid=uid)
    if last.uid == uid:
        return last
    return Tries(count=last.count + 1, at=now, uid=uid)


def in_order(pods: Iterable[str], *, job: str) -> tuple[str, ...]:
    """Return workers of a job in numeric order, after names that are no worker's."""
    indices = {pod: names.worker_index(pod, job=job) for pod in pods}
    return tuple(
        sorted(indices, key=lambda pod: (-1, pod) if indices[pod] is None else (indices[pod], ""))
    )


class Goal(StrEnum):
    """What is to become of a worker: exactly one; the first that holds, in this order.

    A worker is deleted only while it is out of the list, and after the back-off of the third
    column. What holds for all goals stands elsewhere: a worker that no rank can use is not listed,
    whatever its goal (host_list), and a suspended job deletes its workers after its launcher.

    | goal    | in the list                        | deleted, after a back-off of     |
    |---------|------------------------------------|----------------------------------|
    | LEAVE   | no, if the job is elastic          | none, once nothing trains in it  |
    | REPLACE | as STAY; no if it has ended        | REPLACED                         |
    | MOVE    | no                                 | MOVED, once nothing trains in it |
    | WAIT    | as STAY, until another host trains | never                            |
    | STAY    | once it is Ready                   | never, unless its node is gone   |
    """

    #: The size does not ask for the worker, or somebody waits for its quota.
    LEAVE = "leave"
    #: The worker has ended, or its pod is useless where it is: it is to be made again.
    REPLACE = "replace"
    #: The worker is to train elsewhere, and to leave now.
    MOVE = "move"
    #: The worker is to train elsewhere once the others can do without it (moves.leaving).
    WAIT = "wait"
    #: The worker is to train where it is.
    STAY = "stay"


_ELSEWHERE = (Goal.MOVE, Goal.WAIT)


class Standing(StrEnum):
    """The outcome for a wanted worker that has ended, or has lost its rank too often."""

    #: The worker has failed, or has lost its rank, too often.
    GIVEN_UP = "given up"
    #: The worker has ended, with whatever exit code; it is deleted, so that the operator creates it
    #: again.
    FAILED = "failed"
    #: The worker has ended and stays as it is.
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class Drain:
    """The drain of a worker that left the host list."""

    #: The time at which the worker left the list.
    since: float
    #: The time from which the launcher knows it; None while the launcher cannot know.
    began: float | None = None
    #: The time from which the worker may be deleted whatever runs in it. The time counts from
    #: `began`, or from the moment at which this process first saw the drain.
    deadline: float | None = None
    #: True once exec has shown that nothing trains in the worker any more.
    drained: bool = False


@dataclass(frozen=True, kw_only=True)
class WorkerState:
    """One worker pod, and what the job's view says of it at this moment."""

    pod: Worker
    #: The name of the pod.
    name: str
    #: What is to become of the worker.
    goal: Goal
    #: The size asks for this worker: its goal is not to leave.
    wanted: bool
    #: The pod is Ready.
    ready: bool
    #: The worker's host name in discover_hosts.sh; "" if the list does not name the worker.
    published: str
    #: The host name that the worker has or will get.
    host: str
    #: The number in that host name; 0 for the pod's own name.
    incarnation: int
    #: A rank may have died in the pod that had this host name before.
    succeeds_lost: bool = False
    #: The rank is lost, so the worker gets a new host name.
    rank_lost: bool = False
    #: A wanted worker has failed, or has lost its rank, too often.
    given_up: bool = False
    #: The wish that the worker leaves; None without such a wish.
    leave: Leave | None = None
    #: The job is suspended; the worker goes after its launcher.
    stopped: bool = False
    #: The drain; None if the worker is listed, or if no driver can have seen the worker listed.
    drain: Drain | None = None
    #: The time from which a back-off allows the deletion; None without a back-off, and until the
    #: count of tries is written down.
    due_at: float | None = None
    #: The time from which the worker may be published again.
    back_at: float = 0.0

    @property
    def going(self) -> bool:
        """True if the worker is to train elsewhere, at once or later."""
        return self.goal in _ELSEWHERE

    @property
    def moves_now(self) -> bool:
        """True if the worker is to train elsewhere, and to leave now."""
        return self.goal is Goal.MOVE

    @property
    def failed(self) -> bool:
        """True if the worker has ended and is to be replaced."""
        return self.goal is Goal.REPLACE and self.pod.terminated

    @property
    def standing(self) -> Standing | None:
        """The outcome for a wanted worker that has ended, or is given up; else None."""
        if self.given_up:
            return Standing.GIVEN_UP
        if not self.wanted or not self.pod.terminated:
            return None
        if self.failed:
            return Standing.FAILED
        return Standing.ENDED

    @cached_property
    def cause(self) -> str:
        """The reason why the worker is to train elsewhere; "" if the worker may stay."""
        if self.leave is None or self.leave.kind is not LeaveKind.MOVE:
            return ""
        return self.leave.why

    @cached_property
    def release(self) -> Release | None:
        """The way in which another controller ends the worker; None if we delete it."""
        if self.leave is None or self.leave.kind is not LeaveKind.MOVE:
            return None
        return self.leave.release

    @property
    def evicted(self) -> bool:
        """True if another controller is to end the worker now."""
        if self.leave is None or self.release is None:
            return False
        if self.stopped or not self.wanted:
            return False
        return is_there(self.pod)


@dataclass(frozen=True, kw_only=True)
class LauncherState:
    """The launcher, and its knowledge of the host list.

    The kubelet brings a new ConfigMap to the launcher a minute late perhaps, unless the launcher
    pod is touched. So a change counts from the touch on: nothing further is published and no worker
    is taken for drained before. The launcher's annotation says which change it was touched for and
    when, so a restart knows too.
    """

    #: A launcher that trains can learn of a change, or no launcher trains. Otherwise no worker may
    #: be deleted.
    sees_hosts: bool = True
    #: A touch makes the launcher see the change.
    can_be_shown: bool = False
    #: The time of the touch for the published list; None without a touch, or if the time cannot be
    #: believed.
    shown_at: float | None = None
    #: The number of repetitions of that touch (config_map).
    again: int = 0
    #: How often in a row the API server has refused the last touch.
    refused: int = 0

    @property
    def refresh_due(self) -> bool:
        """True if the launcher has yet to be touched for the published list."""
        return self.can_be_shown and self.shown_at is None


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A job at a moment, before its workers are looked at."""

    view: JobView
    wishes: Wishes
    #: The time of the moment.
    now: float
    #: No worker may run, because the job is suspended, or was suspended when its launcher was
    #: created.
    stopped: bool
    #: The reason why the job is left alone, in words; "" if the job is ours.
    foreign: str
    #: The memory says of every worker that is not in the list why it is not.
    memory_known: bool
    #: It is known which workers were told to leave.
    drains_count: bool
    #: The launcher finds the pod of a numbered host name, or will once kubexec.sh says how.
    may_number: bool
    #: The script is not the script that our memory was written with.
    edited: bool
    #: The time from which a script of another writer may be replaced; 0 if at once.
    mends_at: float
    #: Something must go, and for the drain-timeout its launcher could not be told (overdue).
    overdue: bool
    launcher: LauncherState
    #: The lost ranks that are not forgiven, by the name of the worker's pod.
    losses: Mapping[str, Tries] = field(default_factory=dict)

    @property
    def reads_nothing(self) -> bool:
        """True if a driver runs without a list that it can read."""
        if self.view.config is None or self.view.config.published is not None:
            return False
        return self.view.driver_running

    @property
    def may_delete(self) -> bool:
        """True if a worker that leaves may be deleted: the launcher can learn that it leaves."""
        return self.view.elastic and self.launcher.sees_hosts

    def known_since(self, left: Left) -> float | None:
        """Return when the launcher could first know that a pod left the list; None before that."""
        if known_at := honest(left.known_at, now=self.now):
            return known_at
        if not self.launcher.can_be_shown:
            return left.at
        if self.launcher.shown_at is None:
            return None
        return max(left.at, self.launcher.shown_at)


@dataclass(frozen=True, kw_only=True)
class JobState(Moment):
    """A job at a moment, with the state of each worker."""

    workers: tuple[WorkerState, ...]
    #: The same workers, by the name of their pod.
    by_name: Mapping[str, WorkerState]
    #: The workers that are to be deleted once that is safe, in this order; some are being deleted.
    to_delete: tuple[WorkerState, ...]
    #: The published pods whose rank is lost, whether they are given up or not.
    rankless: frozenset[str]
    #: The published pods whose node is gone and that may leave the list.
    cut_off: frozenset[str]
    #: The earliest time of the next change of the list that is ours to time; 0 while no driver can
    #: read the list.
    settled_at: float
    #: The earliest time of an addition after a loss; 0 if there is nothing to wait for.
    resume_at: float

    @property
    def phase(self) -> str:
        """The phase in a word, for `kubectl get` and `get`; "" at rest. The first that holds wins.

        Queued, Suspended: nothing of the job may run. Draining: a rank may run in a worker that
        leaves. Scaling: the host list is not what the size asks for.
        """
        if self._is_left_alone:
            return ""
        if self.wishes.suspend:
            return "Queued" if self.wishes.suspend.queued else "Suspended"
        view = self.view
        if view.launcher and view.launcher.facts.held_back:
            return "Queued" if view.facts.queued else ""
        if not view.elastic or not view.driver_running or not view.facts.size_known:
            return ""
        if any(worker.drain for worker in self.to_delete):
            return "Draining"
        return "Scaling" if self._is_scaling else ""

    @property
    def _is_left_alone(self) -> bool:
        """True if the job is not ours, or is over."""
        view = self.view
        if self.foreign or view.foreign or view.handed_over:
            return True
        return view.ended or view.facts.deleting

    @property
    def _is_scaling(self) -> bool:
        """True if the list is not what the size asks for, apart from workers that are given up."""
        view, over = self.view, (Standing.GIVEN_UP, Standing.ENDED)
        given_up = {worker.name for worker in self.workers if worker.standing in over}
        wanted = set(view.wanted_names[: view.facts.size_at_most(view.replicas)])
        return wanted - given_up != set(view.host_of) - given_up
