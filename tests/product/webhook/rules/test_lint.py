"""Warnings for the author of a job: each finding once, none where all is well, nothing on plain jobs."""

import copy
from typing import Any

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.mpijob import MPIJob
from tests.product.webhook import answers
from tests.product.webhook.objects import PLAIN, Object, mpi_job
from webhook.rules import lint

SCRIPT = ["--host-discovery-script", "/etc/mpi/discover_hosts.sh"]
GOOD = ["horovodrun", "-np", "2", "--min-np", "1", "--max-np", "8", *SCRIPT, "python", "train.py"]
ELASTIC, MIN, MAX = {names.ENABLED: "true"}, names.MIN_REPLICAS, names.MAX_REPLICAS


def said(job: Object) -> tuple[str, ...]:
    read = msgspec.convert(job, MPIJob)
    return lint.created(read, job_facts.of(read))


def good(*, sidecar: bool = False, labels: Object | None = None, **fields: Any) -> Object:
    """A job about which nothing is said, with other fields of its spec, arguments and labels."""
    of_job = {
        key: fields.pop(key) for key in ("name", "replicas", "slots", "annotations", "conditions") if key in fields
    }
    job = mpi_job(command=fields.pop("command", GOOD), **of_job)
    job["spec"] |= {"cleanPodPolicy": "Running", **fields}
    job["metadata"]["labels"] = labels or {}
    if sidecar:
        job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"].append({"name": "proxy"})
    return job


def elastic(*options: str) -> list[str]:
    return ["horovodrun", *options, *SCRIPT, "x"]


TEAM = {names.LABEL_QUEUE: "team"}
POLICY = {"activeDeadlineSeconds": 60, "cleanPodPolicy": "All"}
CANNOT = "cannot change its size; use horovodrun with --host-discovery-script"
BY_CLEANING = "workers stay when this job has ended, but others get its quota; set spec.cleanPodPolicy to Running"


@pytest.mark.parametrize(
    ("job", "warning"),
    [
        pytest.param(good(), "", id="good"),
        pytest.param(good(command=elastic("-np", "1")), "", id="-np 1"),
        pytest.param(good(command=["sh", "-c", f"horovodrun -np $N {' '.join(SCRIPT)} x"]), "", id="unread"),
        pytest.param(good(command=["/start.sh"], annotations=ELASTIC), "", id="own script"),
        pytest.param(good(replicas=4, annotations={MIN: "2"}), "", id="starts small"),
        pytest.param(good(replicas=2, annotations={MIN: "2"}), "", id="at its least"),
        pytest.param(good(command=elastic("-np", "1", "--reset-limit", "100")), "", id="enough resets"),
        pytest.param(good(command=PLAIN), "", id="plain"),
        pytest.param(good(command=PLAIN, annotations={names.ENABLED: "false", MAX: "3"}), "", id="switched off"),
        pytest.param(good(command=["horovodrun", "-np", "9", "x"]), "", id="static horovodrun"),
        pytest.param(good(name="n" * 54), "", id="name fits"),
        pytest.param(good(sidecar=True, mainContainer="worker"), "", id="main container"),
        pytest.param(
            good(command=PLAIN, annotations=ELASTIC),
            "mpirun cannot change its size while it runs; use horovodrun with --host-discovery-script",
            id="mpirun said to be elastic",
        ),
        pytest.param(
            good(command=PLAIN, annotations={MAX: "3"}),
            f"this job is not elastic: mpirun {CANNOT}",
            id="mpirun bounded",
        ),
        pytest.param(
            good(command=["python", "x"], annotations={MAX: "3"}),
            f'this job is not elastic: run horovodrun with --host-discovery-script, or set {names.ENABLED}: "true"',
            id="unknown program bounded",
        ),
        pytest.param(
            good(command=["horovodrun", "-np", "1", "x"], annotations=ELASTIC),
            "horovodrun has no --host-discovery-script; give it /etc/mpi/discover_hosts.sh",
            id="no script",
        ),
        pytest.param(
            good(replicas=4, annotations={MIN: "1"}),
            "horovodrun starts with 2 slots (-np), but min-replicas gives 1: it waits for more",
            id="-np above the least",
        ),
        pytest.param(
            good(command=["horovodrun", "--host-discovery-script", "/x.sh", "x"]),
            "--host-discovery-script is not /etc/mpi/discover_hosts.sh, the file that follows the job's size",
            id="another script",
        ),
        pytest.param(
            good(command=elastic("-np", "2")),
            "horovodrun has no --min-np: with fewer slots than -np 2 training waits",
            id="no --min-np",
        ),
        pytest.param(
            good(replicas=5, slots=2),
            "horovodrun's --max-np is 8, but 10 slots are asked for: 2 stay unused",
            id="above --max-np",
        ),
        pytest.param(
            good(command=elastic("--min-np", "3")),
            "horovodrun's --min-np is 3, but 2 slots are asked for: training waits for more",
            id="below --min-np",
        ),
        pytest.param(
            good(command=elastic("--reset-limit=10")),
            "horovodrun ends the job at reset 11 (--reset-limit): a new size costs one, a lost rank up to three",
            id="few resets",
        ),
        pytest.param(
            good(command=["horovodrun", "--gloo-timeout-seconds=5", *GOOD[1:]]),
            "with a Gloo timeout of 5 s a new rank that needs longer to start ends the others; give it 10 or more",
            id="short Gloo timeout",
        ),
        pytest.param(
            good(sidecar=True),
            "workers have 2 containers and no spec.mainContainer: ranks start in the first, worker",
            id="which container",
        ),
        pytest.param(
            good(name="n" * 64),
            "the name has 64 characters, but the pods' labels allow 63",
            id="name of the job too long",
        ),
        pytest.param(
            good(name="n" * 54, annotations={MAX: "11"}),
            "worker names exceed 63 characters: their hostnames are cut and may be the same",
            id="names of workers too long",
        ),
        pytest.param(
            good(runPolicy=POLICY, annotations={names.RUN_POLICY: "false"}),
            "mpi-operator v0.2.3 ignores activeDeadlineSeconds of spec.runPolicy; annotate the job "
            f'{names.RUN_POLICY}: "true"',
            id="run policy without effect",
        ),
        pytest.param(good(runPolicy=POLICY, annotations={names.RUN_POLICY: "true"}), "", id="run policy asked for"),
        pytest.param(
            good(command=PLAIN, runPolicy=POLICY, annotations={names.RUN_POLICY: "false"}),
            "",
            id="plain with run policy",
        ),
        pytest.param(good(labels=TEAM, cleanPodPolicy=None), BY_CLEANING, id="queued workers that stay"),
        pytest.param(good(command=PLAIN, labels=TEAM, cleanPodPolicy=None), BY_CLEANING, id="those of a plain job"),
        pytest.param(good(labels=TEAM), "", id="queued workers that go"),
        pytest.param(good(labels=TEAM, cleanPodPolicy="All"), "", id="all go"),
        pytest.param(good(annotations={names.KUBEQUEUE_SUSPEND: "true"}), "", id="held by KubeQueue"),
        pytest.param(
            good(labels=TEAM, annotations={names.KUBEQUEUE_SUSPEND: "true"}),
            "scheduling.x-k8s.io/suspend holds a job with a queue of Kueue for ever: it gets no QueueUnit",
            id="in two queues",
        ),
    ],
)
def test_a_new_job_is_told_what_is_doubtful(job: Object, warning: str) -> None:
    assert said(job) == ((warning,) if warning else ())
    assert len(warning) <= 120


