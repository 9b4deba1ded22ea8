"""What is asked of Kueue, what is given back, and who may start."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import wishes as workloads
from mpijob_elastic.capabilities.kueue.actions import CreateWorkload
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE, Asked, Queue, Workload
from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Note, TellUser, Ungate
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
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
    tries,
    worker,
)
from tests.product.decide.plans import change, does, notes, removals
from tests.queues import BASE, GATES, granted, preempted, queue, training, waiting, workload

TWO, THREE = (worker(0), worker(1)), (worker(0), worker(1), worker(2))
LEAST, ANY = Policy(min_replicas=2), Policy(min_replicas=1)
NO_QUOTA = workload(said="no quota")
EXTRA = granted("j-worker-2", workers=1, ready=True)
TAKEN = preempted("j-worker-2")
SLOW = granted(
    "j-worker-2", workers=1, evicted=True, late=True, said="Exceeded the PodsReady timeout"
)
READY = granted(ready=True)
OVER = granted(finished=True)


def due(view: JobView) -> str:
    """What is written for Kueue."""
    return does(view, but="publish hostfile remember touch delete say probe ungate allow wake")


def told(view: JobView) -> list[Note]:
    """What Kueue makes the job say."""
    kueue, state = view.of(Kueue), derive(view, now=NOW)
    return list(kueue.notes(state)) if kueue else []


def quota(view: JobView, pod: Worker) -> str:
    kueue = view.of(Kueue)
    return workloads.quota(view, kueue.queue, pod) if kueue and kueue.queue else ""


def next_of(view: JobView) -> Workload | None:
    kueue = view.of(Kueue)
    return workloads.waiting(view, kueue.queue) if kueue and kueue.queue else None


def ended(*left: Worker, **facts: Any) -> Story:
    """A job of three that has ended, with these workers left."""
    found = (READY, granted("j-worker-2", workers=1))
    over = {
        "launcher": launcher(LauncherPhase.FINISHED),
        "clean_pod_policy": "Running",
        "finished": True,
    }
    return training(*left, found=found, size=3, **{**over, **facts})


def wanted_back(view: JobView, *extras: Workload) -> JobView:
    """The same job, whose base Kueue wants for others."""
    return but(view, queue=queue(granted(evicted=True, ready=True, said="for\nb"), *extras))


LAUNCHER_AND = "ask launcher: 1 like launcher and"
WAITS = pending(2, gates=GATES)
HALF = (pending(0, gates=GATES), worker(1))
FOUR = (*TWO, WAITS, pending(3, gates=GATES))
PARTS = granted(flavors={"launcher": ("cpu",), "workers": ("gpu",)})
EXTRAS = (granted(), granted("j-worker-2", workers=1))
LARGER = granted(workers=4)
FEW_OF_THREE = (worker(0), pending(1), pending(2))
SMALLER = training(*THREE, found=(READY, EXTRA), size=2)
OTHER_SIZE = workload(workers=3, said="no quota")


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        # A job asks for its launcher and the least that training needs to start.
        pytest.param(waiting(4, policy=LEAST), f"{LAUNCHER_AND} 2 like 0", id="its least size"),
        pytest.param(waiting(4), f"{LAUNCHER_AND} 4 like 0", id="no least size"),
        pytest.param(
            waiting(4, policy=Policy(min_replicas=9)),
            f"{LAUNCHER_AND} 4 like 0",
            id="a large least size",
        ),
        pytest.param(
            waiting(4, policy=ANY, np_workers=3), f"{LAUNCHER_AND} 3 like 0", id="horovodrun's -np"
        ),
        pytest.param(
            waiting(4, policy=ANY, min_np_workers=2), f"{LAUNCHER_AND} 2 like 0", id="its --min-np"
        ),
        # Its launcher waits for all workers.
        pytest.param(
            waiting(4, policy=ANY, unread_options=frozenset({"np"})),
            f"{LAUNCHER_AND} 4 like 0",
            id="-np that cannot be read",
        ),
        # Its launcher waits for all workers, and none of them can leave.
        pytest.param(
            waiting(4, policy=ANY, elastic=False), f"{LAUNCHER_AND} 4 like 0", id="not elastic"
        ),
        pytest.param(
            waiting(0, elastic=False), "ask launcher: 1 like launcher", id="without workers"
        ),
        pytest.param(waiting(2).without(0, 1), "nothing", id="no worker is there yet"),
        pytest.param(waiting(2, queue=None), "nothing", id="no queue is known"),
        pytest.param(waiting(2, deleting=True), "nothing", id="it is deleted"),
        pytest.param(waiting(2, suspended_by="x"), "nothing", id="it is suspended"),
        # Its pods start when they are granted.
        pytest.param(waiting(2, workload(said="insufficient quota")), "nothing", id="no quota"),
        pytest.param(
            waiting(0, granted(workers=0), elastic=False), "start launcher", id="only a launcher"
        ),
        pytest.param(
            waiting(3, PARTS, policy=LEAST),
            "start launcher on cpu; start 0 1 on gpu; ask 2: 1 like 2, priority -1",
            id="flavors, and the next",
        ),
        pytest.param(
            waiting(1, granted(workers=1)).pod(0, gates=("theirs", *GATES)),
            "start launcher 0[theirs]",
            id="a foreign gate",
        ),
        # Further workers ask one by one with a priority that falls, once the base is granted.
        pytest.param(
            training(*FOUR, found=(granted(priority=7, ready=True),), size=4).but(
                config=config(pods(0, 1))
            ),
            "ask 2: 1 like 2, priority 6; ask 3: 1 like 3, priority 5",
            id="further workers",
        ),
        pytest.param(
            waiting(4, NO_QUOTA, policy=LEAST), "nothing", id="further workers wait for the base"
        ),
        pytest.param(
            waiting(4, granted(evicted=True), policy=LEAST),
            "give back launcher",
            id="the base is wanted back",
        ),
        pytest.param(
            training(*THREE, found=EXTRAS, size=3),
            "ready launcher; ready 2",
            id="ready when their pods run",
        ),
        pytest.param(
            training(*FEW_OF_THREE, found=EXTRAS, size=3), "nothing", id="not ready before"
        ),
        # Else Kueue's waitForPodsReady would stop a job that trains, and let nobody else in until
        # then.
        pytest.param(
            training(*TWO, found=(LARGER,), size=2), "ready launcher", id="ready with what is left"
        ),
        pytest.param(
            training(worker(0), pending(1), found=(LARGER,), size=2),
            "nothing",
            id="not ready with less",
        ),
        pytest.param(
            training(*TWO, found=(granted(evicted=True), TAKEN), size=3),
            "nothing",
            id="extras of such a base, while it runs",
        ),
        pytest.param(SMALLER, "nothing", id="a scale-in while the worker runs"),
        pytest.param(SMALLER.without(2), "withdraw 2", id="once it is gone"),
        # A finished job frees its quota when nothing of it runs.
        pytest.param(ended(), "finish launcher; finish 2", id="ended, all is gone"),
        pytest.param(
            ended(failed(0), failed(1), failed(2)),
            "finish launcher; finish 2",
            id="ended, all have failed",
        ),
        pytest.param(ended(*THREE), "nothing", id="ended, all run"),
        pytest.param(ended(worker(1, deleting=True)), "finish 2", id="ended, one of the base runs"),
        pytest.param(
            ended(worker(2, deleting=True)), "finish launcher", id="ended, the extra runs"
        ),
        pytest.param(ended(*TWO, WAITS), "finish 2", id="ended, the extra never started"),
        pytest.param(
            ended(launcher=launcher(deleting=True)), "finish 2", id="ended, its launcher runs"
        ),
        # Its owner wants the workers to stay, perhaps for ever.
        pytest.param(
            ended(*THREE, clean_pod_policy="None"),
            "finish launcher; finish 2",
            id="ended, they stay",
        ),
        pytest.param(
            ended(
                queue=queue(granted(finished=True), granted("j-worker-2", workers=1, finished=True))
            ),
            "nothing",
            id="ended, and finished",
        ),
        # Its end was taken back: Kueue grants nothing to what has finished.
        pytest.param(
            waiting(3, OVER, EXTRA, policy=LEAST), "withdraw launcher", id="not ended, and finished"
        ),
        pytest.param(
            training(
                *TWO, WAITS, found=(READY, granted("j-worker-2", workers=1, finished=True)), size=3
            ),
            "withdraw 2",
            id="not ended, and an extra finished",
        ),
        pytest.param(
            waiting(3, OVER, queue=queue(OVER, prebuilt=True)),
            "nothing",
            id="MultiKueue's own finished",
        ),
        # Somebody has deleted the base, and the next asks for the least size of now: maybe for that
        # very quota.
        *(
            pytest.param(
                training(*THREE, found=(base, EXTRA), size=3, policy=Policy(min_replicas=3)),
                "withdraw 2",
                id=what,
            )
            for base, what in (
                (workload(workers=3), "a base covers it"),
                (granted(workers=3, ready=True), "granted"),
            )
        ),
        # A controller that is killed between the writes of a suspension leaves such extras.
        pytest.param(
            waiting(3, workload(), EXTRA, policy=LEAST),
            "withdraw 2",
            id="a base waits for its extra",
        ),
        pytest.param(
            waiting(3, granted(evicted=True, ready=True), EXTRA, policy=LEAST),
            "give back launcher; withdraw 2",
            id="a base given back first",
        ),
        pytest.param(
            training(
                pending(0, gates=GATES),
                pending(1, gates=GATES),
                worker(2),
                found=(workload(), EXTRA),
                size=3,
            ),
            "nothing",
            id="the extra runs",
        ),
        # Of a deleted job it stays until the pods that own it are gone, and these may be others by
        # then.
        *(
            pytest.param(
                training(*THREE, found=(base, extra), size=3), plan, id=f"owned by others: {what}"
            )
            for base, extra, plan, what in (
                (
                    granted(ready=True, pods=("old", "uid-of-j-worker-0")),
                    EXTRA,
                    "adopt launcher",
                    "its launcher",
                ),
                (
                    granted(ready=True, pods=("uid-of-j-launcher", "old")),
                    EXTRA,
                    "adopt launcher",
                    "its first worker",
                ),
                (granted(ready=True, pods=()), EXTRA, "adopt launcher", "none is left"),
                (
                    READY,
                    granted("j-worker-2", workers=1, ready=True, pods=("old",)),
                    "adopt 2",
                    "an extra",
                ),
            )
        ),
        pytest.param(
            training(*TWO, found=(READY, granted("j-worker-2", pods=())), size=3),
            "nothing",
            id="no other yet",
        ),
        pytest.param(
            training(
                worker(1), worker(2), found=(granted(ready=True, workers=3),), size=2, parked={0}
            ),
            "adopt launcher",
            id="owned by a worker that is parked",
        ),
        pytest.param(
            training(
                worker(1),
                worker(2),
                found=(
                    granted(ready=True, workers=3, pods=("uid-of-j-launcher", "uid-of-j-worker-1")),
                ),
                size=2,
                parked={0},
            ),
            "nothing",
            id="owned by the first that is not",
        ),
        # It asks no more, or for another size.
        pytest.param(
            waiting(2, queue=queue(NO_QUOTA, name="")),
            "withdraw launcher",
            id="it leaves the queue",
        ),
        pytest.param(
            waiting(2, queue=queue(NO_QUOTA, name="other")),
            "withdraw launcher",
            id="its queue changes",
        ),
        pytest.param(
            waiting(2, queue=queue(granted(), name="other")),
            "start launcher 0 1",
            id="changes too late",
        ),
        pytest.param(
            waiting(2, granted(workers=3)), "start launcher 0 1", id="quota is reserved already"
        ),
        pytest.param(
            waiting(2, granted(workers=3, admitted=False)), "nothing", id="a check is awaited"
        ),
        pytest.param(
            waiting(2, workload(workers=3, active=False, said="inactive")),
            "nothing",
            id="somebody took it out",
        ),
        pytest.param(
            waiting(2, queue=queue(OTHER_SIZE, prebuilt=True)), "nothing", id="MultiKueue's"
        ),
        pytest.param(
            waiting(2, granted(), suspended_by="x"),
            "withdraw launcher",
            id="suspended, and nothing runs",
        ),
        pytest.param(
            training(*TWO, found=(granted(),), size=2, suspended_by="x"),
            "nothing",
            id="its workers run",
        ),
        pytest.param(waiting(2, OTHER_SIZE), "withdraw launcher", id="smaller now"),
        pytest.param(waiting(3, OTHER_SIZE), "nothing", id="the same size"),
        pytest.param(waiting(4, OTHER_SIZE), "withdraw launcher", id="larger now"),
        pytest.param(
            waiting(4, OTHER_SIZE, policy=LEAST), "withdraw launcher", id="another least size"
        ),
        # It may have been granted, and the leader before may have let it start.
        pytest.param(
            waiting(4, OTHER_SIZE).but(workers=FOUR), "nothing", id="another size, and two run"
        ),
        # Kueue wants quota back.
        pytest.param(
            wanted_back(waiting(2).but(workers=HALF)),
            "nothing",
            id="wanted back while something runs",
        ),
        # So does Kueue while an admission check is awaited, or one says that the job is to be tried
        # again.
        *(
            pytest.param(
                waiting(2, granted(evicted=True, admitted=admitted), elastic=False).but(
                    workers=workers
                ),
                plan,
                id=f"wanted back of a plain job: {what}",
            )
            for admitted in (True, False)
            for workers, plan, what in (
                (
                    (pending(0, gates=GATES), pending(1, gates=GATES)),
                    "give back launcher",
                    f"waits, {admitted}",
                ),
                ((worker(0), pending(1, gates=GATES)), "nothing", f"runs, {admitted}"),
            )
        ),
    ],
)
def test_what_is_written_for_kueue(view: JobView, plan: str) -> None:
    assert due(view) == plan


DRAINED = Probe(busy_seen=True, idle_at=NOW - 1, asked_at=NOW - 1, idle_since=NOW - 10)
LEFT = Memory(left={"j-worker-2": left("j-worker-2", ago=20)})
LEAVES = training(
    *TWO,
    worker(2, probe=DRAINED),
    found=(READY, TAKEN),
    size=3,
    config=config(pods(0, 1), memory=LEFT),
)
# After the clearing patch its successor queues again, and is not deleted.
AGAIN = queue(READY, workload("j-worker-2", workers=1, evicted=True, said="no quota"))
LAST = wanted_back(training(worker(0), found=(), size=1))


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(waiting(2, workload(said="no quota")), "say Queued", id="it waits"),
        pytest.param(
            waiting(2, granted(admitted=False, said="AdmissionCheck nodes is Pending")),
            "say Queued",
            id="for a check",
        ),
        pytest.param(
            waiting(2, granted(admitted=False)), "nothing", id="Kueue admits it in a moment"
        ),
        pytest.param(
            waiting(2, NO_QUOTA, reported=False),
            "say Queued",
            id="it has no status because it waits",
        ),
        # A write now could cost the job its condition Created: the operator makes the launcher,
        # then the status.
        pytest.param(
            waiting(2, NO_QUOTA, reported=False).but(launcher=None),
            "nothing",
            id="before its launcher",
        ),
        pytest.param(waiting(2, queue=None), "nothing", id="whether there is a Kueue is not known"),
        pytest.param(waiting(2, queue=NO_QUEUE), "ungate launcher 0 1", id="there is none"),
        pytest.param(
            training(*map(worker, range(4)), found=(READY, EXTRA, preempted("j-worker-3")), size=4),
            "publish 0 1 2 (Draining)",
            id="an extra that is wanted back drains",
        ),
        pytest.param(
            LEAVES.shown(at=NOW - 20), "delete 2:drained; say QuotaWanted", id="and is deleted"
        ),
        pytest.param(LEAVES.without(2), "give back 2", id="its quota goes when it is gone"),
        pytest.param(LEAVES.but(workers=(*TWO, WAITS)), "give back 2", id="or waits again"),
        pytest.param(
            LEAVES.but(workers=(*TWO, WAITS), queue=AGAIN),
            "say WorkersQueued",
            id="it queues again",
        ),
        pytest.param(
            wanted_back(training(*TWO, found=(), size=2)),
            "publish 0 (Draining)",
            id="a base wanted back",
        ),
        pytest.param(LAST, "say Suspended; delete launcher, suspended", id="its last worker"),
        pytest.param(
            wanted_back(waiting(3), granted("j-worker-2", workers=1)),
            "say Suspended; give back launcher; withdraw 2",
            id="a base, and all its pods wait",
        ),
        pytest.param(
            waiting(2).but(queue=queue(workload(evicted=True, said="no quota"))),
            "say Queued",
            id="then it queues again",
        ),
        pytest.param(
            job(2, queue=Queue(ignored="team")), "say QueueIgnored", id="nobody serves the queue"
        ),
        pytest.param(
            job(2, queue=Queue(ignored="team"), reported=False),
            "nothing",
            id="before the operator spoke",
        ),
    ],
)
def test_what_is_done(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_it_asks_and_starts_in_kueues_terms() -> None:
    high = Asked(queue="team", priority_class="high")
    [asked] = decide(waiting(4, policy=LEAST, kueue=high), now=NOW).actions[-1:]
    assert isinstance(asked, CreateWorkload)
    assert asked.priority_class == "high"
    assert (asked.name, asked.queue, [one.name for one in asked.pods]) == (
        BASE,
        "team",
        ["launcher", "workers"],
    )
    started = decide(waiting(2, queue=queue(granted(), name="other")), now=NOW).actions[-1]
    assert isinstance(started, Ungate)
    assert started.note.line.endswith(
        "j-worker-0, j-worker-1 may be scheduled: queue team has admitted them"
    )


def edited(**facts: Any) -> Story:
    """A job of four that is to start with the quota of two."""
    free = launcher(LauncherPhase.DELIVERING, delivering_since=NOW - 60)
    listed = config(pods(0, 1), hostfile=pods(0, 1, 2, 3))
    held = (worker(0), worker(1), WAITS, pending(3, gates=GATES))
    story = {
        "launcher": free,
        "workers": held,
        "config": listed,
        "queue": queue(granted()),
        "known": False,
    }
    return job(4, **{**story, **facts})


def awaits(view: JobView) -> list[str]:
    return [line.split()[0] for line in change(view).hostfile.splitlines()]


def test_a_launcher_that_is_free_awaits_nobody_who_waits_for_quota() -> None:
    """A base of two was edited to four before its start: the two extras get quota once the base trains, or never."""
    assert awaits(edited()) == [*pods(0, 1)]
    assert awaits(edited(policy=Policy(min_replicas=4))) == [*pods(0, 1)]
    assert awaits(edited(policy=Policy(min_replicas=1), np_workers=2)) == [*pods(0, 1)]


def test_it_keeps_its_least_size_where_nobody_knows_who_waits_for_quota() -> None:
    assert "hostfile" not in does(edited(policy=Policy(min_replicas=4), queue=None))


def test_quota_too_small_for_np_is_given_back_and_asked_for_anew() -> None:
    """Two jobs whose -np was raised to four would keep quota for two each, and wait for one another for ever."""
    more = edited(np_workers=4)
    assert (
        derive(more, now=NOW).wishes.suspended_by
        == "Kueue (quota for 2 workers, and it starts with 4)"
    )
    held = tuple(pending(index, gates=GATES) for index in range(4))
    stopped = more.but(workers=held, launcher=launcher(LauncherPhase.WAITING, gates=GATES))
    assert due(stopped) == "withdraw launcher"
    assert due(stopped.but(queue=queue())) == f"{LAUNCHER_AND} 4 like 0"
    for fine in (
        more.but(queue=queue(granted(workers=4))),
        edited(np_workers=4, launcher=launcher()),
    ):
        assert derive(fine, now=NOW).wishes.suspend is None


def test_kueue_suspends_an_elastic_job_whose_base_it_wants() -> None:
    assert derive(LAST, now=NOW).wishes.suspended_by == "Kueue (for b)"
    assert any(
        note.message.startswith("j is suspended by Kueue (for b); what runs goes")
        for note in notes(LAST)
    )
    assert derive(wanted_back(waiting(3)), now=NOW).stopped
    assert derive(wanted_back(waiting(2).but(spec_elastic=False)), now=NOW).wishes.suspend is None


def test_what_has_finished_is_found_without_comparing_all_workloads() -> None:
    compared = 0

    class Counted(Workload, frozen=True, kw_only=True):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return self is other

        __hash__ = Workload.__hash__

    running = tuple(worker(index) for index in range(50))
    base, *extras = (
        granted(ready=True),
        *(granted(f"j-worker-{index}", workers=1) for index in range(2, 50)),
    )
    found = [Counted(**msgspec.structs.asdict(one)) for one in (base, *extras)]
    view = but(ended(*running), queue=queue(*found))
    compared = 0
    assert "finish" not in due(view), "all pods still run"
    assert compared < len(found)


def lacking(count: int, rest: str = "") -> str:
    return (
        f"insufficient unused quota for nvidia.com/gpu in flavor a100-8, {count} more needed{rest}"
    )


@pytest.mark.parametrize(
    "rest", ["", ". " + "flavor b does not match; " * 20], ids=["short", "cut off"]
)
@pytest.mark.parametrize(
    "said",
    [
        lambda text: waiting(2, workload(said=text[:300])),
        lambda text: training(
            *TWO,
            pending(2, gates=GATES),
            found=(granted(), workload("j-worker-2", workers=1, said=text[:300])),
            size=3,
        ),
    ],
    ids=["a job", "a worker"],
)
def test_another_number_in_the_words_of_kueue_is_no_news_but_explain_has_it(
    said: Callable[[str], JobView], rest: str
) -> None:
    (before,), (after,) = told(said(lacking(9, rest))), told(said(lacking(1000, rest)))
    assert before.line == after.line
    assert "nvidia.com/gpu in flavor a100-8, … more needed" in after.message
    assert "1000 more needed" in after.exact
    assert after.detail == ""
    shown = but(said(lacking(1000, rest)), notices=before.line)
    assert "say" not in does(shown)


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (waiting(2, workload(said="no\nquota")), "Queued: j waits in queue team: no quota"),
        (
            training(*TWO, found=(granted(evicted=True, said="for b"),), size=2, elastic=False),
            "QuotaWanted: Kueue wants the quota of j for others: for b",
        ),
        (
            training(*THREE, found=(granted(), TAKEN), size=3),
            "QuotaWanted: j-worker-2 leaving: Kueue wants the quota for others: Preempted to accommodate a workload",
        ),
        (
            training(*THREE, found=(granted(), TAKEN), size=3, elastic=False),
            "QuotaWanted: Kueue wants the quota of j-worker-2 for others: Preempted to accommodate a workload",
        ),
        (
            training(*TWO, pending(2), found=(granted(), SLOW), size=3),
            "QuotaWanted: j-worker-2 leaving: not ready in the time that Kueue allows: Exceeded the PodsReady timeout",
        ),
        (
            training(*TWO, pending(2), found=(granted(), SLOW), size=3, elastic=False),
            "QuotaWanted: Kueue wants the quota of j-worker-2 back: Exceeded the PodsReady timeout",
        ),
        (
            training(
                *TWO,
                pending(2, gates=GATES),
                found=(granted(), workload("j-worker-2", workers=1, said="no quota")),
                size=3,
            ),
            "WorkersQueued: j-worker-2 waiting in queue team: no quota",
        ),
        (
            training(*TWO, found=(granted(),), size=2, queue=queue(granted(), name="other")),
            "QueueUnchanged: j keeps its quota of queue team; to move it to queue other, suspend and resume the job",
        ),
        (
            training(*THREE, found=(granted(),), size=3, policy=Policy(min_replicas=3)),
            (
                "LeastUnchanged: j keeps its quota for 2 workers, although its least size is 3 now: Kueue may take "
                "back the quota above that; to ask again, suspend and resume the job"
            ),
        ),
        (
            training(worker(0), found=(granted(),), size=1, policy=Policy()),
            (
                "LeastUnchanged: j keeps its quota for 2 workers, although its least size is 1 now; "
                "to ask again, suspend and resume the job"
            ),
        ),
        (
            training(*TWO, found=(NO_QUOTA,), size=2),
            (
                "OutsideQuota: j-launcher, j-worker-0, j-worker-1 running without quota of queue team: "
                "created while the webhook was away, or before the job had its label"
            ),
        ),
    ],
)
def test_the_job_says_what_it_waits_for(view: JobView, line: str) -> None:
    assert line in [note.line for note in told(view)]


@pytest.mark.parametrize(
    "view",
    [
        training(*TWO, found=(granted(),), size=2),
        training(*THREE, found=(granted(),), size=3, policy=Policy()),
        training(worker(0), found=(NO_QUOTA,), size=1),
        training(worker(0), found=(granted(),), size=1, suspended_by="x"),
        training(worker(0), size=1, found=(), queue=queue(granted(), prebuilt=True)),
    ],
)
def test_a_least_size_that_holds_or_that_cannot_be_asked_for_again_is_no_news(
    view: JobView,
) -> None:
    assert "LeastUnchanged" not in [note.reason for note in told(view)]


def test_explain_says_what_to_do_about_slow_nodes() -> None:
    """Kueue waits for pods by default, and names only the Workload, with the time that is over."""
    [late] = told(waiting(2, workload(said="Exceeded the PodsReady timeout", late=True)))
    assert "waitForPodsReady" in late.detail
    [other] = told(waiting(2, workload(said="no quota")))
    assert other.detail == ""


def test_each_pod_has_a_word_for_its_quota() -> None:
    found = (granted(), granted("j-worker-2"), preempted("j-worker-3"))
    view = training(*map(worker, range(4)), found=found, size=4)
    assert [quota(view, pod) for pod in view.workers] == ["least", "least", "extra", "wanted back"]
    assert quota(view.but(queue=None), worker(3)) == ""
    outside = waiting(2, NO_QUOTA)
    assert quota(outside, worker(0)) == "none"
    assert quota(outside, pending(0, gates=GATES)) == "least"


def test_the_next_that_waits_is_the_base_and_then_the_first_extra() -> None:
    base, asked = workload(), workload("j-worker-3")
    assert next_of(waiting(2, base)) is base
    assert next_of(waiting(4, granted(), granted("j-worker-2"), asked, policy=LEAST)) is asked
    assert next_of(waiting(2, granted())) is None


COUNTED = Memory(
    replaced={name: tries(1, ago=1, uid=f"uid-of-{name}") for name in pods(0, 1)},
    launchers=tries(1, ago=1),
)
OFTEN = Memory(
    replaced={name: tries(3, ago=19, uid=f"uid-of-{name}") for name in pods(0, 1)},
    launchers=tries(3, ago=29),
)


def missed(*found: Workload, age: float = 6.0, memory: Memory = COUNTED, **facts: Any) -> Story:
    """A job whose pods were made without the webhook: none waits for quota, and none has a node."""
    created_at, node = NOW - age, facts.pop("node", "")
    workers = tuple(pending(index, created_at=created_at, node=node) for index in range(2))
    held = launcher(LauncherPhase.WAITING, created_at=created_at, node=node)
    config_ = config([], hostfile=pods(0, 1), memory=memory)
    facts = {"config": config_, "queue": queue(*(found or (NO_QUOTA,))), **facts}
    return job(2, workers=workers, launcher=held, **facts)


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (missed(), "delete launcher; delete 1:unscheduled 0:unscheduled; say Queued OutsideQuota"),
        (missed(age=4.0), "say Queued OutsideQuota; wake 1"),
        (missed(memory=Memory()), "remember replaced launchers"),
        # A node has them: they run outside the quota, and are told.
        (missed(node="n"), "say Queued OutsideQuota"),
        # Kueue has not said a word, or has granted the quota, or nobody waits in a queue.
        (missed(workload()), "nothing"),
        (missed(granted()), "nothing"),
        (missed(queue=NO_QUEUE), "nothing"),
        (missed(queue=queue(NO_QUOTA, name="")), "withdraw launcher"),
        # A suspended job loses its launcher anyway; and an owner may want no replacements.
        (missed(suspended_by="x"), "say Suspended Queued OutsideQuota; delete launcher, suspended"),
        (
            missed(policy=Policy(replace_failed_workers=False)),
            "delete launcher; say Queued OutsideQuota",
        ),
        (missed(spec_elastic=False), "say Queued OutsideQuota"),
        # The webhook is still away: the next come later and later.
        (missed(memory=OFTEN), "say Queued OutsideQuota; wake 1"),
    ],
)
def test_pods_that_missed_the_queue_are_replaced_until_a_node_takes_them(
    view: JobView, plan: str
) -> None:
    assert does(view) == plan


def test_each_is_counted_first() -> None:
    memory = change(missed(memory=Memory())).memory
    assert {pod: tries.count for pod, tries in memory.replaced.items()} == dict.fromkeys(
        pods(0, 1), 1
    )
    assert memory.launchers is not None


def test_an_extra_that_missed_the_queue_is_replaced_while_the_others_train() -> None:
    late = pending(2, created_at=NOW - 6)
    counted = Memory(replaced={late.name: tries(1, ago=6, uid=late.ref.uid)})
    found = (READY, workload("j-worker-2", workers=1, said="no quota"))
    view = training(*TWO, late, found=found, size=3, config=config(pods(0, 1), memory=counted))
    assert does(view) == "delete 2:unscheduled; say OutsideQuota; wake 114"
    assert removals(view)[0].note.line == (
        "WorkerReplaced: j-worker-2 is being deleted: it was never scheduled to a node; the operator recreates it, "
        "to wait for quota"
    )
    assert does(view.but(queue=queue(READY))) == "ask 2: 1 like 2, priority -1; wake 114"
    assert does(view.pod(2, created_at=NOW)) == "say OutsideQuota; wake 5"


@pytest.mark.parametrize("view", [job(2, replicas=3), job(3, replicas=2)])
def test_a_job_of_another_cluster_is_not_ours_while_kueue_is_unknown(view: Story) -> None:
    """Its spec says so, whatever of Kueue is known or served here; where it runs is told later."""
    view = view.but(kueue=Asked(elsewhere=True))
    assert "so it runs in another cluster" in derive(view, now=NOW).foreign
    assert decide(view, now=NOW).actions == ()


def test_a_queue_rations_a_job_before_kueue_is_known() -> None:
    """So nobody else queues the job meanwhile."""
    wishes = derive(job().but(kueue=Asked(queue="team"), queue=None), now=NOW).wishes
    assert (wishes.rationed_by, wishes.is_rationed) == (("queue team of Kueue",), None)


def test_a_pod_of_a_queued_job_with_another_gate_waits_until_kueue_is_known() -> None:
    """After a restart of the controller, say: it would start without quota."""
    gates = ("mpijob-elastic/suspended",)
    workers = tuple(pending(index, gates=gates) for index in range(2))
    view = waiting(2, workers=workers, kueue=Asked(queue="team"), queue=None).launched(gates=gates)
    assert "ungate" not in does(view)


def test_a_launcher_that_followed_without_a_notice_waits_for_the_ranks_of_the_one_before() -> None:
    """The notice was refused, so it has the gate of the queue alone; the quota is granted again."""
    waits = waiting(2, granted(workers=2), refused={TellUser: ""}).pod(
        0, gates=(), created_at=NOW - 7200
    )
    assert does(waits) == "delete 0:suspended"
    assert "start launcher" in does(waits.but(refused={})), (
        "another launcher goes on with the workers there are"
    )
