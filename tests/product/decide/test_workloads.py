"""What is asked of Kueue, what is given back, and who may start."""

from typing import Any

import pytest

from mpijob_elastic.decide import workloads
from mpijob_elastic.decide.actions import CreateWorkload, StartPods
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import NO_QUEUE, Queue, Workload
from tests.builders import NOW, Story, config, failed, job, launcher, left, pending, pods, tries, worker
from tests.product.decide.plans import change, does, notes, removals
from tests.queues import BASE, GATES, granted, preempted, queue, training, waiting, workload

TWO, THREE = (worker(0), worker(1)), (worker(0), worker(1), worker(2))
LEAST = Policy(min_replicas=2)
NO_QUOTA = workload(said="no quota")
EXTRA = granted("j-worker-2", workers=1, ready=True)
TAKEN = preempted("j-worker-2")
READY = granted(ready=True)


def due(view: JobView) -> str:
    """What is written for Kueue."""
    return does(view, but="publish hostfile remember touch delete say probe ungate allow wake")


@pytest.mark.parametrize(
    ("view", "asked"),
    [
        (waiting(4, policy=LEAST), "1 like launcher and 2 like 0"),
        (waiting(4), "1 like launcher and 4 like 0"),
        (waiting(4, policy=Policy(min_replicas=9)), "1 like launcher and 4 like 0"),
        (waiting(4, policy=Policy(min_replicas=1), np_workers=3), "1 like launcher and 3 like 0"),
        (waiting(4, policy=Policy(min_replicas=1), min_np_workers=2), "1 like launcher and 2 like 0"),
        # Its launcher waits for all workers, and none of them can leave.
        (waiting(4, policy=Policy(min_replicas=1), elastic=False), "1 like launcher and 4 like 0"),
        (waiting(0, elastic=False), "1 like launcher"),
    ],
)
def test_a_job_asks_for_its_launcher_and_the_least_that_training_needs_to_start(view: JobView, asked: str) -> None:
    assert due(view) == f"ask launcher: {asked}"


def test_it_asks_its_queue_in_kueues_terms() -> None:
    [asked] = workloads.due(waiting(4, policy=LEAST))
    assert isinstance(asked, CreateWorkload)
    assert (asked.name, asked.queue, [one.name for one in asked.pods]) == (BASE, "team", ["launcher", "workers"])


@pytest.mark.parametrize(
    "view",
    [
        waiting(2).without(0, 1),
        waiting(2, queue=None),
        waiting(2, queue=NO_QUEUE),
        waiting(2, deleting=True),
        waiting(2, suspended_by="x"),
    ],
    ids=["no worker is there yet", "not known", "no Kueue", "it is deleted", "it is suspended"],
)
def test_nothing_is_asked_for_a_job_that_is_not_to_be_queued(view: JobView) -> None:
    assert list(workloads.due(view)) == []


def test_when_pods_that_wait_for_quota_start() -> None:
    assert does(waiting(2, workload(said="insufficient quota"))) == "say Queued"
    assert does(waiting(2, queue=None)) == "nothing", "whether there is a Kueue is not known"
    assert does(waiting(2, queue=NO_QUEUE)) == "ungate launcher 0 1"
    assert due(waiting(0, granted(workers=0), elastic=False)) == "start launcher"
    base = granted(flavors={"launcher": ("cpu",), "workers": ("gpu",)})
    started = "start launcher on cpu; start 0 1 on gpu"
    assert due(waiting(3, base, policy=LEAST)) == f"{started}; ask 2: 1 like 2, priority -1"
    view = waiting(1, granted(workers=1)).pod(0, gates=("theirs", *GATES))
    assert due(view) == "start launcher 0[theirs]"


def test_the_event_names_the_queue_that_has_admitted_them() -> None:
    [started, *_] = workloads.due(waiting(2, queue=queue(granted(), name="other")))
    assert isinstance(started, StartPods)
    assert started.note.line.endswith("j-worker-0, j-worker-1 may be scheduled: queue team has admitted them")


