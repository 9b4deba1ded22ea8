"""Drains: the workers that may be deleted now, and why."""

from typing import Any

import pytest

from mpijob_elastic.decide import derive, drain
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    NOW,
    Story,
    but,
    config,
    failed,
    job,
    launcher,
    left,
    pending,
    pods,
    shown,
    tries,
    worker,
)
from tests.product.decide.plans import does

POD = "j-worker-2"
UID = f"uid-of-{POD}"
LEFT_AT = NOW - 20
MARK = pod_fingerprint(UID)
EARLIER = "another pod of that name"
BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)
LAST_LEFT = Probe(busy_seen=True, idle_at=LEFT_AT + 0.5, asked_at=LEFT_AT + 0.5, left=True)
SHRUNK = job(2).shrunk(from_=3)
LATER = job(2).shrunk(from_=3, told=1)
DRAINED = SHRUNK.drained(2)


def outcomes(view: JobView, *, now: float = NOW) -> dict[str, str]:
    """The workers that `drain` lets go, with the reason of each."""
    return {
        removal.worker.name: removal.outcome
        for removal in drain.leave(derive(view, now=now)).removals
    }


def timed(seconds: float, view: Story = SHRUNK) -> Story:
    return view.but(policy=Policy(drain_timeout=seconds))


def third(surplus: Worker, view: Story = SHRUNK) -> Story:
    """The surplus worker is this pod."""
    return view.but(workers=(*view.workers[:2], surplus))


def over(ago: float, *, size: int = 3, policy: str = "Running", **facts: Any) -> Story:
    """A job of three whose launcher ended so many seconds ago."""
    about = {name: facts.pop(name) for name in ("deleting",) if name in facts}
    ended = launcher(LauncherPhase.FINISHED, ended_at=NOW - ago, **about)
    return job(size, launcher=ended, clean_pod_policy=policy, **facts)


def finished(replicas: int, *, policy: str = "Running", **facts: Any) -> Story:
    return job(3, replicas=replicas, finished=True, clean_pod_policy=policy, **facts)


UNKNOWN = but(config(pods(0, 1)), memory=None)
LISTED = config(pods(0, 1, 2))
EMPTY = config([], memory=Memory(left={POD: left(POD, ago=20)}))
WAITING = launcher(LauncherPhase.WAITING)
ANOTHER = worker(2, uid=EARLIER, created_at=NOW - 5)
STARTING = pending(2, node="n")
BEFORE = SHRUNK.remembering(left={POD: left(POD, ago=20, uid=EARLIER)}).shown(at=LEFT_AT)


def waits(view: Story) -> Story:
    """The launcher has yet to start, and was shown the list."""
    return view.but(launcher=WAITING).shown(at=LEFT_AT)


