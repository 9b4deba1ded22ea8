"""Every job comes to rest: with nothing happening but time, the writes end, and there are few of them."""

import math

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling import growth as sizing
from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.decide import decide, derive, frozen_execs, moves
from mpijob_elastic.decide.actions import DeleteWorkers, ProbeWorkers, TellUser
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import LONG_AGO, NOW, but, config, job, launcher, pods, role, worker
from tests.product.properties.views import cut_off, jobs
from tests.simulated_writes import run

WEEK = 7 * 86_400.0
INTO = Exec(pid=41, pod="j-worker-2", started_at=LONG_AGO)
# A surplus pod that does not end, and an exec into it.
STUCK = job(
    2,
    workers=(worker(0), worker(1), worker(2, deleting=True, ends_at=NOW - 30)),
    launcher=launcher(held=HeldExecs(asked_at=NOW, suspects=(INTO,), frozen=(INTO,))),
    role=role(0, 1, 2),
)
# A pod that nobody replaces, on a node that is gone.
KEPT = job(
    2,
    workers=(worker(0), worker(1, node="n", node_gone_at=LONG_AGO)),
    config=config(pods(0)),
    policy=Policy(replace_failed_workers=False),
)
# A pod that somebody deletes and that has an hour for it, while there is no driver.
SLOW = job(
    2,
    workers=(worker(0), worker(1, deleting=True, ends_at=NOW + 3600)),
    config=config(
        pods(0),
        memory=Memory(left={"j-worker-1": Left(pod=pod_fingerprint("uid-of-j-worker-1"), at=NOW)}),
    ),
    launcher=None,
)


# A rank that was seen idle by a clock that has been set back since.
AHEAD = job(
    2,
    workers=(
        worker(0, probe=Probe(busy_seen=True, asked_at=NOW, busy_at=NOW + 47)),
        worker(
            1, probe=Probe(busy_seen=True, asked_at=NOW, idle_at=NOW + 42, idle_since=NOW - 658)
        ),
    ),
)


@given(jobs | cut_off)
@example(STUCK)
@example(AHEAD)
@example(SLOW)
def test_every_job_comes_to_rest_and_stays_there(view: JobView) -> None:
    rested, _, now = run(with_honest_looks(view), now=NOW)
    for later in (now, now + 61, now + 3601, now + WEEK):
        assert decide(rested, now=later).actions == ()


def moved(view: JobView, *, now: float) -> frozenset[str]:
    """The workers that leave for elsewhere at the end of all waits."""
    wishes = derive(view, now=now).wishes
    return moves.leaving(view, wishes, moves.going(view, wishes), now=math.inf)


@given(jobs | cut_off)
@example(KEPT)
def test_at_rest_everything_is_as_the_size_asks(view: JobView) -> None:
    view, _, now = run(view, now=NOW)
    if is_at_work(view):
        ready = {one.name for one in view.workers if one.ready and one.index in view.wanted}
        wanted = ready - moved(view, now=now) - lost(view)
        assert set(view.published_pods) == wanted or (not wanted and len(view.published_pods) <= 1)
        surplus = [
            one
            for one in view.surplus
            if not one.facts.deleting and one.name not in view.published_pods
        ]
        if derive(
            view, now=NOW
        ).wishes.suspend:  # what waits at the gate is sorted out when the launcher has gone
            surplus = [one for one in surplus if not one.facts.gates]
        # A driver whose list got lost was told of nobody's leaving, so nobody goes before there is
        # a list again.
        list_lost = view.driver_running and not view.published_pods
        assert surplus == [] or list_lost or not derive(view, now=NOW).launcher.sees_hosts
        needed = {*derive(view, now=NOW).view.wanted_names, *(one.name for one in view.workers)}
        assert exec_names(view) >= needed


def with_honest_looks(view: JobView) -> JobView:
    """Return the view without looks from the future, after which `run` does not look again, and without such marks.

    Evictions and scale-outs from the future are believed when their time comes.
    """
    config = view.config
    sizes = sizing.remembered(view)
    if config and config.memory and sizes and sizes.at > NOW:
        config = but(config, memory=msgspec.structs.replace(config.memory, own={}))
    return but(view, workers=tuple(map(_honest, view.workers)), config=config)


def _honest(one: Worker) -> Worker:
    asked = eviction.parse(one.facts.marks.get(EVICTION_MARK))
    marked = asked if asked and asked.at <= NOW else None
    probe = but(one.probe, idle_at=min(one.probe.idle_at or 0.0, NOW) or None)
    return but(one, probe=probe, eviction=marked)


def lost(view: JobView) -> set[str]:
    """The workers on nodes that are gone, but for those that the driver has yet to be freed from."""
    gone = [one for one in view.workers if one.facts.node_gone_at]
    return {
        one.name for one in gone if one.name not in view.host_of or frozen_execs.is_over(view, one)
    }


def is_at_work(view: JobView) -> bool:
    """Tell whether the job is ours to bring to its size, and can be."""
    ended = view.facts.finished or (
        view.launcher is not None
        and view.launcher.phase in (LauncherPhase.LINGERING, LauncherPhase.FINISHED)
    )
    readable = (
        view.config is not None and view.config.published is not None and view.role is not None
    )
    begun = bool(view.workers or view.launcher)
    return (
        view.elastic and readable and begun and not (view.facts.deleting or view.foreign or ended)
    )


def exec_names(view: JobView) -> set[str]:
    """The workers in the Role."""
    found = view.role.exec_names if view.role else ()
    return {name for name in found if names.worker_index(name, job=view.name) is not None}


@given(before=st.integers(1, 13), after=st.integers(1, 13))
def test_a_scale_takes_two_writes_one_for_new_names_and_one_for_each_worker_that_goes(
    before: int, after: int
) -> None:
    size = max(before, after)
    view = job(
        size,
        replicas=after,
        config=config(pods(*range(before))),
        role=role(*range(before)),
        workers=tuple(worker(index) for index in range(size)),
    )
    rested, done, _ = run(view, now=NOW)
    gone = sum(len(action.removals) for action in done if isinstance(action, DeleteWorkers))
    writes = [action for action in done if not isinstance(action, ProbeWorkers | DeleteWorkers)]
    assert rested.published_pods == pods(*range(after))
    assert gone == max(0, before - after)
    assert len(writes) == (0 if before == after else 3 if before < after else 2)
    assert not any(isinstance(action, TellUser) for action in done)


@pytest.mark.parametrize("stray", [pods(3), ("stranger",)])
def test_rest_includes_what_others_added_to_the_role(stray: tuple[str, ...]) -> None:
    view = job(3)
    assert view.role is not None
    added = but(view, role=but(view.role, exec_names=(*view.role.exec_names, *stray)))
    rested, _, _ = run(added, now=NOW)
    assert rested.role is not None
    assert rested.role == added.role
