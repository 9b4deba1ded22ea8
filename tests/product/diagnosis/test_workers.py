"""The cause of a worker: in its pod, between the pod and the launcher, in its rank, or that it is too many."""

import re
from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs.facts import Gang
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.decide.state import RENAMED
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Facts, Level, Look, PodTrouble, Stuck
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.memory import Left, Memory, Tries, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    LONG_AGO,
    NOW,
    but,
    config,
    failed,
    job,
    launcher,
    named,
    pending,
    pods,
    role,
    shown,
    worker,
)
from tests.product.diagnosis.said import BUSY, IDLE, of_job, of_worker
from tests.queues import granted, preempted, training, waiting, workload

Row = tuple[JobView, dict[str, Any], str]
LAST = "j-worker-2"
SCHEDULER = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
AWAY = "no controller leads"
IN_A_GANG = Gang(scheduler="kubernetes")
TWO = config(pods(0, 1))
OTHERS_TRAIN = {"j-worker-0": BUSY, "j-worker-1": BUSY, LAST: IDLE}
FAILED = failed(2, last_state="Failed; Evicted on node n")


def last(pod: Worker | None, **facts: Any) -> JobView:
    """A job of three whose last worker is that pod, not published."""
    others = (worker(0), worker(1))
    return job(**{"config": TWO, **facts}, workers=others if pod is None else (*others, pod))


def stuck(reason: str, message: str = "", *ended: str) -> dict[str, Any]:
    return {
        "pods": {
            LAST: PodTrouble(
                stuck=Stuck(container="main", reason=reason, message=message), ended=ended
            )
        }
    }


def failures(count: int) -> JobView:
    """The last worker failed so often, the last time 4 s ago."""
    memory = Memory(replaced={LAST: Tries(count=count, at=NOW - 4.0, uid=FAILED.ref.uid)})
    return last(FAILED, config=config(pods(0, 1), memory=memory))


PODS: list[Row] = [
    (last(None), {}, "missing wrong: check that mpi-operator is running"),
    (
        last(None),
        {"resized_at": NOW - 31.0},
        "missing wrong: check that mpi-operator is running",
    ),
    (
        last(None),
        {"resized_at": NOW - 29.0},
        "missing waiting: does not exist yet: the operator creates it",
    ),
    (
        last(None),
        {"created_at": NOW - 1.0},
        "missing waiting: does not exist yet: the operator creates it",
    ),
    (
        last(None),
        {"events": {"j": "MPIJobFailed: exceeded quota: gpus"}},
        "missing wrong: Its last warning: MPIJobFailed: exceeded quota: gpus*1,000 s*describe mpijob j",
    ),
    (
        last(pending(2)),
        {"pods": {LAST: PodTrouble(unscheduled=SCHEDULER)}},
        f"not-scheduled wrong: {SCHEDULER}",
    ),
    (
        last(pending(2)),
        {
            "pods": {LAST: PodTrouble(unscheduled=SCHEDULER)},
            "new_rules": {LAST: "Worker.template: the required anti-affinity to app=bench"},
        },
        f"not-scheduled wrong: {SCHEDULER}. Worker.template: the required anti-affinity to "
        "app=bench selects the job's own pods by labels that mpi-operator v0.2.3 drops and "
        "mpijob-elastic puts back",
    ),
    (
        last(pending(2)),
        stuck("ImagePullBackOff", "not found"),
        "image wrong: ImagePullBackOff: not found",
    ),
    (
        last(pending(2)),
        stuck("CrashLoopBackOff", "", "main: Error"),
        "crashing wrong: crashes repeatedly in container main (last exit: main: Error)",
    ),
    (
        last(worker(2, ready_at=None, out_of_memory=True)),
        stuck("CrashLoopBackOff", "", "main: OOMKilled"),
        "out-of-memory wrong: OOMKilled",
    ),
    (
        last(pending(2)),
        stuck("CreateContainerConfigError", 'secret "s"'),
        'cannot-start wrong: CreateContainerConfigError: secret "s"',
    ),
    (last(pending(2, node="n")), {}, "starting waiting: on node n"),
    (
        last(pending(2, node=""), gang=IN_A_GANG),
        {},
        "not-tried waiting: waits for its gang*PodGroup j exists*4 exist*asks for 4*describe pod",
    ),
    (
        last(pending(2, node="", obstacle="SchedulerError: x"), gang=IN_A_GANG),
        {"pods": {LAST: PodTrouble(unscheduled="one priority")}},
        "not-scheduled wrong: one priority",
    ),
    (
        last(pending(2)),
        {"events": {LAST: "FailedMount: no such volume"}},
        "starting waiting: FailedMount: no such volume",
    ),
    (
        last(worker(2, ready_at=None)),
        {"pods": {LAST: PodTrouble(unready="containers with unready status: [main]")}},
        "not-ready wrong: [main]",
    ),
    (last(worker(2, ready_at=None)), {}, "not-ready wrong: its node does not respond"),
    *(
        (
            last(worker(2, deleting=True, disruption="preempted", ends_at=at)),
            {},
            "terminating waiting: preempted",
        )
        for at in (None, NOW + 20.0, NOW, NOW - 59.0)
    ),
    (
        last(worker(2, deleting=True, ends_at=NOW - 70.0, node="n")),
        {},
        "lost-node wrong: 1m10s ago*delete pod j-worker-2 --grace-period=0 --force*> kubectl describe node n",
    ),
    (
        failures(2),
        {"pods": {LAST: PodTrouble(message="The node was low on memory")}},
        "failed waiting: Failed; Evicted on node n: The node was low on memory*the controller replaces it in 6s",
    ),
    (
        failures(8),
        {},
        "worker-given-up wrong: failed 8 times (last: Failed*1h*> kubectl -n default delete pod j-worker-2",
    ),
    (
        last(failed(2, succeeded=True, last_state="Completed")),
        {},
        "failed waiting: Completed*the controller replaces it",
    ),
    (last(FAILED, elastic=False), {}, "failed wrong: the job is not elastic"),
    (
        last(FAILED, policy=Policy(replace_failed_workers=False)),
        {},
        'failed wrong: mpijob-elastic/replace-failed-workers="false"',
    ),
    (last(failed(2, out_of_memory=True)), {}, "out-of-memory waiting"),
]