@pytest.mark.parametrize(
    ("view", "outcome"),
    [
        (SHRUNK, None),
        (DRAINED, "drained"),
        (SHRUNK.drained(2, after=4.9), None),
        (SHRUNK.drained(2, after=2.0, busy_seen=True), "drained"),
        (SHRUNK.drained(2, after=1.9, busy_seen=True), None),
        # What was seen may have been a command of the kubelet, so perhaps the driver knows nothing.
        (SHRUNK.drained(2, after=4.9, busy_seen=True, in_doubt=True), None),
        (SHRUNK.drained(2, after=5.0, busy_seen=True, in_doubt=True), "drained"),
        (SHRUNK.pod(2, probe=BUSY), None),
        # Its main process has seen the last rank leave: one that leaves since the launcher was
        # shown has heard of it.
        (SHRUNK.pod(2, probe=LAST_LEFT), "drained"),
        (LATER.pod(2, probe=LAST_LEFT), None),
        # The clock was set back after this look.
        (SHRUNK.pod(2, probe=Probe(idle_at=NOW + 1, asked_at=NOW + 1)), None),
        # It counts from when the launcher was shown, for until then it may start a rank there.
        (LATER.drained(2, after=5.0), None),
        (LATER.drained(2, after=6.0), "drained"),
        (timed(20.0), "timeout"),
        (timed(20.0, LATER), None),
        (timed(0.0), "timeout"),
        # It came when the driver had long read that the pod before it had left.
        (third(ANOTHER), "unused"),
        (third(but(ANOTHER, running=False, ready_at=None, node="n")), "unused"),
        # It has no node, so no container of it can ever have run, whatever is remembered of its
        # name.
        (third(pending(2)), "unscheduled"),
        (waits(third(pending(2))), "unscheduled"),
        (
            third(pending(2), SHRUNK.remembering(left={POD: left(POD, ago=1, uid=EARLIER)})),
            "unscheduled",
        ),
        (third(pending(2)).but(config=LISTED), None),
        (third(pending(2)).but(config=UNKNOWN), None),
        (third(pending(2)).but(replicas=3), None),
        (third(pending(2, deleting=True)), None),
        (third(pending(2)).plain(), None),
        # On a node its containers may run before the kubelet has said so.
        (third(STARTING), None),
        # The driver may have taken it for the pod before it.
        (BEFORE, None),
        (BEFORE.drained(2), "drained"),
        (SHRUNK.but(config=config(pods(0, 1))).shown(at=LEFT_AT), "unused"),
        # That the launcher knew was written down before it was shown something else.
        (
            DRAINED.remembering(left={POD: Left(pod=MARK, at=LEFT_AT, known_at=LEFT_AT)}).shown(
                at=NOW
            ),
            "drained",
        ),
        (third(failed(2)), "idle"),
        (SHRUNK.but(config=LISTED).shown(at=LEFT_AT), None),
        (third(failed(2)).but(config=LISTED).shown(at=LEFT_AT), None),
        # Nobody was told to leave by a list that got lost.
        (timed(0.0).but(config=EMPTY).shown(at=LEFT_AT), None),
        (waits(timed(0.0).but(config=EMPTY)), "timeout"),
        # Whether it was in the list a moment ago, nobody has written down.
        (SHRUNK.but(config=UNKNOWN), None),
        (SHRUNK.but(config=None), None),
        (SHRUNK.but(launcher=None), "idle"),
        (SHRUNK.launched(phase=LauncherPhase.FINISHED), None),
        # A launcher that waits may start while we look.
        (waits(SHRUNK), None),
        (waits(DRAINED), "drained"),
        (waits(third(ANOTHER)), "unused"),
        (SHRUNK.pod(2, deleting=True), None),
        (timed(0.0).plain(), None),
        (timed(0.0).but(replicas=3), None),
        # Before the launcher was shown the list nothing counts.
        (timed(0.0, SHRUNK.drained(2, after=15.0)), "drained"),
        (timed(0.0, SHRUNK.drained(2, after=15.0)).unshown(), None),
        # A launcher that cannot learn keeps its workers.
        (timed(20.0).launched(mounts_discovery=False), None),
    ],
)
def test_when_a_surplus_worker_may_go(view: JobView, outcome: str | None) -> None:
    assert outcomes(view) == ({POD: outcome} if outcome else {})


def test_the_highest_index_goes_first() -> None:
    view = job(4, replicas=1, launcher=None, config=config(pods(0)))
    assert does(view, but="allow publish hostfile remember") == "delete 3:idle 2:idle 1:idle"


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (finished(1), "delete 2:finished 1:finished"),
        (finished(1, policy="All"), "delete 2:finished 1:finished"),
        (finished(1, policy="None"), "nothing"),
        (finished(1, elastic=False), "delete 2:finished 1:finished"),
        (finished(3), "nothing"),
        # The operator has not deleted the others in time, or does not even know of the end.
        (finished(2, ended_at=NOW - 29), "delete 2:finished; wake 1"),
        (finished(2, ended_at=NOW - 30), "delete 2:finished 1:finished 0:finished"),
        (over(10), "wake 20"),
        (over(29), "wake 1"),
        (over(30), "delete 2:finished 1:finished 0:finished"),
        (over(30, policy="All", elastic=False), "delete 2:finished 1:finished 0:finished"),
        (over(10, policy="None"), "nothing"),
        (over(30, policy="None"), "nothing"),
        (over(30, deleting=True), "nothing"),
        (job(3, launcher=launcher(LauncherPhase.FINISHED), clean_pod_policy="Running"), "nothing"),
    ],
)
def test_what_is_left_over_when_the_job_has_ended(view: JobView, plan: str) -> None:
    assert does(view) == plan


