"""What is asked of Kueue, what is given back, and who may start."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, workloads
from mpijob_elastic.decide.actions import (
    ClearWorkload,
    CreateWorkload,
    DeleteLauncher,
    DeleteWorkers,
    DeleteWorkload,
    FinishWorkload,
    MarkReady,
    QueueAction,
    StartPods,
    Ungate,
    WriteConfig,
)
from mpijob_elastic.model.job import JobView, LauncherPhase, Probe, Worker
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import NO_QUEUE, Queue, Workload
from tests.builders import JOB, NOW, config, failed, job, launcher, pending, pods, worker
from tests.queues import BASE, GATES, granted, preempted, queue, training, waiting, workload


def due(view: JobView) -> list[QueueAction]:
    return list(workloads.due(view))


def test_a_job_asks_for_its_launcher_and_least_workers_together() -> None:
    [asked] = due(waiting(4, policy=Policy(min_replicas=2)))
    assert isinstance(asked, CreateWorkload)
    assert (asked.name, asked.queue) == (BASE, "team")
    assert [(one.name, one.count, one.like.name) for one in asked.pods] == [
        ("launcher", 1, "j-launcher"),
        ("workers", 2, "j-worker-0"),
    ]


@pytest.mark.parametrize(
    ("facts", "count"),
    [
        ({}, 4),
        ({"policy": Policy(min_replicas=9)}, 4),
        ({"policy": Policy(min_replicas=1), "np_workers": 3}, 3),
        ({"policy": Policy(min_replicas=1), "min_np_workers": 2}, 2),
        # Its launcher waits for all workers, and none of them can leave.
        ({"policy": Policy(min_replicas=1), "elastic": False}, 4),
    ],
)
def test_the_least_size_is_what_training_needs_to_start(facts: dict[str, Any], count: int) -> None:
    [asked] = due(waiting(4, **facts))
    assert isinstance(asked, CreateWorkload)
    assert asked.pods[1].count == count


def test_a_job_without_workers_asks_for_its_launcher_and_starts() -> None:
    [asked] = due(waiting(0, elastic=False))
    assert isinstance(asked, CreateWorkload)
    assert [(one.name, one.count) for one in asked.pods] == [("launcher", 1)]
    [started] = due(waiting(0, granted(workers=0), elastic=False))
    assert isinstance(started, StartPods)
    assert [pod.ref.name for pod in started.pods] == ["j-launcher"]


def test_a_job_whose_first_worker_is_not_there_yet_asks_for_nothing() -> None:
    assert due(replace(waiting(2), workers=())) == []


@pytest.mark.parametrize("facts", [{"queue": None}, {"queue": NO_QUEUE}, {"deleting": True}, {"suspended_by": "x"}])
def test_nothing_is_asked_for_a_job_that_is_not_to_be_queued(facts: dict[str, Any]) -> None:
    assert due(waiting(2, **facts)) == []


def test_pods_that_wait_for_quota_stay_gated() -> None:
    view = waiting(2, workload(said="insufficient quota"))
    plan = decide(view, now=NOW)
    assert not plan.queue
    assert not [action for action in plan.actions if isinstance(action, Ungate)]


def test_while_it_is_not_known_whether_there_is_a_kueue_gates_stay_and_without_it_they_go() -> None:
    assert decide(waiting(2, queue=None), now=NOW).actions == decide(replace(waiting(2), queue=None), now=NOW).actions
    gates = [action for action in decide(waiting(2, queue=None), now=NOW).actions if isinstance(action, Ungate)]
    assert not gates
    [lifted] = decide(waiting(2, queue=NO_QUEUE), now=NOW).actions
    assert isinstance(lifted, Ungate)
    assert len(lifted.pods) == 3


def test_pods_start_with_their_flavors_once_the_base_is_granted() -> None:
    base = granted(flavors={"launcher": ("cpu",), "workers": ("gpu",)})
    started = due(waiting(3, base, policy=Policy(min_replicas=2)))[:2]
    assert all(isinstance(one, StartPods) for one in started)
    assert [([pod.ref.name for pod in one.pods], one.flavors) for one in started if isinstance(one, StartPods)] == [
        (["j-launcher"], ("cpu",)),
        (["j-worker-0", "j-worker-1"], ("gpu",)),
    ]


def test_the_event_names_the_queue_that_has_admitted_them() -> None:
    [started, *_] = due(waiting(2, queue=queue(granted(), name="other")))
    assert isinstance(started, StartPods)
    assert started.note.line.endswith("j-worker-0, j-worker-1 may be scheduled: queue team has admitted them")


def test_a_pod_keeps_the_gates_of_others() -> None:
    view = waiting(1, granted(workers=1))
    gated = tuple(replace(one, gates=("theirs", *GATES)) for one in view.workers)
    [started] = due(replace(view, workers=gated))
    assert isinstance(started, StartPods)
    assert [one.kept for one in started.pods] == [(), ("theirs",)]


def test_further_workers_ask_one_by_one_with_a_priority_that_falls() -> None:
    workers = (worker(0), worker(1), pending(2, gates=GATES), pending(3, gates=GATES))
    asked = due(training(*workers, found=(granted(priority=7, ready=True),), size=4))
    assert [(one.name, one.priority, one.pods[0].count) for one in asked if isinstance(one, CreateWorkload)] == [
        ("j-worker-2", 6, 1),
        ("j-worker-3", 5, 1),
    ]


@pytest.mark.parametrize("base", [workload(said="no quota"), granted(evicted=True)])
def test_further_workers_ask_only_once_the_base_is_granted(base: Workload) -> None:
    assert due(waiting(4, base, policy=Policy(min_replicas=2))) == []


def test_a_base_and_an_extra_are_ready_when_their_pods_run() -> None:
    found = (granted(), granted("j-worker-2", workers=1))
    marked = due(training(worker(0), worker(1), worker(2), found=found, size=3))
    assert marked == [MarkReady(workload=one) for one in found]
    assert due(training(worker(0), pending(1), pending(2), found=found, size=3)) == []


def test_a_base_of_a_job_that_has_become_smaller_since_is_ready_with_what_is_left() -> None:
    """Else Kueue's waitForPodsReady would stop a job that trains, and let nobody else in until then."""
    base = granted(workers=4)
    assert due(training(worker(0), worker(1), found=(base,), size=2)) == [MarkReady(workload=base)]
    assert due(training(worker(0), pending(1), found=(base,), size=2)) == []


