"""Derive the state of a job from its view and the time, once per look.

The job as a whole comes first (Moment), because the state of a worker depends on the list that the
launcher was shown. Then comes each worker, and then what follows from all workers together.
"""

from dataclasses import fields, replace
from itertools import chain

from mpijob_elastic import names
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
    JobState,
    LauncherState,
    Moment,
    Standing,
    WorkerState,
    deletable_at,
    honest,
    of_this_pod,
)
from mpijob_elastic.decide.wishes import NOTHING, Leave, LeaveKind, Wishes, gather
from mpijob_elastic.model.bounds import LATEST, MOST_INT32
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker

_NOBODY: frozenset[str] = frozenset()
# Seconds from the creation of a failed worker until it is replaced while its failures are not
# counted: if a driver can read no list, list and memory stay until a worker is Ready
# (config_map.write).
UNCOUNTED_AFTER = 10.0


def derive(view: JobView, *, now: float) -> JobState:
    """Return the state of the job at time `now` (seconds since the epoch)."""
    wishes = NOTHING
    if view.capabilities or view.policy.suspend:
        wished = chain(suspend.of_user(view), capability.wishes(view, now=now))
        wishes = gather(wished, may_suspend=view.facts.acts_elastic)
        size = suspend.size(view, wishes)
        view = view if size == view.replicas else replace(view, replicas=size)
    moment = _moment(view, wishes, now=now)
    idle = lost_ranks.idle(moment)
    going = leaving = _NOBODY
    if wishes.leaves:
        going = moves.going(view, wishes)
        leaving = moves.leaving(view, wishes, going, now=now)
    workers = tuple(_worker(moment, worker, idle, going, leaving) for worker in view.workers)
    node_gone = any(worker.pod.facts.node_gone_at for worker in workers)
    succeeds_lost = any(worker.succeeds_lost for worker in workers)
    resume_at = lost_ranks.resume_at(moment, workers) if node_gone or succeeds_lost else 0.0
    return JobState(
        **{field.name: getattr(moment, field.name) for field in fields(moment)},
        workers=workers,
        by_name={worker.name: worker for worker in workers},
        leaving=_leaving(moment, workers),
        idle=idle,
        cut_off=lost_ranks.on_lost_nodes(moment, workers, resume_at=resume_at)
        if node_gone
        else _NOBODY,
        settled_at=host_list.settled_at(moment),
        resume_at=resume_at,
    )


def _moment(view: JobView, wishes: Wishes, *, now: float) -> Moment:
    config = view.config
    known = config is not None and config.signed and config.published is not None
    return Moment(
        view=view,
        wishes=wishes,
        now=now,
        stopped=(wishes.suspend is not None or view.gated)
        and suspend.is_stopped(view, stops=wishes.suspend is not None),
        foreign=_foreign(view, wishes, now=now) if view.foreign or wishes.manage else "",
        memory_known=known,
        edited=config is not None and config.memory is not None and not config.signed,
        mends_at=handover.mends_at(config, now=now)
        if config and not (config.signed or view.foreign)
        else 0.0,
        overdue=view.hindered_for is not None and overdue.is_overdue(view, wishes),
        # A list that got lost has told no worker to leave.
        drains_count=known and (bool(view.host_of) or not view.driver_running),
        may_number=view.elastic and config is not None and config.finds_numbered,
        launcher=_launcher(view, now=now),
        losses=lost_ranks.losses(view.memory.renamed, view.workers, now=now)
        if view.memory.renamed
        else {},
    )


def _foreign(view: JobView, wishes: Wishes, *, now: float) -> str:
    """Return the reason why the job is left alone; "" if it is ours."""
    if wishes.manage:
        return wishes.manage.why
    return handover.reason(view, stops=wishes.suspend is not None, now=now)


def _launcher(view: JobView, *, now: float) -> LauncherState:
    launcher, memory = view.launcher, view.memory
    if launcher is None:
        return LauncherState()
    changed = memory.added_at > 0.0 or memory.removed_at > 0.0
    # A touch helps a launcher that trains, or that may begin to train with a list that is out of
    # date. A list that is empty, or another program's, needs no touch.
    can_be_shown = (
        view.elastic
        and bool(view.host_of)
        and launcher.facts.mounts_discovery
        and not launcher.facts.deleting
        and (view.driver_running or (changed and view.driver_may_run))
    )
    digest, _, touch = (launcher.facts.refreshed or "").partition("@")
    is_touched = view.config is not None and digest != "" and digest == view.config.digest
    shown_at, again = _touch(touch, now=now) if is_touched else (None, 0)
    sees_hosts = not view.driver_running or launcher.facts.mounts_discovery
    return LauncherState(
        sees_hosts=sees_hosts, can_be_shown=can_be_shown, shown_at=shown_at, again=again
    )


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
    return (at, again) if is_bounded and at == honest(at, now=now) else (None, 0)


