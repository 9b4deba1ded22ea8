"""Derive the state of a job from its view and the time, once per look."""

from __future__ import annotations

from mpijob_elastic.decide import (
    disruption,
    drain,
    failed_workers,
    handover,
    history,
    host_names,
    launcher_refresh,
    lost_ranks,
    pacing,
    rank0_loss,
)
from mpijob_elastic.decide.state import Drain, JobState, LauncherState, Standing, WorkerState
from mpijob_elastic.model.job import JobView, Worker


def derive(view: JobView, *, now: float) -> JobState:
    """Return the state of the job at time `now` (seconds since the epoch)."""
    workers = tuple(_worker(view, worker, now=now) for worker in view.workers)
    return JobState(
        view=view,
        now=now,
        foreign=handover.reason(view, now=now),
        memory_known=history.is_known(view.config),
        may_number=host_names.may_number(view),
        launcher=_launcher(view, now=now),
        workers=workers,
        settled_at=pacing.settled_at(view, now=now),
        resume_at=rank0_loss.reformed_at(view, now=now),
        by_name={worker.name: worker for worker in workers},
    )


def _launcher(view: JobView, *, now: float) -> LauncherState:
    return LauncherState(
        sees_hosts=launcher_refresh.sees_hosts(view),
        may_lose_workers=launcher_refresh.may_delete(view),
        can_be_shown=launcher_refresh.can_show(view),
        shown_at=launcher_refresh.shown_at(view, now=now),
        refresh_due=launcher_refresh.is_due(view, now=now),
    )


def _worker(view: JobView, worker: Worker, *, now: float) -> WorkerState:
    failed = failed_workers.due_at(view, worker, now=now) if worker.terminated else None
    return WorkerState(
        pod=worker,
        name=worker.name,
        standing=_standing(view, worker, now=now),
        wanted=worker.index < view.replicas,
        ready=worker.ready,
        published=view.host_of.get(worker.name, ""),
        host=host_names.host(view, worker, now=now),
        succeeds_lost=host_names.succeeds_lost(view, worker, now=now),
        going=worker.name in disruption.going(view),
        rank_lost=worker.name in lost_ranks.lost(view, now=now),
        drain=_drain(view, worker, now=now),
        due_at=failed if worker.terminated else disruption.due_at(view, worker, now=now),
        back_at=lost_ranks.due_at(view, worker, now=now),
    )


def _drain(view: JobView, worker: Worker, *, now: float) -> Drain | None:
    left = history.left(view, worker, now=now)
    if left is None or view.is_published(worker):
        return None
    began = drain.drain_began(view, left, now=now)
    if began is None:
        return Drain(since=left.at)
    deadline = began + view.policy.drain_timeout
    return Drain(since=left.at, began=began, deadline=deadline, drained=drain.is_drained(worker.probe, began))


def _standing(view: JobView, worker: Worker, *, now: float) -> Standing:
    going, departing = disruption.going(view), disruption.departing(view, now=now)
    given_up = (*failed_workers.given_up(view), *lost_ranks.given_up(view, now=now))
    rules = {
        Standing.SURPLUS: worker.index >= view.replicas,
        Standing.GIVEN_UP: worker in given_up,
        Standing.FAILED: failed_workers.is_wanted(view, worker),
        Standing.ENDED: worker.terminated,
        Standing.TERMINATING: worker.deleting,
        Standing.RANK_LOST: worker.name in lost_ranks.lost(view, now=now),
        Standing.GOING: worker.name in departing,
        Standing.HELD: worker.name in going,
        Standing.STARTING: not worker.ready,
    }
    return next((standing for standing, holds in rules.items() if holds), Standing.WANTED)