def test_a_worker_whose_quota_kueue_wants_back_leaves_the_list_and_drains() -> None:
    found = (granted(ready=True), granted("j-worker-2", workers=1, ready=True), preempted("j-worker-3"))
    view = training(*map(worker, range(4)), found=found, size=4)
    plan = decide(view, now=NOW)
    [change] = [action for action in plan.actions if isinstance(action, WriteConfig)]
    assert (change.removed, change.lost) == (("j-worker-3",), ())
    assert [note.reason for note in change.notes] == ["Draining"]
    assert plan.queue == ()


def test_it_is_deleted_when_it_has_drained_and_its_quota_given_back_when_it_is_gone() -> None:
    taken = preempted("j-worker-2")
    left = Memory(left={"j-worker-2": Left(pod=pod_fingerprint("uid-of-j-worker-2"), at=NOW - 20, known_at=NOW - 20)})
    drained = Probe(busy_seen=True, idle_at=NOW - 1, asked_at=NOW - 1, idle_since=NOW - 10)
    view = training(worker(0), worker(1), worker(2, probe=drained), found=(granted(ready=True), taken), size=3)
    view = replace(view, config=config(pods(0, 1), memory=left))
    view = replace(view, launcher=launcher(refreshed=f"{view.config.digest if view.config else ''}@{NOW - 20}"))
    plan = decide(view, now=NOW)
    [deleted] = [action for action in plan.actions if isinstance(action, DeleteWorkers)]
    assert [one.worker.name for one in deleted.removals] == ["j-worker-2"]
    assert plan.queue == ()
    for successor in ((), (pending(2, gates=GATES),)):
        assert due(replace(view, workers=(*view.workers[:2], *successor))) == [ClearWorkload(workload=taken)]