def broken(count: int, *, listed: tuple[int, ...] = (0, 1), **facts: Any) -> Story:
    """The third of three workers failed at NOW, for the `count`th time."""
    replaced = {POD: tries(count, uid=UID)} if count else {}
    facts = {"workers": (worker(0), worker(1), failed(2)), **facts}
    return job(3, config=config(pods(*listed), memory=Memory(replaced=replaced)), **facts)


NOTHING_WRITTEN = but(config([], hostfile=pods(0, 1)), memory=None)
BEFORE_THE_FIRST = job(2, workers=(failed(0), pending(1)), config=NOTHING_WRITTEN, launcher=WAITING)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (broken(1), "delete 2:failed"),
        (broken(0), "remember replaced"),
        # The first write of all: the launcher waits for this very worker, so no list of Ready
        # workers comes before.
        (BEFORE_THE_FIRST, "remember left replaced script"),
        (broken(2), "wake 10"),
        (broken(1, listed=(0, 1, 2)), "publish 0 1, lost 2 (HostsLost)"),
        # The last host stays in the list, for it must not become empty.
        (broken(1, listed=(2,), workers=(failed(2),)), "delete 2:failed"),
        (broken(1, launcher=launcher(mounts_discovery=False)), "say LauncherWithoutDiscovery"),
    ],
)
def test_when_a_failed_worker_is_replaced(view: JobView, plan: str) -> None:
    assert does(view) == plan


REMIND = "remind of 2 by 0.r01 (HostListRepeated)"


@pytest.mark.parametrize(
    ("probe", "plan"),
    [
        (Probe(), "probe 2; wake 40"),
        (Probe(asked_at=NOW - 0.5), f"{REMIND}; wake 1.5"),
        (Probe(asked_at=NOW - 2), f"{REMIND}; probe 2; wake 40"),
        # Asked before the clock was set back.
        (Probe(asked_at=NOW + 3600), f"{REMIND}; probe 2; wake 40"),
        # A look that hangs or is refused: again as usual, then later and later.
        (Probe(asked_at=NOW - 0.5, failed=1), f"{REMIND}; wake 1.5"),
        (Probe(asked_at=NOW - 2, failed=2), f"{REMIND}; wake 2"),
        (Probe(asked_at=NOW - 7, failed=3), f"{REMIND}; wake 1"),
        (Probe(asked_at=NOW - 20, failed=2000), f"{REMIND}; wake 10"),
    ],
)
def test_a_leaving_worker_is_looked_at_now_and_then(probe: Probe, plan: str) -> None:
    assert does(SHRUNK.pod(2, probe=probe)) == plan


def test_when_it_is_looked_at() -> None:
    at_first = SHRUNK.pod(2, probe=Probe(asked_at=LEFT_AT + 9))
    assert does(at_first, now=LEFT_AT + 9, but="touch remind") == "wake 0.5"
    assert does(SHRUNK.unshown()) == "touch", "its launcher was not shown the list"
    unreadable = SHRUNK.configured(script="#!/bin/sh\n", published=None)
    assert drain.leave(derive(unreadable, now=NOW)) == drain.Leaving(), (
        "whether it has left is unknown"
    )
    assert does(third(STARTING)) == "wake 40", "it does not run"


