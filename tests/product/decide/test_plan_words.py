"""A plan in words."""

from typing import Any

import pytest

from mpijob_elastic.capabilities import run_policy as of_runs
from mpijob_elastic.capabilities.autoscaling import autoscaler, size
from mpijob_elastic.capabilities.gangs import wishes as of_gangs
from mpijob_elastic.capabilities.gangs.facts import VOLCANO_POD_GROUPS, Gang
from mpijob_elastic.capabilities.kueue import actions as of_kueue
from mpijob_elastic.decide import actions, derive, in_words
from mpijob_elastic.decide.actions import LookIntoLauncher, Note, Plan, ProbeWorkers
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import NOW, but, config, job, launcher, pods, ref, worker
from tests.kinds import kinds
from tests.queues import granted, waiting, workload
from tests.room_words import rooms

NOTE = Note(reason="Reason", message="because")
VOLCANO = Gang(scheduler="volcano")
TRIES = Tries(count=1, at=0.0, uid="u")
FROZEN = Exec(pid=7, pod="j-worker-1", started_at=1.0)
TOUCH = "so that its kubelet refreshes discover_hosts.sh now"
AGAIN = f"touch j-launcher again, because ranks may still run in leaving workers, {TOUCH}"


def config_of(**change: Any) -> actions.WriteConfig:
    return actions.WriteConfig(ref=ref("c"), script="", hostfile="", memory=Memory(), **change)


WORDS: list[tuple[Any, str]] = [
    (config_of(added=pods(2, 3)), "publish j-worker-2, j-worker-3 in discover_hosts.sh"),
    (config_of(removed=pods(1)), "remove j-worker-1 from discover_hosts.sh"),
    (config_of(), "update hostfile, discover_hosts.sh or the memory in ConfigMap c"),
    (
        actions.RefreshLauncher(ref=ref("j-launcher"), text="d", tries=TRIES),
        f"touch j-launcher, {TOUCH}",
    ),
    (actions.RefreshLauncher(ref=ref("j-launcher"), text="d", again=1, tries=TRIES), AGAIN),
    (actions.TellUser(ref=ref("j"), text="Reason: because"), "update the notices on the job"),
    (actions.TellUser(ref=ref("j"), text=""), "remove the notices from the job"),
    (
        actions.EndExecs(launcher=launcher(), execs=(FROZEN,)),
        "end frozen `kubectl exec` into j-worker-1 in j-launcher",
    ),
    (
        actions.Ungate(pods=(actions.Gated(ref=ref("j-worker-1")),), note=NOTE),
        "take the scheduling gate off j-worker-1",
    ),
    (
        actions.WriteSelector(ref=ref("j"), selector="a=b"),
        "restore the selector of the workers in the job's status",
    ),
    (
        of_kueue.CreateWorkload(name="j-launcher", queue="team", pods=()),
        "ask queue team for quota with the Workload j-launcher",
    ),
    (of_kueue.MarkReady(workload=granted()), "tell Kueue that the pods of j-launcher run"),
    (of_kueue.ClearWorkload(workload=granted()), "tell Kueue that the quota of j-launcher is free"),
    (of_kueue.FinishWorkload(workload=granted()), "tell Kueue that j-launcher has finished"),
    (of_kueue.DeleteWorkload(ref=granted().metadata), "delete the Workload j-launcher"),
    (
        of_kueue.AdoptWorkload(ref=granted().metadata, job=ref("j")),
        "make the job and its pods the owners of the Workload j-launcher",
    ),
    *(row for words in rooms() for row in words.said),
]
REMOVAL = actions.Removal(worker=worker(2), outcome="drained", note=NOTE)
SAY_THEIR_REASON: list[Any] = [
    actions.WriteRole(ref=ref("r"), exec_rule=1, exec_names=(), note=NOTE),
    actions.DeleteWorkers(removals=(REMOVAL,)),
    of_runs.DeleteJob(ref=ref("j"), note=NOTE),
    actions.EndLauncher(ref=ref("j-launcher"), note=NOTE),
    actions.ReleaseWorker(ref=ref("j-worker-2"), key="a", text="released", note=NOTE),
    actions.DeleteLauncher(launcher=launcher(), note=NOTE),
    of_gangs.LowerPodGroup(resource=VOLCANO_POD_GROUPS, ref=ref("g"), before=5, after=3, note=NOTE),
    of_gangs.MakePodGroup(
        resource=VOLCANO_POD_GROUPS, job=ref("j"), min_member=3, gang=VOLCANO, note=NOTE
    ),
    of_gangs.TunePodGroup(
        resource=VOLCANO_POD_GROUPS, ref=ref("g"), queue="team", annotations={}, note=NOTE
    ),
    size.Fill(ref=ref("j"), before=2, after=3, note=NOTE),
    size.RollBack(ref=ref("j"), before=4, after=2, note=NOTE),
    autoscaler.DeleteAutoscaler(ref=ref("h"), note=NOTE),
    autoscaler.MakeAutoscaler(job=ref("j"), spec={}, note=NOTE),
    autoscaler.ChangeAutoscaler(ref=ref("h"), spec={}, note=NOTE),
]
ALL = [*WORDS, *((action, NOTE.message) for action in SAY_THEIR_REASON)]