def test_a_successor_waits_and_is_not_deleted() -> None:
    """Between the deletion and the clearing patch, and after it while it queues again."""
    for found in (preempted("j-worker-2"), workload("j-worker-2", workers=1, evicted=True, said="no quota")):
        view = training(worker(0), worker(1), pending(2, gates=GATES), found=(granted(ready=True), found), size=3)
        view = replace(view, config=config(pods(0, 1)))
        plan = decide(view, now=NOW)
        assert not [action for action in plan.actions if isinstance(action, DeleteWorkers | Ungate)]
        assert not [action for action in plan.queue if isinstance(action, StartPods)]


def test_preempted_extras_are_given_back_while_the_base_is_wanted_too() -> None:
    taken = preempted("j-worker-2")
    assert due(training(worker(0), worker(1), found=(granted(evicted=True), taken), size=3)) == [
        ClearWorkload(workload=taken)
    ]


def test_a_scale_in_gives_quota_back_once_the_worker_is_gone() -> None:
    extra = granted("j-worker-2", workers=1, ready=True)
    found = (granted(ready=True), extra)
    view = training(worker(0), worker(1), worker(2), found=found, size=2)
    assert due(view) == []
    assert due(replace(view, workers=view.workers[:2])) == [DeleteWorkload(workload=extra)]


def ended(*left: Worker, **facts: Any) -> JobView:
    """A job of three that has ended, with these workers left."""
    found = (granted(ready=True), granted("j-worker-2", workers=1))
    over = {"launcher": launcher(LauncherPhase.FINISHED), "clean_pod_policy": "Running", "finished": True}
    return training(*left, found=found, size=3, **{**over, **facts})


@pytest.mark.parametrize(
    ("view", "freed"),
    [
        (ended(), [BASE, "j-worker-2"]),
        (ended(failed(0), failed(1), failed(2)), [BASE, "j-worker-2"]),
        (ended(worker(0), worker(1), worker(2)), []),
        (ended(worker(1, deleting=True)), ["j-worker-2"]),
        (ended(worker(2, deleting=True)), [BASE]),
        (ended(worker(0), worker(1), pending(2, gates=GATES)), ["j-worker-2"]),
        (ended(launcher=launcher(deleting=True)), ["j-worker-2"]),
        # Its owner wants the workers to stay, perhaps for ever.
        (ended(worker(0), worker(1), worker(2), clean_pod_policy="None"), [BASE, "j-worker-2"]),
    ],
)
def test_a_finished_job_frees_its_quota_when_nothing_of_it_runs(view: JobView, freed: list[str]) -> None:
    assert [one.workload.metadata.name for one in due(view) if isinstance(one, FinishWorkload)] == freed
    assert decide(view, now=NOW).queue == tuple(due(view))
    again = queue(granted(finished=True), granted("j-worker-2", workers=1, finished=True))
    assert due(replace(view, queue=again)) == []


def test_an_extra_that_the_base_has_come_to_cover_gives_its_quota_back() -> None:
    """Somebody has deleted the base, and the next asks for the least size of now. It could wait for that very quota."""
    workers, extra = [worker(index) for index in range(3)], granted("j-worker-2", workers=1, ready=True)
    for base in (workload(workers=3), granted(workers=3, ready=True)):
        view = training(*workers, found=(base, extra), size=3, policy=Policy(min_replicas=3))
        assert due(view) == [DeleteWorkload(workload=extra)]


def test_a_base_does_not_wait_for_quota_that_an_extra_of_its_own_keeps_for_nothing() -> None:
    """A controller that is killed between the writes of a suspension leaves such extras."""
    facts: dict[str, Any] = {"policy": Policy(min_replicas=2)}
    extra = granted("j-worker-2", workers=1, ready=True)
    assert due(waiting(3, workload(), extra, **facts)) == [DeleteWorkload(workload=extra)]
    assert due(waiting(3, granted(evicted=True, ready=True), extra, **facts)) == []
    runs = (pending(0, gates=GATES), pending(1, gates=GATES), worker(2))
    assert due(training(*runs, found=(workload(), extra), size=3)) == []


