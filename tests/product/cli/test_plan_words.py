"""A plan in words."""

from dataclasses import replace
from typing import get_args

import pytest

from mpijob_elastic.cli.jobs import plan_words
from mpijob_elastic.decide.actions import (
    Action,
    AdoptWorkload,
    ClearWorkload,
    CreateUnit,
    CreateWorkload,
    DeleteJob,
    DeleteLauncher,
    DeleteUnit,
    DeleteWorkers,
    DeleteWorkload,
    EndExecs,
    EndLauncher,
    Fill,
    FinishWorkload,
    Gated,
    HoldJob,
    LookIntoLauncher,
    LowerPodGroup,
    MakePodGroup,
    MarkReady,
    MarkRunning,
    Note,
    Plan,
    ProbeWorkers,
    QueueAction,
    RefreshLauncher,
    ReleaseJob,
    ReleaseWorker,
    Removal,
    RollBack,
    StartPods,
    TellUser,
    TunePodGroup,
    Ungate,
    UnitAction,
    WriteConfig,
    WriteRole,
    WriteSelector,
)
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Memory, Tries
from tests import builders
from tests.queues import granted, held, unit, waiting, workload

NOTE = Note(reason="Reason", message="because")
WORDS: dict[type[Action], tuple[Action, list[str]]] = {
    WriteRole: (
        WriteRole(ref=builders.ref("r"), exec_rule=1, exec_names=(), note=NOTE),
        ["because"],
    ),
    WriteConfig: (
        WriteConfig(
            ref=builders.ref("c"),
            script="",
            hostfile="",
            memory=Memory(),
            added=builders.pods(2, 3),
            removed=builders.pods(1),
        ),
        ["publish j-worker-2, j-worker-3 in discover_hosts.sh", "remove j-worker-1 from discover_hosts.sh"],
    ),
    RefreshLauncher: (
        RefreshLauncher(launcher=builders.launcher(), digest="d", tries=Tries(count=1, at=0.0, uid="u")),
        ["touch j-launcher, so that its kubelet refreshes discover_hosts.sh now"],
    ),
    DeleteWorkers: (
        DeleteWorkers(removals=(Removal(worker=builders.worker(2), outcome="drained", note=NOTE),)),
        ["because"],
    ),
    DeleteJob: (DeleteJob(ref=builders.ref("j"), due_at=0.0, note=NOTE), ["because"]),
    EndLauncher: (EndLauncher(launcher=builders.launcher(), note=NOTE), ["because"]),
    ReleaseWorker: (
        ReleaseWorker(worker=builders.worker(2), mark="released", note=NOTE),
        ["because"],
    ),
    DeleteLauncher: (DeleteLauncher(launcher=builders.launcher(), note=NOTE), ["because"]),
    TellUser: (TellUser(ref=builders.ref("j"), text="Reason: because"), ["update the notices on the job"]),
    EndExecs: (
        EndExecs(launcher=builders.launcher(), execs=(Exec(pid=7, pod="j-worker-1", started_at=1.0),)),
        ["end frozen `kubectl exec` into j-worker-1 in j-launcher"],
    ),
    Ungate: (
        Ungate(pods=(Gated(ref=builders.ref("j-worker-1")),), note=NOTE),
        ["take the scheduling gate off j-worker-1"],
    ),
    WriteSelector: (
        WriteSelector(ref=builders.ref("j"), selector="a=b"),
        ["restore the selector of the workers in the job's status"],
    ),
    LowerPodGroup: (LowerPodGroup(ref=builders.ref("g"), before=5, after=3, note=NOTE), ["because"]),
    MakePodGroup: (
        MakePodGroup(job=builders.ref("j"), min_member=3, gang=Gang(scheduler="volcano"), note=NOTE),
        ["because"],
    ),
    TunePodGroup: (
        TunePodGroup(ref=builders.ref("g"), queue="team", annotations={}, note=NOTE),
        ["because"],
    ),
    Fill: (Fill(ref=builders.ref("j"), before=2, after=3, note=NOTE), ["because"]),
    RollBack: (RollBack(ref=builders.ref("j"), before=4, after=2, note=NOTE), ["because"]),
}


@pytest.mark.parametrize("kind", get_args(Action))
def test_every_action_has_its_words(kind: type[Action]) -> None:
    action, words = WORDS[kind]
    assert plan_words.words(builders.job(), Plan(actions=(action,))) == words


QUEUED: dict[type[QueueAction], tuple[QueueAction, str]] = {
    CreateWorkload: (
        CreateWorkload(name="j-launcher", queue="team", pods=()),
        "ask queue team for quota with the Workload j-launcher",
    ),
    StartPods: (StartPods(pods=(), flavors=(), note=NOTE), "because"),
    MarkReady: (MarkReady(workload=granted()), "tell Kueue that the pods of j-launcher run"),
    ClearWorkload: (ClearWorkload(workload=granted()), "tell Kueue that the quota of j-launcher is free"),
    FinishWorkload: (FinishWorkload(workload=granted()), "tell Kueue that j-launcher has finished"),
    DeleteWorkload: (DeleteWorkload(workload=granted()), "delete the Workload j-launcher"),
    AdoptWorkload: (AdoptWorkload(workload=granted()), "make the job the owner of the Workload j-launcher"),
}


