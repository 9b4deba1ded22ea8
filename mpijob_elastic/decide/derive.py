"""Derive the state of a job from its view and the time, once per look.

The job as a whole comes first (Moment), because the state of a worker depends on the list that the
launcher was shown. Then comes each worker, and then what follows from all workers together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from mpijob_elastic.decide import (
    capability,
    drain,
    handover,
    host_list,
    lost_ranks,
    moves,
    overdue,
    suspend,
)
from mpijob_elastic.decide.state import (
    MOVED,
    RENAMED,
    REPLACED,
    Goal,
    JobState,
    LauncherState,
    Moment,
    WorkerState,
    deletable_at,
    honest,
    of_this_pod,
)
from mpijob_elastic.decide.wishes import NOTHING, Leave, LeaveKind, Wishes, gather
from mpijob_elastic.model.bounds import LATEST, MOST_INT32
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Tries
from mpijob_elastic.model.pod import Launcher, Worker

_NOBODY: frozenset[str] = frozenset()
# Read once: in a loop, reading a member of an enum takes longer than the comparison.
_STAY = Goal.STAY
_NO_LOSSES: Mapping[str, Tries] = {}
# Seconds from the creation of a failed worker until it is replaced while its failures are not
# counted: if a driver can read no list, list and memory stay until a worker is Ready
# (config_map.write).
UNCOUNTED_AFTER = 10.0


@dataclass(frozen=True, kw_only=True)
class _Pods:
    """The pods that are known from all workers together."""

    #: Published, and to get a new host name because the rank is lost.
    lost: frozenset[str]
    #: Wanted, and to train elsewhere (moves.going).
    going: frozenset[str] = _NOBODY
    #: To train elsewhere, and not to be published now (moves.leaving).
    leaving: frozenset[str] = _NOBODY


def derive(view: JobView, *, now: float) -> JobState:
    """Return the state of the job at time `now` (seconds since the epoch)."""
    wishes = NOTHING
    if view.capabilities or view.policy.suspend or view.policy.zero_suspends:
        wished = chain(
            suspend.of_user(view), capability.wishes(view, now=now), suspend.of_size(view)
        )
        wishes = gather(wished, may_suspend=view.facts.acts_elastic)
    if wishes.suspend:
        size = suspend.size(view)
        view = view if size == view.replicas else replace(view, replicas=size)
    moment = _moment(view, wishes, now=now)
    rankless = lost_ranks.rankless(moment)
    lost = rankless
    if rankless:
        lost = rankless - lost_ranks.given_up(moment)
    pods = _Pods(lost=lost)
    if wishes.leaves:
        going = moves.going(view, wishes)
        leaving = moves.leaving(view, wishes, going, now=now)
        pods = _Pods(lost=lost, going=going, leaving=leaving)
    workers = tuple(_worker(moment, worker, pods) for worker in view.workers)
    resume_at, cut_off = _after_losses(moment, workers)
    return JobState(
        **vars(moment),
        workers=workers,
        by_name={worker.name: worker for worker in workers},
        to_delete=_to_delete(moment, workers),
        rankless=rankless,
        cut_off=cut_off,
        settled_at=host_list.settled_at(moment),
        resume_at=resume_at,
    )


def _after_losses(moment: Moment, workers: tuple[WorkerState, ...]) -> tuple[float, frozenset[str]]:
    """Return when workers may join again, and the pods on lost nodes that may leave the list."""
    if any(worker.pod.facts.node_gone_at for worker in workers):
        resume_at = lost_ranks.resume_at(moment, workers)
        return resume_at, lost_ranks.on_lost_nodes(moment, workers, resume_at=resume_at)
    if any(worker.succeeds_lost for worker in workers):
        return lost_ranks.resume_at(moment, workers), _NOBODY
    return 0.0, _NOBODY


def _moment(view: JobView, wishes: Wishes, *, now: float) -> Moment:
    stops = wishes.suspend is not None
    foreign, mends_at, losses = "", 0.0, _NO_LOSSES
    memory_known = edited = may_number = False
    if wishes.manage:
        foreign = wishes.manage.why
    elif view.foreign:
        foreign = handover.reason(view, stops=stops, now=now)
    if view.memory.renamed:
        losses = lost_ranks.losses(view.memory.renamed, view.workers, now=now)
    if config := view.config:
        may_number = view.elastic and view.driver.spends_names and config.finds_numbered
        if config.signed:
            memory_known = config.published is not None
        else:
            edited = config.memory is not None
            mends_at = 0.0 if view.foreign else handover.mends_at(config, now=now)
    is_list_lost = view.driver_running and view.driver.keeps_ranks and not view.host_of
    return Moment(
        view=view,
        wishes=wishes,
        now=now,
        stopped=(stops or view.gated) and suspend.is_stopped(view, stops=stops),
        foreign=foreign,
        memory_known=memory_known,
        edited=edited,
        mends_at=mends_at,
        overdue=view.hindered_for is not None and overdue.is_overdue(view, wishes),
        # A list that got lost has told no worker to leave.
        drains_count=memory_known and not is_list_lost,
        may_number=may_number,
        launcher=_launcher(view, now=now),
        losses=losses,
    )


def _launcher(view: JobView, *, now: float) -> LauncherState:
    launcher = view.launcher
    if launcher is None:
        return LauncherState()
    shown_at, again = None, 0
    digest, _, touch = (launcher.facts.refreshed or "").partition("@")
    if digest and view.config and digest == view.config.digest:
        shown_at, again = _touch(touch, now=now)
    return LauncherState(
        sees_hosts=launcher.facts.mounts_discovery or not view.driver_running,
        can_be_shown=_can_be_shown(view, launcher),
        shown_at=shown_at,
        again=again,
        refused=launcher.refused.tries.count if launcher.refused else 0,
    )


def _can_be_shown(view: JobView, launcher: Launcher) -> bool:
    """Tell whether a touch makes the launcher see the list.

    It helps a launcher that trains, or that may begin to train with a list that is out of date. A
    list that is empty, or another program's, needs no touch; an empty list of ours tells elastic.sh
    that all workers leave.
    """
    if not view.elastic or not _has_list(view):
        return False
    if launcher.facts.deleting or not launcher.facts.mounts_discovery:
        return False
    if view.driver_running:
        return True
    was_changed = max(view.memory.added_at, view.memory.removed_at) > 0.0
    return was_changed and view.driver_may_run


def _has_list(view: JobView) -> bool:
    """Tell whether the list says something to the driver.

    The webhook's list for a new ConfigMap has no number, and tells elastic.sh nothing.
    """
    if view.driver.keeps_ranks:
        return bool(view.host_of)
    return view.config is not None and view.config.number > 0


def _touch(text: str, *, now: float) -> tuple[float | None, int]:
    """Return the time of the first touch and the number of the repetition (config_map.mark).

    The time is None if it cannot be believed: users can write this annotation.
    """
    first, _, repetition = text.partition("+")
    try:
        at, again = float(first), int(repetition or 0)
    except ValueError:
        return None, 0
    is_bounded = 0.0 <= at <= LATEST and 0 <= again <= MOST_INT32
    if not is_bounded or at != honest(at, now=now):
        return None, 0
    return at, again


def _worker(moment: Moment, pod: Worker, pods: _Pods) -> WorkerState:
    view, name = moment.view, pod.name
    leave, loss = moment.wishes.leaves.get(name), moment.losses.get(name)
    goal = _goal(moment, pod, leave, pods)
    stopped = moment.stopped and suspend.goes(moment, pod)
    published = view.host_of.get(name, "")
    has_left = not published and name in view.memory.left
    host, incarnation, succeeds_lost = host_list.name_of(moment, pod)
    due_at = None
    if stopped:
        due_at = suspend.goes_at(view, pod, now=moment.now)
    elif goal is Goal.REPLACE:
        due_at = _replaced_at(moment, pod, leave)
    elif name in view.memory.moved or pod.index in view.skips:
        due_at = _moved_at(moment, pod)
    return WorkerState(
        pod=pod,
        name=name,
        goal=goal,
        wanted=goal is not Goal.LEAVE,
        ready=pod.ready,
        published=published,
        host=host,
        incarnation=incarnation,
        succeeds_lost=succeeds_lost,
        rank_lost=name in pods.lost,
        given_up=_is_given_up(moment, pod, goal) if loss or pod.terminated else False,
        leave=leave,
        drain=drain.of_worker(moment, pod) if has_left else None,
        stopped=stopped,
        due_at=due_at,
        back_at=RENAMED.due_at(loss, now=moment.now) if loss else 0.0,
    )


def _goal(moment: Moment, pod: Worker, leave: Leave | None, pods: _Pods) -> Goal:
    """Return what is to become of the worker; the order is that of Goal."""
    if pod.index not in moment.view.wanted:
        return Goal.LEAVE
    is_useless = pod.terminated
    if leave and leave.kind is LeaveKind.END:
        return Goal.LEAVE
    if leave and leave.kind is LeaveKind.REPLACE:
        is_useless = True
    if is_useless and _may_replace(moment, pod):
        return Goal.REPLACE
    if pod.name in pods.leaving:
        return Goal.MOVE
    return Goal.WAIT if pod.name in pods.going else Goal.STAY


def _may_replace(moment: Moment, pod: Worker) -> bool:
    """Tell whether a wanted worker may be recreated."""
    if pod.facts.deleting or moment.view.policy.replace_failed_workers is False:
        return False
    return moment.may_delete


def _is_given_up(moment: Moment, pod: Worker, goal: Goal) -> bool:
    """Tell whether a wanted worker has failed, or has lost its rank, too often."""
    if goal is Goal.LEAVE:
        return False
    if not pod.terminated:
        return RENAMED.is_given_up(moment.losses.get(pod.name))
    if goal is not Goal.REPLACE:
        return False
    return REPLACED.is_given_up(of_this_pod(moment.view.memory.replaced, pod))


def _moved_at(moment: Moment, pod: Worker) -> float | None:
    """Return the time from which a worker may be deleted again; None until that is written down."""
    if pod.index in moment.view.skips:
        # The pod of a skipped worker has passed by the webhook, and so may the pod that the
        # operator creates next.
        return deletable_at(pod.facts, now=moment.now)
    tries = of_this_pod(moment.view.memory.moved, pod)
    if tries:
        return MOVED.due_at(tries, now=moment.now)
    return None


def _replaced_at(moment: Moment, pod: Worker, leave: Leave | None) -> float | None:
    """Return the time from which a worker may be replaced; None until the try is written down."""
    tries = of_this_pod(moment.view.memory.replaced, pod)
    if tries is None:
        created_at = honest(pod.facts.created_at, now=moment.now)
        if moment.reads_nothing:
            return created_at + UNCOUNTED_AFTER
        return None
    at = REPLACED.again_at(tries, now=moment.now)
    if pod.terminated or leave is None:
        return at
    return max(at, leave.after)


def _to_delete(moment: Moment, workers: tuple[WorkerState, ...]) -> tuple[WorkerState, ...]:
    """Return the workers to delete sooner or later, in this order, each group highest index first.

    They are surplus, or failed, or on a node that is gone or about to go. Last come workers that
    somebody else deletes: for these we only look whether they drain.
    """
    if not moment.may_delete:
        return ()
    backwards = workers[::-1]
    surplus = [worker for worker in backwards if worker.stopped or not worker.wanted]
    surplus = [worker for worker in surplus if _may_be_deleted(worker.pod)]
    if moment.stopped:
        return tuple(surplus)
    if moment.wishes.suspend:
        # Held workers stay: the operator made them in place of workers that have left, as the full
        # size asks.
        surplus = [worker for worker in surplus if not worker.pod.facts.held_back]
    troubled = _troubled(moment.view, [worker for worker in backwards if worker.wanted])
    if not moment.view.driver_may_run:
        # Without a driver no worker is told to leave, so there is nothing to look for.
        return (*surplus, *troubled)
    deleted = [worker for worker in backwards if worker.pod.facts.deleting]
    unlisted = [worker for worker in deleted if not worker.published]
    ending = [worker for worker in unlisted if drain.is_watched(worker, now=moment.now)]
    return (*surplus, *troubled, *ending)


def _troubled(view: JobView, wanted: list[WorkerState]) -> list[WorkerState]:
    """Return the wanted workers that are to be made again."""
    troubled = [worker for worker in wanted if worker.goal is not _STAY]
    replaced = [worker for worker in troubled if worker.goal is Goal.REPLACE]
    moved = [worker for worker in troubled if worker.moves_now and not worker.published]
    if view.policy.replace_failed_workers is False:
        # Another controller deletes the workers that it moves.
        return [*replaced, *(worker for worker in moved if worker.release)]
    gone = [worker for worker in wanted if worker.pod.facts.node_gone_at]
    lost = [worker for worker in gone if _is_lost(view, worker)]
    return [*replaced, *lost, *moved]


def _is_lost(view: JobView, worker: WorkerState) -> bool:
    """Tell whether a worker on a node that is gone is to be replaced."""
    if worker.failed:
        return False
    return drain.is_unlisted(view, worker) and _may_be_deleted(worker.pod)


def _may_be_deleted(pod: Worker) -> bool:
    """Tell whether a deletion helps.

    It helps, once more and by force, a pod that is being deleted on a node that is gone, because no
    kubelet ends that pod.
    """
    if not pod.facts.deleting:
        return True
    return pod.facts.node_gone_at > 0.0 and not pod.facts.forced