def test_a_job_that_leaves_the_queue_asks_for_nothing_any_more() -> None:
    view = waiting(2, queue=queue(workload(said="no quota"), name=""))
    assert [type(one) for one in due(view)] == [DeleteWorkload]


def test_a_queue_that_changes_while_the_job_waits_is_asked_instead() -> None:
    view = waiting(2, queue=queue(workload(said="no quota"), name="other"))
    assert [type(one) for one in due(view)] == [DeleteWorkload]
    assert due(waiting(2, queue=queue(granted(), name="other")))[0] != DeleteWorkload(workload=granted())


@pytest.mark.parametrize(
    ("size", "facts"),
    [(2, {}), (4, {}), (4, {"policy": Policy(min_replicas=2)}), (2, {"policy": Policy(min_replicas=9)})],
)
def test_a_least_size_that_changes_while_the_job_waits_is_asked_for_instead(size: int, facts: dict[str, Any]) -> None:
    stale = workload(workers=3, said="no quota")
    assert due(waiting(size, stale, **facts)) == [DeleteWorkload(workload=stale)]
    [asked] = due(waiting(size, **facts))
    assert isinstance(asked, CreateWorkload)
    assert due(waiting(size, workload(workers=asked.pods[1].count, said="no quota"), **facts)) == []


@pytest.mark.parametrize(
    "base",
    [granted(workers=3), granted(workers=3, admitted=False), workload(workers=3, active=False, said="inactive")],
)
def test_it_stays_while_quota_is_reserved_and_where_somebody_took_the_job_out_of_its_queue(base: Workload) -> None:
    assert not [one for one in due(waiting(2, base)) if isinstance(one, DeleteWorkload)]


def test_multikueues_own_workload_is_not_asked_for_again() -> None:
    assert due(waiting(2, queue=queue(workload(workers=3, said="no quota"), prebuilt=True))) == []


def test_a_suspended_job_gives_its_quota_back_when_nothing_of_it_runs() -> None:
    assert [type(one) for one in due(waiting(2, granted(), suspended_by="x"))] == [DeleteWorkload]
    running = training(worker(0), worker(1), found=(granted(),), size=2, suspended_by="x")
    assert due(running) == []


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (waiting(2, workload(said="no\nquota")), "Queued: j waits in queue team: no quota"),
        (
            training(worker(0), worker(1), found=(granted(evicted=True, said="for b"),), size=2),
            "QuotaWanted: Kueue wants the quota of j for others: for b",
        ),
        (
            training(worker(0), worker(1), worker(2), found=(granted(), preempted("j-worker-2")), size=3),
            "QuotaWanted: j-worker-2 leaving: Kueue wants the quota for others: Preempted to accommodate a workload",
        ),
        (
            training(
                worker(0),
                worker(1),
                worker(2),
                found=(granted(), preempted("j-worker-2")),
                size=3,
                elastic=False,
            ),
            "QuotaWanted: Kueue wants the quota of j-worker-2 for others: Preempted to accommodate a workload",
        ),
        (
            training(
                worker(0),
                worker(1),
                pending(2, gates=GATES),
                found=(granted(), workload("j-worker-2", workers=1, said="no quota")),
                size=3,
            ),
            "WorkersQueued: j-worker-2 waiting in queue team: no quota",
        ),
        (
            training(worker(0), worker(1), found=(granted(),), size=2, queue=queue(granted(), name="other")),
            "QueueUnchanged: j keeps its quota of queue team; other holds for the next job",
        ),
        (
            training(*map(worker, range(3)), found=(granted(),), size=3, policy=Policy(min_replicas=3)),
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
            training(worker(0), worker(1), found=(workload(said="no quota"),), size=2),
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
        training(worker(0), worker(1), found=(granted(),), size=2),
        training(*map(worker, range(3)), found=(granted(),), size=3, policy=Policy()),
        training(worker(0), found=(workload(said="no quota"),), size=1),
        training(worker(0), found=(granted(),), size=1, suspended_by="x"),
        training(worker(0), size=1, found=(), queue=queue(granted(), prebuilt=True)),
    ],
)
def test_a_least_size_that_holds_or_that_cannot_be_asked_for_again_is_no_news(view: JobView) -> None:
    assert "LeastUnchanged" not in [note.reason for note in workloads.notes(view)]