@pytest.mark.parametrize("timeout", [0.1, 59.7, 60.0, 0.3])
@pytest.mark.parametrize("left_at", [1763712345.1234567, 1763712345.7, 0.1])
def test_a_deadline_that_wakes_us_has_passed_by_then(left_at: float, timeout: float) -> None:
    starting = timed(timeout, third(STARTING)).remembering(
        left={POD: Left(pod=MARK, at=left_at)}, removed_at=LEFT_AT
    )
    view = shown(starting, at=left_at)
    woken = drain.leave(derive(view, now=left_at)).wake_at
    assert woken is not None
    assert outcomes(view, now=woken) == {POD: "timeout"}


@pytest.mark.parametrize(
    ("view", "reason", "words"),
    [
        (DRAINED.pod(2, last_state="Running on node a"), "SurplusDeleted", "drained after 20s"),
        (timed(20.0), "DrainTimeout", "drain-timeout of 20s"),
        (timed(20.0).pod(2, probe=BUSY), "DrainTimeout", "its ranks are killed"),
        (
            timed(20.0).pod(2, probe=Probe(asked_at=NOW)),
            "DrainTimeout",
            "exec could not show whether ranks run in it",
        ),
        (timed(20.0).drained(2, after=1.0), "DrainTimeout", "no rank was seen in it recently"),
        (third(ANOTHER), "SurplusDeleted", "never listed in discover_hosts.sh"),
        (SHRUNK.but(launcher=None), "SurplusDeleted", "no rank runs in it"),
        (third(pending(2)), "SurplusDeleted", "never scheduled to a node"),
        (
            broken(1, workers=(failed(2, last_state="Failed; OOMKilled"),)),
            "WorkerReplaced",
            "state: Failed; OOMKilled",
        ),
    ],
)
def test_the_user_reads_why(view: JobView, reason: str, words: str) -> None:
    (removal,) = drain.leave(derive(view, now=NOW)).removals
    assert removal.note.reason == reason
    assert words in removal.note.message
    assert removal.note.warning is (reason != "SurplusDeleted")


def test_where_processes_cannot_be_told_apart_the_drain_timeout_decides() -> None:
    opaque = SHRUNK.pod(2, opaque=True)
    assert does(opaque, but="touch remind") == "wake 40"
    assert does(opaque, now=LEFT_AT + 60, but="touch remind") == "delete 2:timeout"


@pytest.mark.parametrize(
    ("view", "outcome", "grace"),
    [
        (DRAINED, "drained", 1),
        (timed(20.0), "timeout", 1),
        (third(ANOTHER), "unused", 1),
        # A hook is the user's word that the pod needs its time.
        (DRAINED.pod(2, pre_stop=True), "drained", None),
        (timed(20.0).pod(2, pre_stop=True), "timeout", None),
        # Nothing runs in these, or nobody waited for a rank to leave.
        (third(failed(2)), "idle", None),
        (third(pending(2)), "unscheduled", None),
        (SHRUNK.but(launcher=None), "idle", None),
        (broken(1), "failed", None),
        (finished(2), "finished", None),
    ],
)
def test_a_worker_without_ranks_holds_its_gpus_no_longer(
    view: JobView, outcome: str, grace: int | None
) -> None:
    (removal,) = drain.leave(derive(view, now=NOW)).removals
    assert (removal.outcome, removal.grace) == (outcome, grace)


DRAIN = (POD, LEFT_AT)