def test_further_workers_ask_one_by_one_with_a_priority_that_falls_once_the_base_is_granted() -> None:
    workers = (*TWO, pending(2, gates=GATES), pending(3, gates=GATES))
    view = training(*workers, found=(granted(priority=7, ready=True),), size=4).but(config=config(pods(0, 1)))
    assert due(view) == "ask 2: 1 like 2, priority 6; ask 3: 1 like 3, priority 5"
    for base in (NO_QUOTA, granted(evicted=True)):
        assert list(workloads.due(waiting(4, base, policy=LEAST))) == []


def test_a_base_and_an_extra_are_ready_when_their_pods_run() -> None:
    found = (granted(), granted("j-worker-2", workers=1))
    assert due(training(*THREE, found=found, size=3)) == "ready launcher; ready 2"
    assert due(training(worker(0), pending(1), pending(2), found=found, size=3)) == "nothing"


def test_a_base_of_a_job_that_has_become_smaller_since_is_ready_with_what_is_left() -> None:
    """Else Kueue's waitForPodsReady would stop a job that trains, and let nobody else in until then."""
    assert due(training(*TWO, found=(granted(workers=4),), size=2)) == "ready launcher"
    assert due(training(worker(0), pending(1), found=(granted(workers=4),), size=2)) == "nothing"


def test_a_worker_whose_quota_kueue_wants_back_leaves_the_list_and_drains() -> None:
    found = (READY, EXTRA, preempted("j-worker-3"))
    assert does(training(*map(worker, range(4)), found=found, size=4)) == "publish 0 1 2 (Draining)"


def test_it_is_deleted_when_it_has_drained_and_its_quota_given_back_when_it_is_gone() -> None:
    memory = Memory(left={"j-worker-2": left("j-worker-2", ago=20)})
    drained = Probe(busy_seen=True, idle_at=NOW - 1, asked_at=NOW - 1, idle_since=NOW - 10)
    view = training(*TWO, worker(2, probe=drained), found=(READY, TAKEN), size=3)
    view = view.but(config=config(pods(0, 1), memory=memory)).shown(at=NOW - 20)
    assert does(view) == "delete 2:drained; say QuotaWanted"
    assert does(view.without(2)) == "give back 2"
    waits = view.but(workers=(*TWO, pending(2, gates=GATES)))
    assert does(waits) == "give back 2"
    # After the clearing patch its successor queues again, and is not deleted.
    again = workload("j-worker-2", workers=1, evicted=True, said="no quota")
    assert does(waits.but(queue=queue(READY, again))) == "say WorkersQueued"


def test_preempted_extras_are_given_back_while_the_base_is_wanted_too() -> None:
    assert due(training(*TWO, found=(granted(evicted=True), TAKEN), size=3)) == "give back 2"


def test_a_scale_in_gives_quota_back_once_the_worker_is_gone() -> None:
    view = training(*THREE, found=(READY, EXTRA), size=2)
    assert due(view) == "nothing"
    assert due(view.without(2)) == "withdraw 2"


def ended(*left: Worker, **facts: Any) -> Story:
    """A job of three that has ended, with these workers left."""
    found = (READY, granted("j-worker-2", workers=1))
    over = {"launcher": launcher(LauncherPhase.FINISHED), "clean_pod_policy": "Running", "finished": True}
    return training(*left, found=found, size=3, **{**over, **facts})


@pytest.mark.parametrize(
    ("view", "freed"),
    [
        (ended(), "finish launcher; finish 2"),
        (ended(failed(0), failed(1), failed(2)), "finish launcher; finish 2"),
        (ended(*THREE), "nothing"),
        (ended(worker(1, deleting=True)), "finish 2"),
        (ended(worker(2, deleting=True)), "finish launcher"),
        (ended(*TWO, pending(2, gates=GATES)), "finish 2"),
        (ended(launcher=launcher(deleting=True)), "finish 2"),
        # Its owner wants the workers to stay, perhaps for ever.
        (ended(*THREE, clean_pod_policy="None"), "finish launcher; finish 2"),
    ],
)
def test_a_finished_job_frees_its_quota_when_nothing_of_it_runs(view: Story, freed: str) -> None:
    assert due(view) == freed
    again = queue(granted(finished=True), granted("j-worker-2", workers=1, finished=True))
    assert due(view.but(queue=again)) == "nothing"


