"""Drains: the workers that may be deleted now, and why."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, drain
from mpijob_elastic.decide.actions import Plan
from mpijob_elastic.model.job import JobView, Launcher, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, config, failed, job, launcher, pending, pods, shown, worker

LEFT_AT = NOW - 20
POD = "j-worker-2"
UID = "uid-of-j-worker-2"
MARK = pod_fingerprint(UID)
EARLIER = pod_fingerprint("another pod of that name")


def idle(seconds: float, *, busy_seen: bool = False) -> Probe:
    """Empty when last looked at, so long after it left."""
    at = LEFT_AT + seconds
    return Probe(busy_seen=busy_seen, idle_at=at, asked_at=at)


def shrunk(surplus: Worker | None = None, *, left: Left | None = None, at: float = LEFT_AT, **facts: Any) -> JobView:
    """Three workers of which two are wanted: the third left the list, and the launcher was shown that at once."""
    memory = Memory(left={POD: left or Left(pod=MARK, at=LEFT_AT)}, removed_at=LEFT_AT)
    facts = {"config": config(pods(0, 1), memory=memory), **facts}
    view = job(2, workers=(worker(0), worker(1), surplus or worker(2)), **facts)
    return shown(view, at=at) if view.launcher and view.config else view


def outcomes(view: JobView, *, now: float = NOW) -> dict[str, str]:
    return {removal.worker.name: removal.outcome for removal in drain.leave(derive(view, now=now)).removals}


def over(ago: float, **facts: Any) -> Launcher:
    """A launcher that ended so many seconds ago."""
    return launcher(LauncherPhase.FINISHED, ended_at=NOW - ago, **facts)


UNKNOWN = replace(config(pods(0, 1)), memory=None)
LISTED = config(pods(0, 1, 2))
EMPTY = config([], memory=Memory(left={POD: Left(pod=MARK, at=LEFT_AT)}))
WAITING = launcher(LauncherPhase.WAITING)
# It came when the driver had long read that the pod before it had left.
ANOTHER = worker(2, uid="another pod of that name", created_at=NOW - 5)
STARTING = pending(2, node="n")


@pytest.mark.parametrize(
    ("view", "outcome"),
    [
        (shrunk(), None),
        (shrunk(worker(2, probe=idle(5.0))), "drained"),
        (shrunk(worker(2, probe=idle(4.9))), None),
        (shrunk(worker(2, probe=idle(2.0, busy_seen=True))), "drained"),
        (shrunk(worker(2, probe=idle(1.9, busy_seen=True))), None),
        (shrunk(worker(2, probe=Probe(busy_seen=True, asked_at=NOW))), None),
        # Its main process has seen the last rank leave: one that leaves since the launcher was shown has heard of it.
        (shrunk(worker(2, probe=replace(idle(0.5, busy_seen=True), left=True))), "drained"),
        (shrunk(worker(2, probe=replace(idle(0.5, busy_seen=True), left=True)), at=LEFT_AT + 1), None),
        # The clock was set back after this look.
        (shrunk(worker(2, probe=Probe(idle_at=NOW + 1, asked_at=NOW + 1))), None),
        # It counts from when the launcher was shown, for until then it may start a rank there.
        (shrunk(worker(2, probe=idle(5.0)), at=LEFT_AT + 1), None),
        (shrunk(worker(2, probe=idle(6.0)), at=LEFT_AT + 1), "drained"),
        (shrunk(policy=Policy(drain_timeout=20.0)), "timeout"),
        (shrunk(policy=Policy(drain_timeout=20.0), at=LEFT_AT + 1), None),
        (shrunk(policy=Policy(drain_timeout=0.0)), "timeout"),
        (shrunk(ANOTHER), "unused"),
        (shrunk(replace(ANOTHER, running=False, ready_at=None, node="n")), "unused"),
        # It has no node, so no container of it can ever have run, whatever is remembered of its name.
        (shrunk(pending(2)), "unscheduled"),
        (shrunk(pending(2), launcher=WAITING), "unscheduled"),
        (shrunk(pending(2), left=Left(pod=EARLIER, at=NOW - 1)), "unscheduled"),
        (shrunk(pending(2), config=LISTED), None),
        (shrunk(pending(2), config=UNKNOWN), None),
        (shrunk(pending(2), replicas=3), None),
        (shrunk(pending(2, deleting=True)), None),
        (shrunk(pending(2), elastic=False), None),
        # On a node its containers may run before the kubelet has said so.
        (shrunk(STARTING), None),
        # The driver may have taken it for the pod before it.
        (shrunk(left=Left(pod=EARLIER, at=NOW - 20)), None),
        (
            shrunk(worker(2, probe=idle(5.0)), left=Left(pod=EARLIER, at=LEFT_AT)),
            "drained",
        ),
        (shrunk(config=config(pods(0, 1))), "unused"),
        # That the launcher knew was written down before it was shown something else.
        (
            shrunk(worker(2, probe=idle(5.0)), left=Left(pod=MARK, at=LEFT_AT, known_at=LEFT_AT), at=NOW),
            "drained",
        ),
        (shrunk(failed(2)), "idle"),
        (shrunk(config=LISTED), None),
        (shrunk(failed(2), config=LISTED), None),
        # Nobody was told to leave by a list that got lost.
        (shrunk(config=EMPTY, policy=Policy(drain_timeout=0.0)), None),
        (shrunk(config=EMPTY, policy=Policy(drain_timeout=0.0), launcher=WAITING), "timeout"),
        # Whether it was in the list a moment ago, nobody has written down.
        (shrunk(config=UNKNOWN), None),
        (shrunk(config=None), None),
        (shrunk(launcher=None), "idle"),
        (shrunk(launcher=launcher(LauncherPhase.FINISHED)), None),
        # A launcher that waits may start while we look.
        (shrunk(launcher=WAITING), None),
        (shrunk(worker(2, probe=idle(5.0)), launcher=WAITING), "drained"),
        (shrunk(ANOTHER, launcher=WAITING), "unused"),
        (shrunk(worker(2, deleting=True)), None),
        (shrunk(elastic=False, policy=Policy(drain_timeout=0.0)), None),
        (shrunk(replicas=3, policy=Policy(drain_timeout=0.0)), None),
    ],
)
def test_when_a_surplus_worker_may_go(view: JobView, outcome: str | None) -> None:
    assert outcomes(view) == ({POD: outcome} if outcome else {})


def test_before_the_launcher_was_shown_nothing_counts() -> None:
    view = shrunk(worker(2, probe=idle(15.0)), policy=Policy(drain_timeout=0.0))
    assert outcomes(view) == {POD: "drained"}
    assert view.launcher is not None
    assert outcomes(replace(view, launcher=replace(view.launcher, refreshed=None))) == {}


@pytest.mark.parametrize(("policy", "outcome"), [(Policy(), {}), (Policy(delete_without_discovery=True), "timeout")])
def test_a_launcher_that_cannot_learn_keeps_its_workers_unless_asked_for(policy: Policy, outcome: Any) -> None:
    blind = launcher(mounts_discovery=False)
    view = shrunk(launcher=blind, policy=replace(policy, drain_timeout=20.0))
    assert outcomes(view) == ({POD: outcome} if outcome else {})


def test_the_highest_index_goes_first() -> None:
    view = job(4, replicas=1, launcher=None, config=config(pods(0)))
    assert list(outcomes(view)) == list(pods(3, 2, 1))


@pytest.mark.parametrize(
    ("view", "gone"),
    [
        (job(3, replicas=1, finished=True, clean_pod_policy="Running"), pods(2, 1)),
        (job(3, replicas=1, finished=True, clean_pod_policy="All"), pods(2, 1)),
        (job(3, replicas=1, finished=True, clean_pod_policy="None"), ()),
        (job(3, replicas=1, finished=True, clean_pod_policy="Running", elastic=False), pods(2, 1)),
        (job(3, replicas=3, finished=True, clean_pod_policy="Running"), ()),
        # The operator has not deleted the others in time, or does not even know of the end.
        (job(3, replicas=2, finished=True, ended_at=NOW - 29, clean_pod_policy="Running"), pods(2)),
        (job(3, replicas=2, finished=True, ended_at=NOW - 30, clean_pod_policy="Running"), pods(2, 1, 0)),
        (job(3, launcher=over(29), clean_pod_policy="Running"), ()),
        (job(3, launcher=over(30), clean_pod_policy="Running"), pods(2, 1, 0)),
        (job(3, launcher=over(30), clean_pod_policy="All", elastic=False), pods(2, 1, 0)),
        (job(3, launcher=over(30), clean_pod_policy="None"), ()),
        (job(3, launcher=over(30, deleting=True), clean_pod_policy="Running"), ()),
        (job(3, launcher=launcher(LauncherPhase.FINISHED), clean_pod_policy="Running"), ()),
    ],
)
def test_what_is_left_over_when_the_job_has_ended(view: JobView, gone: tuple[str, ...]) -> None:
    assert outcomes(view) == dict.fromkeys(gone, "finished")


def test_the_operator_has_its_time_to_delete_the_workers_of_a_job_that_has_ended() -> None:
    assert decide(job(3, launcher=over(10), clean_pod_policy="Running"), now=NOW).wake_at == NOW + 20
    assert decide(job(3, launcher=over(10), clean_pod_policy="None"), now=NOW) == Plan()


def broken(count: int, *, listed: tuple[int, ...] = (0, 1), **facts: Any) -> JobView:
    """The third of three workers failed at NOW, for the `count`th time."""
    tries = {POD: Tries(count=count, at=NOW, uid=UID)} if count else {}
    seen = config(pods(*listed), memory=Memory(replaced=tries))
    facts = {"workers": (worker(0), worker(1), failed(2)), **facts}
    return job(3, config=seen, **facts)


@pytest.mark.parametrize(
    ("view", "replaced"),
    [
        (broken(1), True),
        (broken(0), False),
        (broken(2), False),
        (broken(1, listed=(0, 1, 2)), False),
        # The last host stays in the list, for it must not become empty.
        (broken(1, listed=(2,), workers=(failed(2),)), True),
        (broken(1, launcher=launcher(mounts_discovery=False)), False),
    ],
)
def test_when_a_failed_worker_is_replaced(view: JobView, replaced: bool) -> None:
    assert outcomes(view) == ({POD: "failed"} if replaced else {})


def test_a_replacement_that_must_wait_wakes_us() -> None:
    assert drain.leave(derive(broken(2), now=NOW)).wake_at == NOW + 10


@pytest.mark.parametrize(
    ("probe", "asks", "wake_at"),
    [
        (Probe(), True, LEFT_AT + 60),
        (Probe(asked_at=NOW - 0.5), False, NOW + 1.5),
        (Probe(asked_at=NOW - 2), True, LEFT_AT + 60),
        # Asked before the clock was set back.
        (Probe(asked_at=NOW + 3600), True, LEFT_AT + 60),
        # A look that hangs or is refused: again as usual, then later and later.
        (Probe(asked_at=NOW - 0.5, failed=1), False, NOW + 1.5),
        (Probe(asked_at=NOW - 2, failed=2), False, NOW + 2),
        (Probe(asked_at=NOW - 7, failed=3), False, NOW + 1),
        (Probe(asked_at=NOW - 20, failed=2000), False, NOW + 10),
    ],
)
def test_a_leaving_worker_is_looked_at_now_and_then(probe: Probe, asks: bool, wake_at: float) -> None:
    found = drain.leave(derive(shrunk(worker(2, probe=probe)), now=NOW))
    assert ([worker.name for worker in found.probes], found.wake_at) == ([POD] if asks else [], wake_at)


def test_at_first_it_is_looked_at_often() -> None:
    view = shrunk(worker(2, probe=Probe(asked_at=LEFT_AT + 9)))
    assert drain.leave(derive(view, now=LEFT_AT + 9)).wake_at == LEFT_AT + 9.5


def test_it_is_not_looked_at_before_the_launcher_was_shown_the_list() -> None:
    view = shrunk()
    assert [worker.name for worker in drain.leave(derive(view, now=NOW)).probes] == [POD]
    assert view.launcher is not None
    assert drain.leave(derive(replace(view, launcher=replace(view.launcher, refreshed=None)), now=NOW)).probes == ()


def test_it_is_not_looked_at_while_it_is_unknown_whether_it_has_left() -> None:
    edited = replace(shrunk().config or UNKNOWN, script="#!/bin/sh\n", published=None)
    assert drain.leave(derive(replace(shrunk(), config=edited), now=NOW)) == drain.Leaving()


def test_one_that_does_not_run_cannot_be_looked_at() -> None:
    found = drain.leave(derive(shrunk(STARTING), now=NOW))
    assert (found.probes, found.wake_at) == ((), LEFT_AT + 60)


@pytest.mark.parametrize("timeout", [0.1, 59.7, 60.0, 0.3])
@pytest.mark.parametrize("left_at", [1763712345.1234567, 1763712345.7, 0.1])
def test_a_deadline_that_wakes_us_has_passed_by_then(left_at: float, timeout: float) -> None:
    view = shrunk(STARTING, left=Left(pod=MARK, at=left_at), at=left_at, policy=Policy(drain_timeout=timeout))
    woken = drain.leave(derive(view, now=left_at)).wake_at
    assert woken is not None
    assert outcomes(view, now=woken) == {POD: "timeout"}


@pytest.mark.parametrize(
    ("view", "reason", "words"),
    [
        (shrunk(worker(2, probe=idle(5.0), last_state="Running on node a")), "SurplusDeleted", "drained after 20s"),
        (shrunk(policy=Policy(drain_timeout=20.0)), "DrainTimeout", "drain-timeout of 20s"),
        (shrunk(ANOTHER), "SurplusDeleted", "never listed in discover_hosts.sh"),
        (shrunk(launcher=None), "SurplusDeleted", "no rank runs in it"),
        (shrunk(pending(2)), "SurplusDeleted", "never scheduled to a node"),
        (broken(1, workers=(failed(2, last_state="Failed; OOMKilled"),)), "WorkerReplaced", "state: Failed; OOMKilled"),
    ],
)
def test_the_user_reads_why(view: JobView, reason: str, words: str) -> None:
    (removal,) = drain.leave(derive(view, now=NOW)).removals
    assert removal.note.reason == reason
    assert words in removal.note.message
    assert removal.note.warning is (reason != "SurplusDeleted")


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        (Probe(busy_seen=True, asked_at=NOW, busy_at=NOW), "its ranks are killed"),
        (Probe(asked_at=NOW), "exec could not show whether ranks run in it"),
        (idle(1.0), "no rank was seen in it recently"),
    ],
)
def test_at_the_drain_timeout_the_user_reads_whether_ranks_were_cut(probe: Probe, words: str) -> None:
    view = shrunk(worker(2, probe=probe), policy=Policy(drain_timeout=20.0))
    (removal,) = drain.leave(derive(view, now=NOW)).removals
    assert (removal.outcome, removal.note.warning) == ("timeout", True)
    assert words in removal.note.message


def test_where_processes_cannot_be_told_apart_the_drain_timeout_decides() -> None:
    opaque = worker(2, opaque=True)
    found = drain.leave(derive(shrunk(opaque), now=NOW))
    assert (found.removals, found.probes, found.wake_at) == ((), (), LEFT_AT + 60)
    assert outcomes(shrunk(opaque), now=LEFT_AT + 60) == {POD: "timeout"}


@pytest.mark.parametrize(
    ("view", "outcome", "grace"),
    [
        (shrunk(worker(2, probe=idle(5.0))), "drained", 1),
        (shrunk(policy=Policy(drain_timeout=20.0)), "timeout", 1),
        (shrunk(ANOTHER), "unused", 1),
        # A hook is the user's word that the pod needs its time.
        (shrunk(worker(2, probe=idle(5.0), pre_stop=True)), "drained", None),
        (shrunk(worker(2, pre_stop=True), policy=Policy(drain_timeout=20.0)), "timeout", None),
        # Nothing runs in these, or nobody waited for a rank to leave.
        (shrunk(failed(2)), "idle", None),
        (shrunk(pending(2)), "unscheduled", None),
        (shrunk(launcher=None), "idle", None),
        (broken(1), "failed", None),
        (job(3, replicas=2, finished=True, clean_pod_policy="Running"), "finished", None),
    ],
)
def test_a_worker_without_ranks_holds_its_gpus_no_longer(view: JobView, outcome: str, grace: int | None) -> None:
    (removal,) = drain.leave(derive(view, now=NOW)).removals
    assert (removal.outcome, removal.grace) == (outcome, grace)


TIMED = Policy(drain_timeout=60.0)
DRAIN = (POD, LEFT_AT)
BUSY = Probe(busy_seen=True, asked_at=NOW, busy_at=NOW)


@pytest.mark.parametrize(
    ("seen", "now", "outcome", "wake_at"),
    [
        # 5 s into the drain the clock steps forward by 56 s, or a leader follows whose clock is that far ahead.
        ({DRAIN: 5.0}, LEFT_AT + 61, "", LEFT_AT + 116),
        ({}, LEFT_AT + 61, "", LEFT_AT + 121),
        ({DRAIN: 59.9}, LEFT_AT + 3600, "", LEFT_AT + 3600.1),
        ({DRAIN: 60.0}, LEFT_AT + 3600, "timeout", None),
        # An earlier drain of that name is another drain.
        ({(POD, LEFT_AT - 100): 160.0}, LEFT_AT + 61, "", LEFT_AT + 121),
        # Both clocks must agree: one that went back makes it longer.
        ({DRAIN: 100.0}, LEFT_AT + 59, "", LEFT_AT + 60),
        ({DRAIN: 100.0}, LEFT_AT + 60, "timeout", None),
        # Only the controller measures.
        (None, LEFT_AT + 60, "timeout", None),
    ],
)
def test_a_drain_timeout_must_have_been_seen_to_pass(
    seen: Any, now: float, outcome: str, wake_at: float | None
) -> None:
    view = replace(shrunk(worker(2, probe=replace(BUSY, asked_at=now)), policy=TIMED), drains_seen=seen)
    found = drain.leave(derive(view, now=now))
    assert [removal.outcome for removal in found.removals] == [outcome] * bool(outcome)
    deadline = derive(view, now=now).by_name[POD].drain
    assert deadline is not None
    assert deadline.deadline is not None
    assert wake_at is None or deadline.deadline == pytest.approx(wake_at)


def test_no_timeout_at_all_needs_no_time() -> None:
    view = replace(shrunk(policy=Policy(drain_timeout=0.0)), drains_seen={})
    assert outcomes(view) == {POD: "timeout"}


@pytest.mark.parametrize(("seen", "drained"), [(4.9, False), (5.0, True)])
def test_a_worker_is_seen_empty_for_long_enough_by_the_same_clock(seen: float, drained: bool) -> None:
    view = replace(shrunk(worker(2, probe=idle(20.0))), drains_seen={DRAIN: seen})
    assert outcomes(view) == ({POD: "drained"} if drained else {})


def test_which_drains_have_begun() -> None:
    assert drain.begun(derive(shrunk(), now=NOW)) == {DRAIN}
    assert drain.begun(derive(shrunk(at=LEFT_AT + 1), now=NOW)) == {(POD, LEFT_AT + 1)}
    # It is gone; its last rank may have been seen to leave.
    assert drain.begun(derive(replace(shrunk(), workers=(worker(0), worker(1))), now=NOW)) == {DRAIN}
    view = shrunk()
    assert view.launcher is not None
    untouched = replace(view, launcher=replace(view.launcher, refreshed=None))
    assert drain.begun(derive(untouched, now=NOW)) == set()
    assert drain.begun(derive(shrunk(config=EMPTY), now=NOW)) == set()


def evicted(**facts: Any) -> Worker:
    """The worker that left the list, being deleted by somebody else with the usual time to end."""
    return worker(2, **{"deleting": True, "ends_at": NOW + 10, **facts})


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize(
    ("pod", "facts", "waits"),
    [
        (evicted(), {}, True),
        (evicted(probe=BUSY), {}, True),
        (evicted(probe=BUSY), {"policy": Policy(drain_timeout=1.0)}, True),
        (evicted(probe=idle(4.9)), {}, True),
        # Its successor may have its host name.
        (evicted(probe=idle(5.0)), {}, False),
        (evicted(probe=idle(2.0, busy_seen=True)), {}, False),
        # It was never a host, or has ended.
        (evicted(uid="another pod of that name", created_at=NOW - 5), {}, False),
        (evicted(ends_at=NOW), {}, False),
        (evicted(running=False, terminated=True), {}, False),
        # Nobody waits for a rank of these to leave.
        (evicted(), {"launcher": None}, False),
        (evicted(), {"config": UNKNOWN}, False),
        (evicted(), {"config": LISTED}, False),
        (evicted(), {"spec_elastic": False, "policy": Policy(enabled=False)}, False),
        (evicted(), {"finished": True, "clean_pod_policy": "Running"}, False),
    ],
)
def test_a_pod_that_somebody_else_deletes_is_only_probed_until_it_has_drained(
    pod: Worker, facts: dict[str, Any], waits: bool, wanted: bool
) -> None:
    view = replace(shrunk(pod, **facts), replicas=3 if wanted else 2)
    found = drain.leave(derive(view, now=NOW))
    assert not found.removals
    assert bool(found.probes or found.wake_at) is waits


def test_a_pod_that_somebody_else_deletes_is_probed_and_waited_for() -> None:
    found = drain.leave(derive(shrunk(evicted()), now=NOW))
    assert [pod.name for pod in found.probes] == [POD]
    asked = drain.leave(derive(shrunk(evicted(probe=replace(BUSY, asked_at=NOW))), now=NOW))
    assert (asked.probes, asked.wake_at) == ((), NOW + drain.PROBE_LATER)
