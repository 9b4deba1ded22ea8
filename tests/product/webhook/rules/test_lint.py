"""Warnings for the author of a job: each finding once, none where all is well, nothing on plain jobs."""

import copy
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook.objects import Object, body, mpi_job
from webhook.rules import handlers, lint, review

SCRIPT = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
GOOD = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "8", *SCRIPT, "python", "train.py"]
ELASTIC = {names.ENABLED: "true"}


def said(job: Object) -> tuple[str, ...]:
    read = msgspec.convert(job, MPIJob)
    return lint.created(read, job_facts.of(read))


def with_sidecar(main: str | None = None) -> Object:
    job = mpi_job(command=GOOD)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "proxy"})
    if main:
        job["spec"]["mainContainer"] = main
    return job


@pytest.mark.parametrize(
    "job",
    [
        mpi_job(command=GOOD),
        mpi_job(command=["horovodrun", "-np", "1", *SCRIPT, "x"]),
        mpi_job(command=["sh", "-c", f"horovodrun -np $N {' '.join(SCRIPT)} x"]),
        mpi_job(command=["/start.sh"], annotations=ELASTIC),
        mpi_job(replicas=4, command=GOOD, annotations={names.MIN_REPLICAS: "2"}),
        mpi_job(replicas=2, command=GOOD, annotations={names.MIN_REPLICAS: "2"}),
        mpi_job(command=["horovodrun", "-np", "1", "--reset-limit", "100", *SCRIPT, "x"]),
        mpi_job(command=["mpirun", "x"]),
        mpi_job(command=["mpirun", "x"], annotations={names.ENABLED: "false", names.MAX_REPLICAS: "3"}),
        mpi_job(command=["horovodrun", "-np", "9", "x"], replicas=2),
        mpi_job(name="n" * 54, command=GOOD, replicas=2),
        with_sidecar("worker"),
    ],
    ids=[
        "good",
        "-np 1",
        "unread",
        "own script",
        "starts small",
        "at its least",
        "enough resets",
        "plain",
        "switched off",
        "static horovodrun",
        "name fits",
        "main",
    ],
)
def test_nothing_is_said(job: Object) -> None:
    assert said(job) == ()


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (mpi_job(command=["mpirun", "x"], annotations=ELASTIC), "mpirun cannot change its size while it runs"),
        (mpi_job(command=["mpirun", "x"], annotations={names.MAX_REPLICAS: "3"}), "this job is not elastic: mpirun"),
        (mpi_job(command=["python", "x"], annotations={names.MAX_REPLICAS: "3"}), "this job is not elastic: run horo"),
        (mpi_job(command=["horovodrun", "-np", "1", "x"], annotations=ELASTIC), "has no --host-discovery-script"),
        (
            mpi_job(replicas=4, command=GOOD, annotations={names.MIN_REPLICAS: "1"}),
            "starts with 2 slots (-np), but min-replicas gives 1",
        ),
        (mpi_job(command=["horovodrun", "--host-discovery-script", "/x.sh", "x"]), "is not /etc/mpi/discover_hosts.sh"),
        (
            mpi_job(command=["horovodrun", "-np", "2", *SCRIPT, "x"]),
            "no --min-np: with fewer slots than -np 2 training",
        ),
        (mpi_job(command=GOOD, replicas=5, slots=2), "--max-np is 8, but 10 slots are asked for: 2 stay unused"),
        (mpi_job(command=["horovodrun", "--min-np", "3", *SCRIPT, "x"]), "--min-np is 3, but 2 slots are asked for"),
        (mpi_job(command=["horovodrun", "--reset-limit=10", *SCRIPT, "x"]), "ends the job at reset 11 (--reset-limit)"),
        (
            mpi_job(command=["horovodrun", "--gloo-timeout-seconds=5", *GOOD[1:]]),
            "with a Gloo timeout of 5 s a new rank",
        ),
        (with_sidecar(), "2 containers and no spec.mainContainer: ranks start in the first, worker"),
        (mpi_job(name="n" * 64, command=GOOD), "the name has 64 characters"),
        (mpi_job(name="n" * 54, command=GOOD, annotations={names.MAX_REPLICAS: "11"}), "hostnames are cut"),
    ],
)
def test_one_thing_is_said_in_short(job: Object, words: str) -> None:
    [warning] = said(job)
    assert words in warning
    assert len(warning) <= 120