def leaving(*, refreshed: bool = True, **change: Any) -> JobView:
    """3→2: out of the list for ten seconds, the launcher refreshed a second later."""
    memory = Memory(
        left={LAST: Left(pod=pod_fingerprint(f"uid-of-{LAST}"), at=NOW - 10.0)},
        removed_at=NOW - 10.0,
    )
    view = job(3, replicas=2, config=config(pods(0, 1), memory=memory), known=False)
    return but(shown(view, at=NOW - 9.0) if refreshed else view, **change)


def too_many(**change: Any) -> JobView:
    return job(3, replicas=2, **change)


JUST_ADDED = config(pods(0, 1, 2), memory=Memory(added_at=NOW - 1.0))
STILL = "has been draining for 10s, at most 51s more"
SURPLUS: list[Row] = [
    (leaving(), {"looks": {LAST: BUSY}}, f"draining waiting: {STILL}; still running: python3"),
    (leaving(), {"looks": {LAST: IDLE}}, f"draining waiting: {STILL}; no process is left in it"),
    (leaving(), {"looks": {LAST: Look(error="no rights")}}, f"draining waiting: {STILL} >"),
    (leaving(), {}, f"draining waiting: {STILL} >"),
    (
        leaving(refreshed=False),
        {},
        "draining waiting: its drain-timeout starts once the launcher is refreshed",
    ),
    (too_many(elastic=False), {}, "kept fine: not elastic"),
    (
        too_many(workers=(worker(0), worker(1), worker(2, deleting=True))),
        {},
        "leaving waiting: being deleted",
    ),
    (too_many(), {}, "leaving waiting: it leaves discover_hosts.sh next"),
    (too_many(config=TWO, role=role(0, 1)), {}, "leaving waiting: never trained"),
    (leaving(workers=(worker(0), worker(1), pending(2))), {}, "leaving waiting: never trained"),
    (
        shown(too_many(config=JUST_ADDED, known=False), at=NOW - 1.0),
        {},
        "leaving waiting: leaves discover_hosts.sh in 2s",
    ),
    (
        training(worker(0), worker(1), worker(2), found=(granted(), preempted(LAST)), size=3),
        {},
        ("leaving waiting: j-worker-2 is to leave (see above); it leaves discover_hosts.sh"),
    ),
]