def test_a_job_that_has_no_status_because_it_waits_says_so() -> None:
    [told] = decide(waiting(2, workload(said="no quota"), reported=False), now=NOW).actions[-1:]
    assert getattr(told, "text", "") == "Queued: j waits in queue team: no quota"


def wanted_back(view: JobView, *extras: Workload) -> JobView:
    """The same job, whose base Kueue wants for others."""
    return view.queued(queue(granted(evicted=True, ready=True, said="for\nb"), *extras))


def test_an_elastic_job_whose_base_is_wanted_is_suspended_and_keeps_its_quota_until_nothing_runs() -> None:
    running = wanted_back(training(worker(0), worker(1), found=(), size=2))
    assert running.suspended_by == "Kueue (for b)"
    assert due(running) == []
    [told, stopped, *_] = decide(wanted_back(training(worker(0), found=(), size=1)), now=NOW).actions
    assert isinstance(stopped, DeleteLauncher)
    assert "Suspended: j is suspended by Kueue (for b); what runs goes" in getattr(told, "text", "")
    assert due(wanted_back(replace(waiting(2), workers=(pending(0, gates=GATES), worker(1))))) == []


def test_its_quota_is_given_back_when_all_its_pods_wait() -> None:
    extra = granted("j-worker-2", workers=1)
    view = wanted_back(waiting(3), extra)
    assert view.stopped
    assert [(type(one), getattr(one, "workload", None)) for one in due(view)] == [
        (ClearWorkload, view.queue.base(JOB) if view.queue else None),
        (DeleteWorkload, extra),
    ]
    deleted = [one for one in decide(view, now=NOW).actions if isinstance(one, DeleteWorkers | DeleteLauncher)]
    assert not deleted


def test_after_that_it_waits_in_the_queue_again() -> None:
    again = waiting(2).queued(queue(workload(evicted=True, said="no quota")))
    assert (again.suspended_by, again.stopped) == ("", False)
    assert due(again) == []


def test_a_job_that_is_not_elastic_is_not_stopped() -> None:
    view = wanted_back(replace(waiting(2), spec_elastic=False))
    assert view.suspended_by == ""


@pytest.mark.parametrize("facts", [{"admitted": False}, {}])
def test_it_gives_back_what_kueue_wants_before_anything_of_it_runs(facts: dict[str, Any]) -> None:
    """So does Kueue while an admission check is awaited, or one says that the job is to be tried again."""
    base = granted(evicted=True, **facts)
    assert due(waiting(2, base, elastic=False)) == [ClearWorkload(workload=base)]
    started = waiting(2, base, elastic=False, workers=(worker(0), pending(1, gates=GATES)))
    assert due(started) == []


def test_each_pod_has_a_word_for_its_quota() -> None:
    extra = worker(3)
    found = (granted(), granted("j-worker-2"), preempted("j-worker-3"))
    view = training(worker(0), worker(1), worker(2), extra, found=found, size=4)
    assert [workloads.quota(view, pod) for pod in view.workers] == ["least", "least", "extra", "wanted back"]
    assert workloads.quota(replace(view, queue=None), extra) == ""
    outside = waiting(2, workload(said="no quota"))
    assert workloads.quota(outside, worker(0)) == "none"
    assert workloads.quota(outside, pending(0, gates=GATES)) == "least"


def test_the_next_that_waits_is_the_base_and_then_the_first_extra() -> None:
    base = workload()
    assert workloads.waiting(waiting(2, base)) is base
    asked = workload("j-worker-3")
    view = waiting(4, granted(), granted("j-worker-2"), asked, policy=Policy(min_replicas=2))
    assert workloads.waiting(view) is asked
    assert workloads.waiting(waiting(2, granted())) is None


def test_a_queue_that_nobody_serves_is_told_once_the_operator_has_said_something() -> None:
    view = job(2, queue=Queue(ignored="team"))
    assert [note.reason for note in workloads.notes(view)] == ["QueueIgnored"]
    assert [action for action in decide(replace(view, reported=False), now=NOW).actions if "Queue" in str(action)] == []