@pytest.mark.parametrize(
    ("seen", "now", "plan"),
    [
        # 5 s into the drain the clock steps forward by 56 s, or a leader follows whose clock is
        # that far ahead.
        ({DRAIN: 5.0}, LEFT_AT + 61, "wake 55"),
        ({}, LEFT_AT + 61, "wake 60"),
        ({DRAIN: 59.9}, LEFT_AT + 3600, "wake 0.1"),
        ({DRAIN: 60.0}, LEFT_AT + 3600, "delete 2:timeout"),
        # An earlier drain of that name is another drain.
        ({(POD, LEFT_AT - 100): 160.0}, LEFT_AT + 61, "wake 60"),
        # Both clocks must agree: one that went back makes it longer.
        ({DRAIN: 100.0}, LEFT_AT + 59, "wake 1"),
        ({DRAIN: 100.0}, LEFT_AT + 60, "delete 2:timeout"),
        # Only the controller measures.
        (None, LEFT_AT + 60, "delete 2:timeout"),
    ],
)
def test_a_drain_timeout_must_have_been_seen_to_pass(seen: Any, now: float, plan: str) -> None:
    view = timed(60.0).pod(2, opaque=True).but(drains_seen=seen)
    assert does(view, now=now, but="touch remind") == plan


def test_no_timeout_at_all_needs_no_time() -> None:
    assert outcomes(timed(0.0).but(drains_seen={})) == {POD: "timeout"}


@pytest.mark.parametrize(("seen", "drained"), [(4.9, False), (5.0, True)])
def test_a_worker_is_seen_empty_for_long_enough_by_the_same_clock(
    seen: float, drained: bool
) -> None:
    view = SHRUNK.drained(2, after=20.0).but(drains_seen={DRAIN: seen})
    assert outcomes(view) == ({POD: "drained"} if drained else {})


@pytest.mark.parametrize(
    ("view", "begun"),
    [
        (SHRUNK, {DRAIN}),
        (LATER, {(POD, LEFT_AT + 1)}),
        # It is gone; its last rank may have been seen to leave.
        (SHRUNK.without(2), {DRAIN}),
        (SHRUNK.unshown(), set()),
        (SHRUNK.but(config=EMPTY).shown(at=LEFT_AT), set()),
    ],
)
def test_which_drains_have_begun(view: JobView, begun: set[tuple[str, float]]) -> None:
    assert drain.begun(derive(view, now=NOW)) == begun


EVICTED = SHRUNK.pod(2, deleting=True, ends_at=NOW + 10)


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize(
    ("view", "waits"),
    [
        (EVICTED, True),
        (EVICTED.pod(2, probe=BUSY), True),
        (timed(1.0, EVICTED).pod(2, probe=BUSY), True),
        (EVICTED.drained(2, after=4.9), True),
        # Its successor may have its host name.
        (EVICTED.drained(2, after=5.0), False),
        (EVICTED.drained(2, after=2.0, busy_seen=True), False),
        # It was never a host, or has ended.
        (third(but(ANOTHER, deleting=True, ends_at=NOW + 10)), False),
        (EVICTED.pod(2, ends_at=NOW), False),
        (EVICTED.pod(2, running=False, terminated=True), False),
        # Its ranks are killed at once.
        (EVICTED.pod(2, grace=1), False),
        (EVICTED.pod(2, grace=2), True),
        # Nobody waits for a rank of these to leave.
        (EVICTED.but(launcher=None), False),
        (EVICTED.but(config=UNKNOWN).shown(at=LEFT_AT), False),
        (EVICTED.but(config=LISTED).shown(at=LEFT_AT), False),
        (EVICTED.plain(), False),
        (EVICTED.but(finished=True, clean_pod_policy="Running"), False),
    ],
)
def test_a_pod_that_somebody_else_deletes_is_only_probed_until_it_has_drained(
    view: Story, waits: bool, wanted: bool
) -> None:
    found = drain.leave(derive(view.but(replicas=3 if wanted else 2), now=NOW))
    assert not found.removals
    assert bool(found.probes or found.wake_at) is waits


def test_a_pod_that_somebody_else_deletes_is_probed_and_waited_for() -> None:
    assert does(EVICTED) == "probe 2; wake 40"
    assert does(EVICTED.pod(2, probe=BUSY), but="touch remind") == "wake 2"