@pytest.mark.parametrize(("action", "words"), ALL)
def test_every_write_has_its_words(action: Any, words: str) -> None:
    assert in_words(derive(job(), now=NOW), Plan(actions=(action,))) == [words]


def test_no_write_is_without_words() -> None:
    assert {type(action) for action, _ in ALL} == {*kinds()}


def test_every_look_has_its_words() -> None:
    leaving = ProbeWorkers(workers=(worker(2), worker(1)))
    routine = (
        ProbeWorkers(workers=(worker(0),), published=True),
        LookIntoLauncher(launcher=launcher(), about=frozenset()),
    )
    checks = [
        "check by exec, from time to time, that ranks run in j-worker-0",
        "check by exec, unless just done, that j-launcher holds no exec into a pod that is gone",
    ]
    draining = "check by exec whether ranks still run in j-worker-2, j-worker-1"
    assert in_words(derive(job(), now=NOW), Plan(looks=(leaving, *routine))) == [draining, *checks]
    assert in_words(derive(job(), now=NOW), Plan(looks=routine)) == [
        "nothing: the job is as desired",
        *checks,
    ]
    told = ProbeWorkers(workers=leaving.workers[:1], drained=True)
    words = "tell the main process of j-worker-2 by exec that its worker has drained"
    assert in_words(derive(job(), now=NOW), Plan(looks=(told,))) == [words]


WAITING = launcher(LauncherPhase.WAITING)


@pytest.mark.parametrize(
    ("view", "plan", "why"),
    [
        (job(), Plan(), "the job is as desired"),
        (job(), Plan(wake_at=NOW + 1), "a change has to wait"),
        (job(config=None), Plan(), "the operator has not created the job's ConfigMap and Role yet"),
        (job(role=None), Plan(), "the operator has not created the job's ConfigMap and Role yet"),
        (job(finished=True), Plan(), "the job has ended"),
        (job(deleting=True, finished=True), Plan(), "the job is being deleted"),
        (
            job(3, workers=(worker(0),)),
            Plan(),
            "the operator has not created j-worker-1, j-worker-2",
        ),
        (job(1, launcher=None), Plan(wake_at=1.0), "the operator has not created j-launcher"),
        (job(launcher=WAITING), Plan(), "j-launcher has not started"),
        (
            job(launcher=launcher(LauncherPhase.FINISHED)),
            Plan(wake_at=1.0),
            "j-launcher has ended, and the operator has not said that the job has",
        ),
        (
            job(config=config(pods(0))),
            Plan(),
            "discover_hosts.sh lacks j-worker-1, j-worker-2",
        ),
        (
            job(launcher=WAITING, suspended_by="a field"),
            Plan(),
            "the job is suspended by annotation mpijob-elastic/suspend",
        ),
        (
            waiting(2, workload(said="no quota")),
            Plan(),
            "the job waits for quota of queue team: no quota",
        ),
        (waiting(2, workload()), Plan(), "the job waits for quota of queue team"),
        (
            waiting(2, workload(created_at=NOW - 20.0)),
            Plan(),
            "the job waits for quota of queue team",
        ),
        (
            waiting(2, workload(created_at=NOW - 40.0)),
            Plan(),
            "the job waits for quota of queue team; Kueue has not answered, so check that it runs",
        ),
        (but(job(deleting=True), foreign="it is another's"), Plan(), "it is another's"),
    ],
)
def test_an_empty_plan_says_why(view: JobView, plan: Plan, why: str) -> None:
    assert in_words(derive(view, now=NOW), plan) == [f"nothing: {why}"]