@pytest.mark.parametrize("kind", get_args(QueueAction))
def test_every_write_for_kueue_has_its_words(kind: type[QueueAction]) -> None:
    action, words = QUEUED[kind]
    assert plan_words.words(builders.job(), Plan(queue=(action,))) == [words]


UNITS: dict[type[UnitAction], tuple[UnitAction, str]] = {
    CreateUnit: (CreateUnit(name="u", pods=(), workers=2), "ask KubeQueue for quota with the QueueUnit u"),
    DeleteUnit: (DeleteUnit(unit=unit()), "delete the QueueUnit j-mpi-qu"),
    MarkRunning: (MarkRunning(unit=unit()), "say in the QueueUnit j-mpi-qu that the job runs"),
    ReleaseJob: (ReleaseJob(unit=unit(), note=NOTE), "because"),
    HoldJob: (HoldJob(unit=unit(), note=NOTE), "because"),
}


@pytest.mark.parametrize("kind", get_args(UnitAction))
def test_every_write_for_kube_queue_has_its_words(kind: type[UnitAction]) -> None:
    action, words = UNITS[kind]
    assert plan_words.words(builders.job(), Plan(queue=(action,))) == [words]


def test_every_look_has_its_words() -> None:
    leaving = ProbeWorkers(workers=(builders.worker(2), builders.worker(1)))
    routine = (
        ProbeWorkers(workers=(builders.worker(0),), published=True),
        LookIntoLauncher(launcher=builders.launcher(), about=frozenset()),
    )
    checks = [
        "check by exec, from time to time, that ranks run in j-worker-0",
        "check by exec, unless just done, that j-launcher holds no exec into a pod that is gone",
    ]
    draining = "check by exec whether ranks still run in j-worker-2, j-worker-1"
    assert plan_words.words(builders.job(), Plan(looks=(leaving, *routine))) == [draining, *checks]
    assert plan_words.words(builders.job(), Plan(looks=routine)) == ["nothing: the job is as desired", *checks]
    told = ProbeWorkers(workers=leaving.workers[:1], drained=True)
    words = "tell the main process of j-worker-2 by exec that its worker has drained"
    assert plan_words.words(builders.job(), Plan(looks=(told,))) == [words]


def test_a_write_without_a_change_of_hosts_says_what_it_writes() -> None:
    write = WriteConfig(ref=builders.ref("c"), script="", hostfile="", memory=Memory())
    [words] = plan_words.words(builders.job(), Plan(actions=(write,)))
    assert "hostfile" in words


def test_a_repeated_touch_says_why() -> None:
    touch = RefreshLauncher(launcher=builders.launcher(), digest="d", again=1, tries=Tries(count=1, at=0.0, uid="u"))
    [words] = plan_words.words(builders.job(), Plan(actions=(touch,)))
    assert words.startswith("touch j-launcher again, because ranks may still run in leaving workers")


def test_removing_notices_has_its_own_words() -> None:
    [words] = plan_words.words(builders.job(), Plan(actions=(TellUser(ref=builders.ref("j"), text=""),)))
    assert words == "remove the notices from the job"


WAITING = builders.launcher(LauncherPhase.WAITING)


@pytest.mark.parametrize(
    ("view", "plan", "why"),
    [
        (builders.job(), Plan(), "the job is as desired"),
        (builders.job(), Plan(wake_at=builders.NOW + 1), "a change has to wait"),
        (builders.job(config=None), Plan(), "the operator has not created the job's ConfigMap and Role yet"),
        (builders.job(role=None), Plan(), "the operator has not created the job's ConfigMap and Role yet"),
        (builders.job(finished=True), Plan(), "the job has ended"),
        (builders.job(deleting=True, finished=True), Plan(), "the job is being deleted"),
        (builders.job(3, workers=(builders.worker(0),)), Plan(), "the operator has not created j-worker-1, j-worker-2"),
        (builders.job(1, launcher=None), Plan(wake_at=1.0), "the operator has not created j-launcher"),
        (builders.job(launcher=WAITING), Plan(), "j-launcher has not started"),
        (
            builders.job(launcher=builders.launcher(LauncherPhase.FINISHED)),
            Plan(wake_at=1.0),
            "j-launcher has ended, and the operator has not said that the job has",
        ),
        (
            builders.job(config=builders.config(builders.pods(0))),
            Plan(),
            "discover_hosts.sh lacks j-worker-1, j-worker-2",
        ),
        (builders.job(launcher=WAITING, suspended_by="a field"), Plan(), "the job is suspended by a field"),
        (waiting(2, workload(said="no quota")), Plan(), "the job waits for quota"),
        (held(unit()), Plan(), "the job waits in KubeQueue"),
        (replace(builders.job(deleting=True), foreign="it is another's"), Plan(), "it is another's"),
    ],
)
def test_an_empty_plan_says_why(view: JobView, plan: Plan, why: str) -> None:
    assert plan_words.words(view, plan) == [f"nothing: {why}"]
