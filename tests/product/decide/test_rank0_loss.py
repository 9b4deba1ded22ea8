"""Nobody is added while those that are left get over the loss of rank 0."""

from typing import Any

import pytest

from mpijob_elastic.decide import lost_ranks, next_memory
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    but,
    config,
    job,
    launcher,
    named,
    pending,
    pods,
    role,
    worker,
)
from tests.product.decide.plans import does, state

POD = pods(1)[0]
YOUNG = NOW - 10
DRAIN_TIMEOUT = Policy().drain_timeout
REFORMED = YOUNG + lost_ranks.REFORM
# In the place of worker 1, whose rank may have died with its pod.
SUCCESSOR = worker(1, uid="new", created_at=YOUNG, ready_at=NOW - 5)
LEFT = {POD: Left(pod=pod_fingerprint(f"uid-of-{POD}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10)}
DRAINED = Probe(busy_seen=True, idle_at=LONG_AGO + 20, asked_at=LONG_AGO + 20)
DELIVERING = launcher(LauncherPhase.DELIVERING)


def lost(
    successor: Worker = SUCCESSOR,
    *,
    last: Host | None = None,
    listed: tuple[int, ...] = (0, 2),
    **facts: Any,
) -> Story:
    """A job of four whose worker 1 was lost and is there again, and whose worker 3 is new."""
    known = {**{pod: named(pod) for pod in pods(0, 2)}, POD: last or named(POD)}
    kept = config(pods(*listed), memory=Memory(left=LEFT, hosts=known))
    workers = (worker(0), successor, worker(2), worker(3))
    return job(4, **{"workers": workers, "config": kept, "role": role(0, 1, 2, 3), **facts})


LATER = worker(3, uid="newer", created_at=NOW)


@pytest.mark.parametrize(
    ("view", "at"),
    [
        (lost(), REFORMED),
        (lost(pending(1, uid="new", created_at=YOUNG)), REFORMED),
        # A host name that cannot be changed makes no difference.
        (lost().configured(kubexec="mine"), REFORMED),
        # By a clock far ahead of ours that was long ago.
        (lost(but(SUCCESSOR, created_at=NOW + 3600)), lost_ranks.REFORM),
        # It is there again.
        (lost(listed=(0, 1, 2)), 0.0),
        # The very pod: its rank was lost, while others trained on for long.
        (lost(worker(1)), 0.0),
        # The pod before had drained.
        (lost(former={POD: DRAINED}), 0.0),
        (lost(last=Host(pod="", incarnation=2)), 0.0),
        # No rank has run yet, or none that forms a ring again.
        (lost(launcher=DELIVERING), 0.0),
        (lost(launcher=None), 0.0),
        (lost(elastic=False), 0.0),
        # One rank waits for nobody; too few wait for those who come.
        (lost(listed=(0,)), 0.0),
        (lost(min_np_workers=3), 0.0),
        (lost(min_np_workers=2), REFORMED),
        # It was before the last host that left was deleted: the rank may have died as late as at
        # the end of the drain,
        (lost().remembering(removed_at=NOW - 1), REFORMED),
        (lost().remembering(removed_at=YOUNG - DRAIN_TIMEOUT + 1), REFORMED),
        # but nobody who is asked for again an hour later is waited for.
        (lost().remembering(removed_at=YOUNG - DRAIN_TIMEOUT - 1), REFORMED - 1),
        (lost().remembering(removed_at=LONG_AGO), LONG_AGO + DRAIN_TIMEOUT + lost_ranks.REFORM),
        # By a clock far ahead of ours that says nothing.
        (lost().remembering(removed_at=NOW + 3600), REFORMED),
        # Of two losses the later counts.
        (
            lost(workers=(worker(0), SUCCESSOR, worker(2), LATER)).remembering(
                hosts={**lost().memory.hosts, LATER.name: named(LATER.name)}, left={}
            ),
            NOW + lost_ranks.REFORM,
        ),
        # Only the loss of rank 0 is waited for.
        (lost().remembering(elders=pods(0, 1)), REFORMED),
        (lost().remembering(elders=pods(0)), 0.0),
        (lost().remembering(elders=pods(0, 2)), 0.0),
    ],
)
def test_ranks_that_are_left_get_time_to_form_anew(view: JobView, at: float) -> None:
    assert state(view).resume_at == at


@pytest.mark.parametrize(
    ("view", "now", "plan"),
    [
        pytest.param(lost(), NOW, f"wake {REFORMED - NOW:g}", id="every addition waits"),
        pytest.param(
            lost(),
            REFORMED,
            "publish 0 1.r1 2 3 (HostsPublished HostRenamed)",
            id="until they have formed",
        ),
        pytest.param(lost(replicas=2), NOW, "publish 0 (Draining)", id="a removal does not"),
        pytest.param(
            lost(listed=(0,)),
            NOW,
            "publish 0 1.r1 2 3 (HostsPublished HostRenamed)",
            id="one alone gets others",
        ),
    ],
)
def test_who_waits(view: JobView, now: float, plan: str) -> None:
    assert does(view, now=now) == plan


def knowing(*elders: int, listed: tuple[int, ...] = (0, 1, 2), **facts: Any) -> JobView:
    return job(4, **{"config": config(pods(*listed), memory=Memory(elders=pods(*elders))), **facts})


MANY = tuple(range(next_memory.MOST_ELDERS + 1))


@pytest.mark.parametrize(
    ("view", "added", "removed", "elders"),
    [
        # All came before the driver, who knows them in an order of its own; later hosts are
        # younger.
        (knowing(), (3,), (), (0, 1, 2)),
        (knowing(0, 2), (3,), (), (0, 2)),
        # Who leaves may still have rank 0, for as long as nobody else comes.
        (knowing(), (), (1,), (0, 1, 2)),
        (knowing(0), (), (0,), (0,)),
        (knowing(0, listed=(1, 2)), (), (2,), (0, 1, 2)),
        (knowing(0, listed=(1, 2)), (0,), (), (1, 2)),
        (knowing(1, 2), (), (), (1, 2)),
        # A driver that has yet to start will know all at once.
        (knowing(0, launcher=DELIVERING), (3,), (), ()),
        (knowing(listed=()), (0,), (), ()),
        # Of very many any may have it.
        (knowing(listed=MANY), (), (0,), ()),
        (knowing(listed=MANY[1:]), (), (1,), MANY[1:]),
    ],
)
def test_who_may_have_rank_0(
    view: JobView, added: tuple[int, ...], removed: tuple[int, ...], elders: tuple[int, ...]
) -> None:
    assert next_memory.elders(state(view), added=pods(*added), removed=pods(*removed)) == tuple(
        sorted(pods(*elders))
    )