SETTLING = job(config=config(pods(0, 1), memory=Memory(removed_at=NOW - 1.0)), known=False)
BLIND = job(
    launcher=launcher(mounts_discovery=False), config=config(pods(0, 1, 2), hostfile=pods(0, 1))
)
GOING = (worker(0), worker(1), worker(2, disruption="taint karpenter.sh/disrupted"))
GOING_LATER = (*GOING[:2], but(GOING[2], disruption_from=NOW + 60))
FAULTY = (*GOING[:2], worker(2, unhealthy="nvidia.com/gpu", node="gpu-7"))
PUBLICATION: list[Row] = [
    (job(role=None), {"role_readable": False}, "not-known unknown"),
    (
        job(role=None, config=TWO),
        {"role_readable": False},
        "not-published waiting: the controller adds it next",
    ),
    (
        shown(SETTLING, at=NOW - 1.0),
        {},
        "settling waiting: joins discover_hosts.sh in 2s*an earlier change",
    ),
    (job(config=TWO, sizes=(2, 4)), {}, "size-incomplete waiting: the next is not complete"),
    (job(workers=GOING, config=TWO), {}, "disrupted waiting: karpenter.sh/disrupted"),
    (job(workers=GOING_LATER, config=TWO), {}, "not-published waiting"),
    (
        job(workers=FAULTY, config=TWO),
        {},
        "device waiting: its nvidia.com/gpu on node gpu-7 is reported Unhealthy; the operator",
    ),
    *(
        (
            job(launcher=launcher(phase) if phase else None, elastic=elastic),
            {},
            "no-launcher waiting",
        )
        for phase in (None, LauncherPhase.WAITING, LauncherPhase.DELIVERING, LauncherPhase.FINISHED)
        for elastic in (True, False)
    ),
    (BLIND, {}, "launcher-without-discovery wrong"),
    (job(elastic=False, config=config([])), {}, "not-known unknown"),
]


def launch(**options: Any) -> dict[str, Any]:
    return {"looks": OTHERS_TRAIN, "launch": Launch(program="horovodrun", **options)}


