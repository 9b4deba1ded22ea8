"""Workers that somebody tries to evict: they drain, are released, and are never deleted by us."""

from typing import Any

import pytest

from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import RETRIED_WITHIN, Eviction
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import ReleaseWorker
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, Story, but, config, failed, job, launcher, pods, worker
from tests.product.decide.plans import change, does, note
from tests.simulated_writes import run

REQUESTED = Eviction(released=False, at=NOW - 10)
RELEASED = Eviction(released=True, at=NOW - 10)
OVER = RELEASED.at + RETRIED_WITHIN
IDLE = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 7, idle_at=NOW - 1, idle_since=NOW - 6)
NO_REPLACEMENT = Policy(replace_failed_workers=False)


def evicted(mark: Eviction | None = REQUESTED, **facts: Any) -> Story:
    """A job of three that trains, when somebody evicts the third worker."""
    return job(3, **facts).pod(2, eviction=mark, node="n")


def drains(mark: Eviction | None = REQUESTED, *, replicas: int = 3, **facts: Any) -> Story:
    """The same job, whose third worker left the list 9 s ago for that."""
    policy = facts.pop("policy", Policy())
    return (
        job(2)
        .shrunk(from_=3, ago=9)
        .but(replicas=replicas, policy=policy)
        .pod(2, eviction=mark, node="n", **facts)
    )


def goes(**facts: Any) -> Story:
    """Its eviction deletes it."""
    return drains(
        **{"mark": RELEASED, "deleting": True, "ends_at": NOW + 60, "probe": IDLE, **facts}
    )


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(evicted(), "publish 0 1 (Disruption); wake 110", id="the first try"),
        pytest.param(drains(), "probe 2; wake 51", id="it drains"),
        pytest.param(drains(probe=IDLE), "release 2; wake 110", id="it has drained"),
        pytest.param(
            drains(probe=IDLE, policy=NO_REPLACEMENT),
            "release 2; wake 110",
            id="drained, never replaced",
        ),
        # Were it replaced meanwhile, the next try would evict its successor, which has its name.
        pytest.param(
            drains(probe=IDLE, disruption="taint spot"),
            "release 2; wake 110",
            id="a taint moves it as well",
        ),
        pytest.param(
            drains(RELEASED, probe=IDLE, disruption="taint spot"),
            "wake 50",
            id="released, and a taint",
        ),
        pytest.param(drains(RELEASED, probe=IDLE), "wake 50", id="released"),
        pytest.param(goes(), "tell 2; wake 50", id="deleted by its eviction"),
        pytest.param(goes(probe=but(IDLE, told=True)), "wake 50", id="told before"),
        pytest.param(
            goes(probe=but(IDLE, idle_at=None)),
            "remind of 2 by 0.r01 (HostListRepeated); probe 2; wake 50",
            id="deleted before it drained",
        ),
        pytest.param(goes(mark=None), "wake 120", id="deleted by somebody else"),
        pytest.param(goes(deleting=False), "wake 50", id="not deleted yet"),
        pytest.param(goes(terminated=True, running=False), "wake 50", id="it has ended"),
        pytest.param(goes(ends_at=NOW), "wake 50", id="its grace period is over"),
        pytest.param(
            goes(probe=but(IDLE, asked_at=NOW - 0.2, failed=1)),
            "wake 0.3",
            id="told in vain",
        ),
        pytest.param(
            evicted(Eviction(released=False, at=NOW - 500)), "nothing", id="a mark that is over"
        ),
        pytest.param(
            evicted(Eviction(released=False, at=NOW + 600)), "nothing", id="a mark from the future"
        ),
        pytest.param(
            evicted(policy=Policy(min_replicas=3)),
            "say DisruptionHeld; wake 110",
            id="its least size is kept",
        ),
        pytest.param(
            job(1).pod(0, eviction=REQUESTED), "say DisruptionHeld; wake 110", id="the last worker"
        ),
        pytest.param(
            drains(replicas=2, probe=IDLE), "delete 2:drained; wake 110", id="surplus anyway"
        ),
        pytest.param(
            job(
                3,
                workers=(worker(0), worker(1), failed(2, eviction=REQUESTED)),
                config=config(pods(0, 1)),
            ),
            "remember replaced; wake 110",
            id="it has failed",
        ),
        pytest.param(evicted(elastic=False), "wake 110", id="not elastic"),
        pytest.param(
            evicted(launcher=launcher(mounts_discovery=False)),
            "publish 0 1 (Disruption); wake 110",
            id="a blind launcher",
        ),
    ],
)
def test_what_is_done(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_the_user_reads_why() -> None:
    told = note(evicted())
    assert (told.reason, "an eviction on node n" in told.message) == ("Disruption", True)
    assert (change(evicted()).lost, change(evicted()).memory.moved) == ((), {})
    assert (
        note(drains(probe=IDLE)).line
        == "EvictionAllowed: j-worker-2 may be evicted: drained after 9s"
    )


def test_the_release_is_marked_with_its_time() -> None:
    [release] = decide(drains(probe=IDLE), now=NOW).actions
    assert isinstance(release, ReleaseWorker)
    assert release.text == eviction.text(Eviction(released=True, at=NOW))


def test_a_released_worker_stays_out_until_its_mark_is_over() -> None:
    assert does(drains(RELEASED, probe=IDLE), now=OVER) == "publish 0 1 2 (HostsPublished)"
    tainted = drains(RELEASED, probe=IDLE, disruption="taint spot")
    assert list(change(tainted, now=OVER).memory.moved) == [*pods(2)]


@pytest.mark.parametrize("mark", [REQUESTED, RELEASED])
def test_where_nobody_tries_again_all_is_as_before(mark: Eviction) -> None:
    view, done, _ = run(evicted(mark), now=NOW)
    assert list(view.host_of.values()) == [*pods(0, 1, 2)]
    assert not [action for action in done if hasattr(action, "removals")]