def test_a_handful_at_most() -> None:
    command = ["horovodrun", "-np", "99", "--max-np", "4", "--host-discovery-script", "/x.sh", "x"]
    assert len(said(good(name="n" * 64, sidecar=True, command=command, slotsPerWorker=9))) == lint.MOST


def edited(before: Object, *, role: str = "Worker", **container: Any) -> Object:
    """The job with these fields in a container of its template."""
    after = copy.deepcopy(before)
    after["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0] |= container
    return after


def reordered(before: Object) -> Object:
    after = copy.deepcopy(before)
    template = after["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    template["containers"] = [dict(reversed(container.items())) for container in template["containers"]]
    return after


STARTED = good(conditions=["Created", "Running"])
DOUBTFUL = good(command=PLAIN, annotations=ELASTIC)
QUEUED = good(labels=TEAM, conditions=["Created", "Running"])
THREE, ONE = (good(replicas=replicas, conditions=["Created"]) for replicas in (3, 1))
NEW_WORKERS = "Worker.template: existing workers keep the old template; only workers created later get the new one"
NEW_LAUNCHER = "Launcher.template: for the next launcher: suspend and resume the job (this restarts training)"
OLD_QUOTA = "the job keeps the quota that its old pods asked for; to ask again, suspend and resume it"
SHRINKS = "would scale 3→1: worker-2, worker-1 drain for at most 1m, then are deleted"
MAIN = "workers have 2 containers and no spec.mainContainer: ranks start in the first, worker"


@pytest.mark.parametrize(
    ("before", "after", "request_fields", "warnings"),
    [
        pytest.param(DOUBTFUL, good(command=PLAIN, annotations=ELASTIC, labels={"a": "b"}), {}, (), id="a label"),
        pytest.param(DOUBTFUL, good(sidecar=True, command=PLAIN, annotations=ELASTIC), {}, (MAIN,), id="another doubt"),
        pytest.param(STARTED, edited(STARTED, image="new"), {}, (NEW_WORKERS,), id="an image of workers"),
        pytest.param(STARTED, edited(STARTED, role="Launcher", image="new"), {}, (NEW_LAUNCHER,), id="of the launcher"),
        pytest.param(good(), edited(good(), image="new"), {}, (), id="an image before the operator saw the job"),
        pytest.param(
            good(conditions=["Created", "Succeeded"]), edited(STARTED, image="new"), {}, (), id="an image after its end"
        ),
        pytest.param(QUEUED, edited(QUEUED, image="new"), {}, (NEW_WORKERS, OLD_QUOTA), id="an image of a queued job"),
        pytest.param(STARTED, reordered(STARTED), {}, (), id="the order of keys"),
        pytest.param(
            QUEUED, good(labels=TEAM | {"a": "b"}, conditions=["Created"]), {}, (), id="a label of a queued job"
        ),
        pytest.param(THREE, ONE, {"dryRun": True}, (SHRINKS,), id="a size in a dry run"),
        pytest.param(THREE, ONE, {}, (), id="a size"),
    ],
)
def test_an_edit_is_told_only_what_it_brings_in(
    before: Object, after: Object, request_fields: dict[str, Any], warnings: tuple[str, ...]
) -> None:
    assert answers.verdict(after, before, **request_fields).warnings == warnings
    assert all(len(warning) <= 120 for warning in warnings)


def test_a_job_without_templates_is_judged_all_the_same() -> None:
    before, after = good(conditions=["Created"]), good(conditions=["Created"], annotations={MAX: "1"})
    before["spec"]["mpiReplicaSpecs"]["Worker"] = None
    assert answers.answer(after, before).outcome == "rejected"