LOSSES = Tries(count=len(RENAMED.delays) + 1, at=NOW - 60.0, uid=f"uid-of-{LAST}")
LOST_OFTEN = job(config=config(pods(0, 1, 2), memory=Memory(renamed={LAST: LOSSES})))
OWN_KUBEXEC = job(config=but(config(pods(0, 1, 2)), kubexec="#!/bin/sh\nssh $1\n"))
NEW = job(known=False)
PLAIN = job(elastic=False, config=config([]))
HOLDING = job(
    launcher=launcher(held=HeldExecs(frozen=(Exec(pid=41, pod=LAST, started_at=LONG_AGO),)))
)
MAX_NP = frozenset({"max_np"})
MPI = job(launcher=launcher(mounts_elastic=True), names_elastic=True)
NOT_GIVEN = "the controller cannot give it a new host name >"
NOT_KNOWN = "is listed, and the launcher knows it; whether it trains is not known: "
RANKS: list[Row] = [
    (
        job(),
        {"looks": {LAST: Look(processes=("python3 (x2)", "sh"))}},
        "trains fine: j-worker-2 is training: python3 (x2), sh",
    ),
    (
        job(),
        {},
        f"not-known unknown: {NOT_KNOWN}only exec can show that, and --no-exec was given >",
    ),
    (
        job(),
        {"looks": dict.fromkeys(pods(0, 1), BUSY)},
        f"not-known unknown: {NOT_KNOWN}exec looked only into 2 other workers >",
    ),
    (
        job(),
        {"looks": {**OTHERS_TRAIN, LAST: Look(error="a policy says no")}},
        f"not-known unknown: {NOT_KNOWN}a policy says no >",
    ),
    (PLAIN, {"looks": {LAST: BUSY}}, "trains fine"),
    (
        PLAIN,
        {"looks": {LAST: IDLE}},
        "not-known unknown: exec shows no rank, and the launcher alone decides where ranks run >",
    ),
    (
        job(),
        {"looks": OTHERS_TRAIN},
        "lost-rank waiting: while 2 others train*as long as the job runs*a new host name after 30s*| grep -i blacklist",
    ),
    (job(), launch(cooldown=(5, 60)), "lost-rank waiting: for up to 60 s"),
    (job(), {"looks": OTHERS_TRAIN, "controller": AWAY}, f"lost-rank wrong: {NOT_GIVEN}"),
    (OWN_KUBEXEC, {"looks": OTHERS_TRAIN}, f"lost-rank wrong: {NOT_GIVEN}"),
    (
        LOST_OFTEN,
        {"looks": OTHERS_TRAIN},
        "worker-given-up wrong: lost its rank 6 times*> kubectl -n default delete pod j-worker-2",
    ),
    (shown(NEW, at=NOW - 5.0), {"looks": OTHERS_TRAIN}, "joining waiting"),
    (shown(NEW, at=NOW - 25.0), {"looks": OTHERS_TRAIN}, "lost-rank waiting"),
    (job(), launch(max_np=2), "beyond-max-np wrong"),
    (job(), launch(max_np=3), "lost-rank waiting"),
    (job(slots=4), launch(max_np=8), "beyond-max-np wrong"),
    (
        job(unread_options=MAX_NP),
        {"looks": OTHERS_TRAIN},
        "unread-max-np wrong: while 2 others train: horovodrun's --max-np, which cannot be read",
    ),
    (
        job(unread_options=MAX_NP).pod(2, probe=Probe(busy_seen=True)),
        {"looks": OTHERS_TRAIN},
        "lost-rank waiting",
    ),
    (
        job(unread_options=MAX_NP),
        {"looks": dict.fromkeys(pods(0, 1, 2), IDLE)},
        "nobody-trains wrong",
    ),
    (
        job(),
        {"looks": dict.fromkeys(pods(0, 1, 2), IDLE)},
        "nobody-trains wrong: > kubectl -n default logs j-launcher --tail=50",
    ),
    (HOLDING, {"looks": OTHERS_TRAIN}, "frozen-exec wrong"),
    (
        MPI,
        {"looks": OTHERS_TRAIN},
        "unused-worker waiting: while 2 others train*elastic.sh is starting*> kubectl -n default "
        "logs j-launcher | grep elastic.sh",
    ),
    (
        MPI,
        {**launch(), "launch": Launch(program="elastic.sh", max_np=2)},
        "beyond-max-np wrong: fill the 2 slots of elastic.sh's --max-np",
    ),
    (
        but(MPI, unread_options=MAX_NP),
        {"looks": OTHERS_TRAIN},
        "unread-max-np wrong: while 2 others train: elastic.sh's --max-np, which cannot be read",
    ),
    (
        MPI,
        {"looks": dict.fromkeys(pods(0, 1, 2), IDLE)},
        "nobody-trains wrong: elastic.sh is still starting, waits for more slots",
    ),
]


@pytest.mark.parametrize(("view", "facts", "told"), [*PODS, *SURPLUS, *PUBLICATION, *RANKS])
def test_the_last_worker(view: JobView, facts: dict[str, Any], told: str) -> None:
    """Of it is told `CAUSE LEVEL: SAYS > NEXT STEP`, of which the table gives parts."""
    found = of_worker(view, 2, **facts)
    kind, _, words = told.partition(": ")
    assert f"{found.cause} {found.level.value}" == kind
    assert re.search(
        ".*".join(map(re.escape, words.split("*"))), f"{found.says} > {found.next_step}"
    )


@pytest.mark.parametrize(
    ("view", "cause", "words"),
    [
        (job(role=role(0, 1)), "no-right", "is not in the launcher's Role yet"),
        (job(role=None), "no-right", "is not in the launcher's Role yet"),
        (job(config=TWO), "not-published", "the controller adds it next"),
        (job(known=False), "launcher-not-refreshed", "the controller refreshes the launcher next"),
    ],
)
def test_the_next_step_needs_a_controller_that_leads(view: JobView, cause: str, words: str) -> None:
    found = of_worker(view, 2)
    assert (found.cause, found.level) == (cause, Level.WAITING)
    assert words in found.says
    away = of_worker(view, 2, controller=AWAY)
    assert (away.cause, away.level) == (cause, Level.WRONG)
    assert AWAY in away.says
    assert away.next_step == "mpijob-elastic status -n default"


def test_a_worker_that_waits_for_ranks_after_a_loss_says_what_decides_how_long() -> None:
    [pod] = pods(1)
    memory = Memory(
        left={
            pod: Left(
                pod=pod_fingerprint(f"uid-of-{pod}"), at=LONG_AGO + 10, known_at=LONG_AGO + 10
            )
        },
        hosts={name: named(name) for name in pods(0, 1, 2)},
    )
    successor = worker(1, uid="new", created_at=NOW - 10, ready_at=NOW - 5)
    view = job(workers=(worker(0), successor, worker(2)), config=config(pods(0, 2), memory=memory))
    found = of_worker(view, 1)
    assert found.cause == "settling"
    assert (
        "in 30s: the controller waits for the other ranks to get over a loss: Gloo's timeout"
        in found.says
    )