def _worker(
    moment: Moment,
    pod: Worker,
    idle: frozenset[str],
    going: frozenset[str],
    leaving: frozenset[str],
) -> WorkerState:
    view, name, ready = moment.view, pod.name, pod.ready
    wanted, astray, leave = pod.index in view.wanted, "", moment.wishes.leaves.get(name)
    if leave:
        wanted = wanted and leave.kind is not LeaveKind.END
        if leave.kind is LeaveKind.REPLACE and wanted and _is_replaced(moment, pod):
            astray = leave.why
    published = view.host_of.get(name, "")
    incarnation, succeeds_lost = host_list.name_of(moment, pod)
    left = drain.left(moment, pod) if name in view.memory.left and not published else None
    loss = moment.losses.get(name)
    failed = pod.terminated and wanted and _is_replaced(moment, pod)
    stopped = moment.stopped and suspend.goes(view, pod, stops=moment.wishes.suspend is not None)
    rank_lost = name in idle and (loss is None or loss.count < len(RENAMED.delays))
    due_at = None
    if stopped:
        due_at = suspend.goes_at(view, pod, now=moment.now)
    elif failed or astray or name in view.memory.moved or (not wanted and pod.index in view.skips):
        due_at = _due_at(moment, pod, leave, failed=failed or bool(astray))
    standing = None
    if failed:
        is_given_up = REPLACED.is_given_up(of_this_pod(view.memory.replaced, pod))
        standing = Standing.GIVEN_UP if is_given_up else Standing.FAILED
    elif wanted and pod.terminated:
        standing = Standing.ENDED
    elif wanted and loss and RENAMED.is_given_up(loss):
        standing = Standing.GIVEN_UP
    return WorkerState(
        pod=pod,
        name=name,
        standing=standing,
        wanted=wanted,
        ready=ready,
        published=published,
        host=names.host(name, incarnation) if incarnation else name,
        incarnation=incarnation,
        succeeds_lost=succeeds_lost,
        failed=failed,
        astray=astray,
        rank_lost=rank_lost,
        going=name in going,
        leaves=name in leaving,
        leave=leave,
        drain=drain.of(moment, name, left, pod.probe) if left else None,
        stopped=stopped,
        due_at=due_at,
        back_at=RENAMED.due_at(loss, now=moment.now) if loss else 0.0,
    )


def _is_replaced(moment: Moment, pod: Worker) -> bool:
    """Tell whether a wanted worker that has ended is to be recreated."""
    policy, launcher = moment.view.policy, moment.launcher
    may_replace = (
        moment.view.elastic and policy.replace_failed_workers is not False and launcher.sees_hosts
    )
    return may_replace and not pod.facts.deleting


def _due_at(moment: Moment, pod: Worker, leave: Leave | None, *, failed: bool) -> float | None:
    memory, now = moment.view.memory, moment.now
    # The pod of a skipped worker has passed by the webhook, and so may the pod that the operator
    # creates next.
    if pod.index in moment.view.skips:
        return deletable_at(pod.facts, now=now)
    tries = of_this_pod(memory.replaced if failed else memory.moved, pod)
    if tries is None:
        return (
            honest(pod.facts.created_at, now=now) + UNCOUNTED_AFTER
            if failed and moment.reads_nothing
            else None
        )
    if not failed:
        return MOVED.due_at(tries, now=now)
    at = REPLACED.again_at(tries, now=now)
    return at if pod.terminated or leave is None else max(at, leave.after)


def _leaving(moment: Moment, workers: tuple[WorkerState, ...]) -> tuple[WorkerState, ...]:
    """Return the workers to delete sooner or later, in this order, each group highest index first.

    They are surplus, or failed, or on a node that is gone or about to go. Last come workers that
    somebody else deletes: for these we only look whether they drain.
    """
    view, backwards = moment.view, workers[::-1]
    if not view.elastic or not moment.launcher.sees_hosts:
        return ()
    surplus = [
        one for one in backwards if (one.stopped or not one.wanted) and _may_be_deleted(one.pod)
    ]
    if moment.stopped:
        return tuple(surplus)
    # Held workers stay: the operator made them in place of workers that have left, as the full size
    # asks.
    if moment.wishes.suspend:
        surplus = [one for one in surplus if not one.pod.facts.held_back]
    failed = [one for one in backwards if one.failed or one.astray]
    may_move = view.policy.replace_failed_workers is not False
    moving = [
        one for one in backwards if one.going and not one.published and (may_move or one.release)
    ]
    others = [
        one
        for one in backwards
        if may_move and one.wanted and not one.failed and one.pod.facts.node_gone_at
    ]
    lost = [one for one in others if drain.is_unlisted(view, one) and _may_be_deleted(one.pod)]
    # Without a driver no worker is told to leave, so there is nothing to look for.
    deleted = [
        one
        for one in backwards
        if one.pod.facts.deleting and not one.published and view.driver_may_run
    ]
    ending = [one for one in deleted if drain.is_watched(one, now=moment.now)]
    return (*surplus, *failed, *lost, *(one for one in moving if one not in lost), *ending)


def _may_be_deleted(pod: Worker) -> bool:
    """Tell whether a deletion helps.

    It helps, once more and by force, a pod that is being deleted on a node that is gone, because no
    kubelet ends that pod.
    """
    return not pod.facts.deleting or (pod.facts.node_gone_at > 0.0 and not pod.facts.forced)