def test_an_extra_that_the_base_has_come_to_cover_gives_its_quota_back() -> None:
    """Somebody has deleted the base, and the next asks for the least size of now. It could wait for that very quota."""
    for base in (workload(workers=3), granted(workers=3, ready=True)):
        assert due(training(*THREE, found=(base, EXTRA), size=3, policy=Policy(min_replicas=3))) == "withdraw 2"


def test_a_base_does_not_wait_for_quota_that_an_extra_of_its_own_keeps_for_nothing() -> None:
    """A controller that is killed between the writes of a suspension leaves such extras."""
    assert due(waiting(3, workload(), EXTRA, policy=LEAST)) == "withdraw 2"
    assert due(waiting(3, granted(evicted=True, ready=True), EXTRA, policy=LEAST)) == "nothing"
    runs = (pending(0, gates=GATES), pending(1, gates=GATES), worker(2))
    assert due(training(*runs, found=(workload(), EXTRA), size=3)) == "nothing"


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(waiting(2, queue=queue(NO_QUOTA, name="")), "withdraw launcher", id="it leaves the queue"),
        pytest.param(waiting(2, queue=queue(NO_QUOTA, name="other")), "withdraw launcher", id="its queue changes"),
        pytest.param(
            waiting(2, queue=queue(granted(), name="other")), "start launcher 0 1", id="its queue changes too late"
        ),
        pytest.param(waiting(2, granted(workers=3)), "start launcher 0 1", id="quota is reserved already"),
        pytest.param(waiting(2, granted(workers=3, admitted=False)), "nothing", id="a check is awaited"),
        pytest.param(
            waiting(2, workload(workers=3, active=False, said="inactive")), "nothing", id="somebody took it out"
        ),
        pytest.param(
            waiting(2, queue=queue(workload(workers=3, said="no quota"), prebuilt=True)), "nothing", id="MultiKueue's"
        ),
        pytest.param(waiting(2, granted(), suspended_by="x"), "withdraw launcher", id="suspended, and nothing runs"),
        pytest.param(training(*TWO, found=(granted(),), size=2, suspended_by="x"), "nothing", id="its workers run"),
    ],
)
def test_when_a_job_asks_no_more(view: JobView, plan: str) -> None:
    assert due(view) == plan