PENDING = workload(said="no quota")
COUNTED = Memory(
    replaced={name: Tries(count=1, at=NOW - 1, uid=f"uid-of-{name}") for name in pods(0, 1)},
    launchers=Tries(count=1, at=NOW - 1, uid="uid-of-j-launcher"),
)


def missed(*found: Workload, age: float = 6.0, memory: Memory = COUNTED, **facts: Any) -> JobView:
    """A job whose pods were made without the webhook: none waits for quota, and none has a node."""
    created_at, node = NOW - age, facts.pop("node", "")
    workers = tuple(pending(index, created_at=created_at, node=node) for index in range(2))
    held = launcher(LauncherPhase.WAITING, created_at=created_at, node=node)
    config_ = config([], hostfile=pods(0, 1), memory=memory)
    facts = {"config": config_, "queue": queue(*(found or (PENDING,))), **facts}
    return job(2, workers=workers, launcher=held, **facts)


def replaced(view: JobView) -> list[str]:
    """The pods that are deleted now, so that the operator creates them again."""
    actions = decide(view, now=NOW).actions
    workers = [one.worker.name for action in actions if isinstance(action, DeleteWorkers) for one in action.removals]
    return [*workers, *(action.launcher.ref.name for action in actions if isinstance(action, DeleteLauncher))]


ALL = ["j-worker-1", "j-worker-0", "j-launcher"]


@pytest.mark.parametrize(
    ("view", "names_"),
    [
        (missed(), ALL),
        (missed(age=4.0), []),
        # A node has them: they run outside the quota, and are told.
        (missed(node="n"), []),
        # Kueue has not said a word, or has granted the quota, or nobody waits in a queue.
        (missed(workload()), []),
        (missed(granted()), []),
        (missed(queue=NO_QUEUE), []),
        (missed(queue=queue(PENDING, name="")), []),
        # A suspended job loses its launcher anyway; and an owner may want no replacements.
        (missed(suspended_by="x"), ["j-launcher"]),
        (missed(policy=Policy(replace_failed_workers=False)), ["j-launcher"]),
        (missed(spec_elastic=False), []),
        # The webhook is still away: the next come later and later.
        (
            missed(
                memory=Memory(
                    replaced={name: Tries(count=3, at=NOW - 19, uid=f"uid-of-{name}") for name in pods(0, 1)},
                    launchers=Tries(count=3, at=NOW - 29, uid="uid-of-j-launcher"),
                )
            ),
            [],
        ),
    ],
)
def test_pods_that_missed_the_queue_are_replaced_until_a_node_takes_them(view: JobView, names_: list[str]) -> None:
    assert replaced(view) == names_


def test_each_is_counted_first() -> None:
    [change] = [one for one in decide(missed(memory=Memory()), now=NOW).actions if isinstance(one, WriteConfig)]
    assert {pod: tries.count for pod, tries in change.memory.replaced.items()} == dict.fromkeys(pods(0, 1), 1)
    assert change.memory.launchers is not None
    assert replaced(missed(memory=Memory())) == []


def test_an_extra_that_missed_the_queue_is_replaced_while_the_others_train() -> None:
    late = pending(2, created_at=NOW - 6)
    counted = Memory(replaced={late.name: Tries(count=1, at=NOW - 6, uid=late.ref.uid)})
    found = (granted(ready=True), workload("j-worker-2", workers=1, said="no quota"))
    view = training(worker(0), worker(1), late, found=found, size=3, config=config(pods(0, 1), memory=counted))
    assert replaced(view) == ["j-worker-2"]
    [deleted] = [one for one in decide(view, now=NOW).actions if isinstance(one, DeleteWorkers)]
    assert deleted.removals[0].note.line == (
        "WorkerReplaced: j-worker-2 is being deleted: it was never scheduled to a node; the operator recreates it, "
        "to wait for quota"
    )
    assert replaced(replace(view, queue=queue(found[0]))) == []
    assert decide(replace(view, workers=(*view.workers[:2], replace(late, created_at=NOW))), now=NOW).wake_at == NOW + 5
