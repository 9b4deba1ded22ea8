"""Nobody is added while those that are left get over a loss."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from mpijob_elastic.decide import derive, host_list, next_memory, rank0_loss
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import KUBEXEC, LONG_AGO, NOW, config, job, launcher, named, pending, pods, role, worker

POD = pods(1)[0]
YOUNG = NOW - 10
DRAIN_TIMEOUT = Policy().drain_timeout
REFORMED = YOUNG + rank0_loss.REFORM
# In the place of worker 1, whose rank may have died with its pod.
SUCCESSOR = worker(1, uid="new", created_at=YOUNG, ready_at=NOW - 5)
LEFT = {POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10)}
DRAINED = Probe(busy_seen=True, idle_at=LONG_AGO + 20, asked_at=LONG_AGO + 20)


def lost(
    successor: Worker = SUCCESSOR, *, last: Host | None = None, listed: tuple[int, ...] = (0, 2), **facts: Any
) -> JobView:
    """A job of four whose worker 1 was lost and is there again, and whose worker 3 is new."""
    known = {**{pod: named(pod) for pod in pods(0, 2)}, POD: last or named(POD)}
    kept = replace(config(pods(*listed), memory=Memory(left=LEFT, hosts=known)), kubexec=facts.pop("kubexec", KUBEXEC))
    workers = (worker(0), successor, worker(2), worker(3))
    return job(4, **{"workers": workers, "config": kept, "role": role(0, 1, 2, 3), **facts})


@pytest.mark.parametrize(
    ("view", "at"),
    [
        (lost(), REFORMED),
        (lost(pending(1, uid="new", created_at=YOUNG)), REFORMED),
        # A host name that cannot be changed makes no difference.
        (lost(kubexec="mine"), REFORMED),
        # By a clock far ahead of ours that was long ago.
        (lost(replace(SUCCESSOR, created_at=NOW + 3600)), rank0_loss.REFORM),
        # It is there again.
        (lost(listed=(0, 1, 2)), 0.0),
        # The very pod: its rank was lost, while others trained on for long.
        (lost(worker(1)), 0.0),
        # The pod before had drained.
        (lost(former={POD: DRAINED}), 0.0),
        (lost(last=Host(pod="", incarnation=2)), 0.0),
        # No rank has run yet, or none that forms a ring again.
        (lost(launcher=launcher(LauncherPhase.DELIVERING)), 0.0),
        (lost(launcher=None), 0.0),
        (lost(elastic=False), 0.0),
        # One rank waits for nobody; too few wait for those who come.
        (lost(listed=(0,)), 0.0),
        (lost(min_np_workers=3), 0.0),
        (lost(min_np_workers=2), REFORMED),
    ],
)
def test_ranks_that_are_left_get_time_to_form_anew(view: JobView, at: float) -> None:
    assert derive(view, now=NOW).resume_at == at


def test_after_a_loss_every_addition_waits_and_removals_do_not() -> None:
    assert host_list.following(derive(lost(), now=NOW)) == host_list.Next(hosts=pods(0, 2), wake_at=REFORMED)
    assert host_list.following(derive(lost(), now=REFORMED)).hosts == pods(0, 1, 2, 3)
    assert host_list.following(derive(lost(replicas=2), now=NOW)).hosts == pods(0)


@pytest.mark.parametrize(
    ("removed_at", "at"),
    [
        # The rank may have died as late as at the end of the drain,
        (NOW - 1, REFORMED),
        (YOUNG - DRAIN_TIMEOUT + 1, REFORMED),
        # but nobody who is asked for again an hour later is waited for.
        (YOUNG - DRAIN_TIMEOUT - 1, REFORMED - 1),
        (LONG_AGO, LONG_AGO + DRAIN_TIMEOUT + rank0_loss.REFORM),
        # By a clock far ahead of ours that says nothing.
        (NOW + 3600, REFORMED),
    ],
)
def test_a_loss_was_before_the_last_host_that_left_was_deleted(removed_at: float, at: float) -> None:
    view = lost()
    assert view.config is not None
    memory = msgspec.structs.replace(view.memory, removed_at=removed_at)
    assert derive(replace(view, config=replace(view.config, memory=memory)), now=NOW).resume_at == at


def test_of_two_losses_the_later_counts() -> None:
    view = lost()
    again = replace(worker(3), ref=replace(worker(3).ref, uid="newer"), created_at=NOW)
    assert view.config is not None
    known = replace(view.config, memory=Memory(hosts={**view.memory.hosts, again.name: named(again.name)}))
    twice = replace(view, workers=(*view.workers[:3], again), config=known)
    assert derive(twice, now=NOW).resume_at == NOW + rank0_loss.REFORM


def test_those_that_are_left_alone_get_others_at_once() -> None:
    assert host_list.following(derive(lost(listed=(0,)), now=NOW)).hosts == pods(0, 1, 2, 3)


def knowing(*elders: int, listed: tuple[int, ...] = (0, 1, 2), **facts: Any) -> JobView:
    return job(4, **{"config": config(pods(*listed), memory=Memory(elders=pods(*elders))), **facts})


@pytest.mark.parametrize(
    ("view", "added", "removed", "elders"),
    [
        # All came before the driver, who knows them in an order of its own; later hosts are younger.
        (knowing(), (3,), (), (0, 1, 2)),
        (knowing(0, 2), (3,), (), (0, 2)),
        # Who leaves may still have rank 0, for as long as nobody else comes.
        (knowing(), (), (1,), (0, 1, 2)),
        (knowing(0), (), (0,), (0,)),
        (knowing(0, listed=(1, 2)), (), (2,), (0, 1, 2)),
        (knowing(0, listed=(1, 2)), (0,), (), (1, 2)),
        (knowing(1, 2), (), (), (1, 2)),
        # A driver that has yet to start will know all at once.
        (knowing(0, launcher=launcher(LauncherPhase.DELIVERING)), (3,), (), ()),
        (knowing(listed=()), (0,), (), ()),
    ],
)
def test_who_may_have_rank_0(
    view: JobView, added: tuple[int, ...], removed: tuple[int, ...], elders: tuple[int, ...]
) -> None:
    assert next_memory.elders(derive(view, now=NOW), added=pods(*added), removed=pods(*removed)) == pods(*elders)


def test_of_very_many_any_may_have_it() -> None:
    many = tuple(range(next_memory.MOST_ELDERS + 1))
    assert next_memory.elders(derive(knowing(listed=many), now=NOW), added=(), removed=pods(0)) == ()
    assert (
        len(next_memory.elders(derive(knowing(listed=many[1:]), now=NOW), added=(), removed=pods(1)))
        == next_memory.MOST_ELDERS
    )


@pytest.mark.parametrize(("elders", "at"), [((), REFORMED), ((0, 1), REFORMED), ((0,), 0.0), ((0, 2), 0.0)])
def test_only_the_loss_of_rank_0_is_waited_for(elders: tuple[int, ...], at: float) -> None:
    view = lost()
    assert view.config is not None
    memory = Memory(left=LEFT, hosts=view.memory.hosts, elders=pods(*elders))
    assert derive(replace(view, config=replace(view.config, memory=memory)), now=NOW).resume_at == at