@pytest.mark.parametrize(
    ("looks", "facts", "train", "all_train"),
    [
        (dict.fromkeys(pods(0, 1, 2), BUSY), {}, 3, True),
        (dict.fromkeys(pods(0, 1), BUSY), {}, None, None),
        ({}, {}, None, None),
        ({}, {"controller": AWAY}, None, False),
        (OTHERS_TRAIN, {}, 2, False),
        ({"j-worker-0": BUSY, LAST: IDLE}, {}, None, False),
    ],
)
def test_that_all_train_is_said_only_where_it_is_known(
    looks: dict[str, Look], facts: dict[str, Any], train: int | None, all_train: bool | None
) -> None:
    found = diagnose(job(), Facts(looks=looks, **facts), now=NOW)
    assert (found.training, found.all_train) == (train, all_train)
    assert bool(found.not_known) is (train is None)


def test_a_pod_at_a_gate_names_it_and_a_worker_of_a_stopped_job_is_about_to_go() -> None:
    gates = (names.GATE_SUSPENDED,)
    held = launcher(LauncherPhase.WAITING, gates=gates)
    workers = (worker(0), pending(1, gates=gates))
    view = job(
        2,
        workers=workers,
        launcher=held,
        config=config([]),
        known=False,
        suspended_by="annotation x",
    )
    assert of_worker(view, 0).cause == "suspending"
    found = of_worker(view, 1)
    assert (found.cause, found.level, found.next_step) == ("job-waits", Level.WAITING, "")
    [said] = of_job(view).values()
    assert "is suspended by annotation mpijob-elastic/suspend" in said.says
    assert said.next_step == "mpijob-elastic resume j -n default"
    foreign = but(held, gates=(*gates, "example.com/wait"))
    assert "example.com/wait" in of_job(but(view, launcher=foreign))["launcher-stuck"].says


def test_a_job_that_waits_for_quota_says_where_and_why() -> None:
    view = waiting(
        3, granted(), workload(LAST, said="insufficient\n quota"), policy=Policy(min_replicas=2)
    )
    kueue = view.of(Kueue)
    assert kueue
    assert kueue.queue
    view = but(view, queue=replace(kueue.queue, places={f"uid-of-{LAST}": 4}))
    said = of_job(view)["workers-queued"]
    assert said.says == "j-worker-2 waiting in queue team: insufficient quota; at place 4"
    assert said.level is Level.WAITING
    assert said.next_step == "kubectl -n default describe workload j-worker-2"
    found = of_worker(but(view, launcher=launcher()), 2)
    assert (found.cause, found.next_step) == ("gated", "")
    assert found.says == "j-worker-2 is held back: it waits in queue team: insufficient quota"
    whole = waiting(2, workload(said="insufficient"))
    [held] = of_job(whole).values()
    assert held.says == "j waits in queue team: insufficient"
    assert of_worker(whole, 1).cause == "job-waits"


def test_a_launcher_that_is_held_back_for_a_reason_nobody_has_told_is_told_of() -> None:
    [found] = of_job(waiting(2, workload())).values()
    assert (found.cause, found.says) == (
        "launcher-held",
        "j-launcher is held back: it waits in queue team",
    )
    assert found.next_step == "kubectl -n default describe workload j-launcher"
    [found] = of_job(waiting(2, workload(created_at=NOW - 40.0))).values()
    assert found.says.endswith("in queue team; Kueue has not answered, so check that it runs")
    assert found.next_step == "kubectl get pods -A | grep kueue"
    [found] = of_job(waiting(2, workload(said="LocalQueue team doesn't exist"))).values()
    assert found.says.endswith(" kueue.x-k8s.io/queue-name=QUEUE --overwrite`")
    assert found.next_step == "kubectl -n default get localqueues"
    held = launcher(LauncherPhase.WAITING, gates=(names.GATE_SUSPENDED,))
    [found] = of_job(job(2, launcher=held, config=config([]), known=False)).values()
    assert found.says == "j-launcher is held back: ranks of the launcher before may still run"