@pytest.mark.parametrize(
    ("asked", "command", "warned"), [("false", GOOD, True), ("true", GOOD, False), ("false", ["mpirun", "x"], False)]
)
def test_a_run_policy_without_effect(asked: str, command: list[str], warned: bool) -> None:
    job = mpi_job(command=command, annotations={names.RUN_POLICY: asked})
    job["spec"]["runPolicy"] = {"activeDeadlineSeconds": 60, "cleanPodPolicy": "All"}
    warning = "mpi-operator v0.2.3 ignores activeDeadlineSeconds of spec.runPolicy; annotate the job "
    assert said(job) == ((f'{warning}{names.RUN_POLICY}: "true"',) if warned else ())


def test_a_handful_at_most() -> None:
    job = with_sidecar()
    job["metadata"]["name"] = "n" * 64
    job["spec"]["slotsPerWorker"] = 9
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"] = [
        *("horovodrun", "-np", "99", "--max-np", "4", "--host-discovery-script", "/x.sh", "x")
    ]
    assert len(said(job)) == lint.MOST


def updated(job: Object, before: Object, **request: Any) -> tuple[str, ...]:
    return handlers.answer(
        review.parse(body(job, old=before, **request)), handlers.validating(handlers.NOTHING)
    ).verdict.warnings


def test_an_update_is_told_only_what_it_brings_in() -> None:
    before = mpi_job(command=["mpirun", "x"], annotations=ELASTIC)
    after = copy.deepcopy(before)
    after["metadata"]["labels"] = {"team": "a"}
    assert updated(after, before) == ()
    after["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "proxy"})
    [warning] = updated(after, before)
    assert "no spec.mainContainer" in warning


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_an_edit_of_a_template_cannot_reach_pods_that_are_there(role: str) -> None:
    before = mpi_job(command=GOOD, conditions=["Created", "Running"])
    after = copy.deepcopy(before)
    after["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]["image"] = "horovod:new"
    [warning] = updated(after, before)
    assert warning.startswith(f"{role}.template: ")
    assert len(warning) <= 120
    for over in (["Created", "Succeeded"], []):
        before["status"]["conditions"] = [{"type": kind, "status": "True"} for kind in over]
        assert updated(after, before) == ()


def test_an_edit_of_a_template_does_not_change_the_quota_of_a_queued_job() -> None:
    before = mpi_job(command=GOOD, conditions=["Created", "Running"])
    before["metadata"]["labels"] = {names.LABEL_QUEUE: "team"}
    after = copy.deepcopy(before)
    after["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["image"] = "horovod:new"
    [_, warning] = updated(after, before)
    assert warning == "the job keeps the quota that its old pods asked for; to ask again, suspend and resume it"


@pytest.mark.parametrize("command", [GOOD, ["mpirun", "x"]])
def test_workers_of_a_queued_job_should_go_when_it_ends(command: list[str]) -> None:
    job = mpi_job(command=command)
    job["metadata"]["labels"] = {names.LABEL_QUEUE: "team"}
    assert said(job) == (
        "workers stay when this job has ended, but others get its quota; set spec.cleanPodPolicy to Running",
    )
    job["spec"]["cleanPodPolicy"] = "Running"
    assert said(job) == ()


def test_a_job_is_in_one_queue_only() -> None:
    job = mpi_job(command=GOOD)
    job["spec"]["cleanPodPolicy"] = "Running"
    job["metadata"]["annotations"] = {names.KUBEQUEUE_SUSPEND: "true"}
    assert said(job) == ()
    job["metadata"]["labels"] = {names.LABEL_QUEUE: "team"}
    [warning] = said(job)
    assert warning.startswith("scheduling.x-k8s.io/suspend holds a job with a queue of Kueue")
    assert len(warning) <= 120


def test_the_order_of_keys_is_no_edit() -> None:
    before = mpi_job(command=GOOD, conditions=["Created"])
    after = copy.deepcopy(before)
    template = after["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    container = template["spec"]["containers"][0]
    template["spec"]["containers"] = [dict(reversed(container.items()))]
    assert updated(after, before) == ()


def test_a_job_without_templates_is_judged_all_the_same() -> None:
    before = mpi_job(command=GOOD, conditions=["Created"])
    after = copy.deepcopy(before)
    before["spec"]["mpiReplicaSpecs"]["Worker"] = None
    after["metadata"]["annotations"] = {names.MAX_REPLICAS: "1"}
    answer = handlers.answer(review.parse(body(after, old=before)), handlers.validating(handlers.NOTHING))
    assert answer.outcome == "rejected"


def test_a_dry_run_of_an_edit_shows_what_it_would_do() -> None:
    before = mpi_job(command=GOOD, replicas=3, conditions=["Created"])
    after = mpi_job(command=GOOD, replicas=1, conditions=["Created"])
    shown = "would scale 3→1: worker-2, worker-1 drain for at most 1m, then are deleted"
    assert updated(after, before, dryRun=True) == (shown,)
    assert updated(after, before) == ()