@pytest.mark.parametrize(
    ("size", "facts"), [(2, {}), (4, {}), (4, {"policy": LEAST}), (2, {"policy": Policy(min_replicas=9)})]
)
def test_a_least_size_that_changes_while_the_job_waits_is_asked_for_instead(size: int, facts: dict[str, Any]) -> None:
    assert due(waiting(size, workload(workers=3, said="no quota"), **facts)) == "withdraw launcher"
    [asked] = workloads.due(waiting(size, **facts))
    assert isinstance(asked, CreateWorkload)
    assert due(waiting(size, workload(workers=asked.pods[1].count, said="no quota"), **facts)) == "nothing"


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (waiting(2, workload(said="no\nquota")), "Queued: j waits in queue team: no quota"),
        (
            training(*TWO, found=(granted(evicted=True, said="for b"),), size=2),
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
            "QueueUnchanged: j keeps its quota of queue team; other holds for the next job",
        ),
        (
            training(*THREE, found=(granted(),), size=3, policy=Policy(min_replicas=3)),
            (
                "LeastUnchanged: j keeps its quota for 2 workers as the least size, which is 3 now: Kueue may take "
                "back those above; to ask again, suspend and resume the job"
            ),
        ),
        (
            training(worker(0), found=(granted(),), size=1, policy=Policy()),
            (
                "LeastUnchanged: j keeps its quota for 2 workers as the least size, which is 1 now; "
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
    assert line in [note.line for note in workloads.notes(view)]


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
def test_a_least_size_that_holds_or_that_cannot_be_asked_for_again_is_no_news(view: JobView) -> None:
    assert "LeastUnchanged" not in [note.reason for note in workloads.notes(view)]


def test_a_job_that_has_no_status_because_it_waits_says_so() -> None:
    view = waiting(2, NO_QUOTA, reported=False)
    assert does(view) == "say Queued"
    assert notes(view)[-1].line == "Queued: j waits in queue team: no quota"


def wanted_back(view: JobView, *extras: Workload) -> JobView:
    """The same job, whose base Kueue wants for others."""
    return view.queued(queue(granted(evicted=True, ready=True, said="for\nb"), *extras))


def test_an_elastic_job_whose_base_is_wanted_is_suspended_and_keeps_its_quota_until_nothing_runs() -> None:
    running = wanted_back(training(*TWO, found=(), size=2))
    assert running.suspended_by == "Kueue (for b)"
    assert does(running) == "publish 0 (Draining)"
    last = wanted_back(training(worker(0), found=(), size=1))
    assert does(last) == "say Suspended; delete launcher, suspended"
    assert notes(last)[-1].message.startswith("j is suspended by Kueue (for b); what runs goes")
    assert due(wanted_back(waiting(2).but(workers=(pending(0, gates=GATES), worker(1))))) == "nothing"


def test_its_quota_is_given_back_when_all_its_pods_wait_and_then_it_queues_again() -> None:
    view = wanted_back(waiting(3), granted("j-worker-2", workers=1))
    assert view.stopped
    assert does(view) == "say Suspended; give back launcher; withdraw 2"
    again = waiting(2).queued(queue(workload(evicted=True, said="no quota")))
    assert (again.suspended_by, again.stopped) == ("", False)
    assert does(again) == "say Queued"
    assert wanted_back(waiting(2).but(spec_elastic=False)).suspended_by == "", "it is not elastic"


@pytest.mark.parametrize("facts", [{"admitted": False}, {}])
def test_it_gives_back_what_kueue_wants_before_anything_of_it_runs(facts: dict[str, Any]) -> None:
    """So does Kueue while an admission check is awaited, or one says that the job is to be tried again."""
    view = waiting(2, granted(evicted=True, **facts), elastic=False)
    assert due(view) == "give back launcher"
    assert due(view.but(workers=(worker(0), pending(1, gates=GATES)))) == "nothing"


def test_each_pod_has_a_word_for_its_quota() -> None:
    found = (granted(), granted("j-worker-2"), preempted("j-worker-3"))
    view = training(*map(worker, range(4)), found=found, size=4)
    assert [workloads.quota(view, pod) for pod in view.workers] == ["least", "least", "extra", "wanted back"]
    assert workloads.quota(view.but(queue=None), worker(3)) == ""
    outside = waiting(2, NO_QUOTA)
    assert workloads.quota(outside, worker(0)) == "none"
    assert workloads.quota(outside, pending(0, gates=GATES)) == "least"


def test_the_next_that_waits_is_the_base_and_then_the_first_extra() -> None:
    base, asked = workload(), workload("j-worker-3")
    assert workloads.waiting(waiting(2, base)) is base
    assert workloads.waiting(waiting(4, granted(), granted("j-worker-2"), asked, policy=LEAST)) is asked
    assert workloads.waiting(waiting(2, granted())) is None


def test_a_queue_that_nobody_serves_is_told_once_the_operator_has_said_something() -> None:
    view = job(2, queue=Queue(ignored="team"))
    assert does(view) == "say QueueIgnored"
    assert does(view.but(reported=False)) == "nothing"


COUNTED = Memory(
    replaced={name: tries(1, ago=1, uid=f"uid-of-{name}") for name in pods(0, 1)}, launchers=tries(1, ago=1)
)
OFTEN = Memory(
    replaced={name: tries(3, ago=19, uid=f"uid-of-{name}") for name in pods(0, 1)}, launchers=tries(3, ago=29)
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
        (missed(policy=Policy(replace_failed_workers=False)), "delete launcher; say Queued OutsideQuota"),
        (missed(spec_elastic=False), "say Queued OutsideQuota"),
        # The webhook is still away: the next come later and later.
        (missed(memory=OFTEN), "say Queued OutsideQuota; wake 1"),
    ],
)
def test_pods_that_missed_the_queue_are_replaced_until_a_node_takes_them(view: JobView, plan: str) -> None:
    assert does(view) == plan


def test_each_is_counted_first() -> None:
    memory = change(missed(memory=Memory())).memory
    assert {pod: tries.count for pod, tries in memory.replaced.items()} == dict.fromkeys(pods(0, 1), 1)
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
