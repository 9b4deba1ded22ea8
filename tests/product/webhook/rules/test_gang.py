"""The marks of a gang's pods, and what is refused of an MPIJob that asks for one."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic.model import job_facts, mpijob
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, launcher_pod, mpi_job
from webhook.rules import gang, mutate

VOLCANO = {"mpijob-elastic/gang": "volcano"}
LEAST = {"mpijob-elastic/min-replicas": "2"}
QUEUES = {"team": "Open", "new": "", "shut": "Closed", "ending": "Closing"}


def asking(**job: Any) -> Object:
    """A job of four that asks for a gang."""
    return mpi_job(**{"replicas": 4, "command": ELASTIC, "annotations": VOLCANO | LEAST, **job})


def patched(pod: Object, job: Object | None) -> Object:
    facts = job_facts.read(json.dumps(job).encode()) if job else None
    changed: Object = jsonpatch.apply_patch(pod, gang.marked(msgspec.convert(pod, mutate.Pod), facts))
    return changed


def marks(pod: Object) -> tuple[str, Any, str]:
    said = pod["metadata"]["annotations"]
    return said["volcano.sh/task-spec"], said["volcano.sh/preemptable"], pod["spec"]["schedulerName"]


def worker_pod(index: int) -> Object:
    return objects.worker(mpi_job(), index)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (launcher_pod(), ("launcher", "false", "volcano")),
        (worker_pod(0), ("worker", "false", "volcano")),
        (worker_pod(1), ("worker", "false", "volcano")),
        (worker_pod(2), ("worker", "true", "volcano")),
    ],
)
def test_workers_above_the_least_size_may_be_preempted_and_no_other_pod(pod: Object, expected: Any) -> None:
    changed = patched(pod, asking())
    assert marks(changed) == expected
    assert changed["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "train"
    assert patched(changed, asking()) == changed


@pytest.mark.parametrize("job", [asking(annotations=VOLCANO), asking(command=PLAIN)])
def test_without_a_least_size_no_worker_may_be_preempted(job: Object) -> None:
    assert marks(patched(worker_pod(3), job)) == ("worker", "false", "volcano")


def test_what_the_template_says_stays() -> None:
    pod = worker_pod(3)
    pod["metadata"]["annotations"] = {"volcano.sh/preemptable": "false", "mine": "yes"}
    pod["spec"]["schedulerName"] = "volcano-gpu"
    changed = patched(pod, asking())
    assert marks(changed) == ("worker", "false", "volcano-gpu")
    assert changed["metadata"]["annotations"]["mine"] == "yes"
    pod["spec"]["schedulerName"] = "default-scheduler"  # as the API server writes it for none
    assert marks(patched(pod, asking())) == ("worker", "false", "volcano")


def test_coscheduling_knows_pods_by_a_label_and_its_name_is_the_users_to_say() -> None:
    job = asking(annotations={"mpijob-elastic/gang": "coscheduling"})
    pod = worker_pod(3)
    changed = patched(pod, job)
    labels = {**pod["metadata"]["labels"], "scheduling.x-k8s.io/pod-group": "train"}
    assert changed == {**pod, "metadata": {**pod["metadata"], "labels": labels}}
    decoded = mpijob.decode(json.dumps(job).encode())
    [doubt] = gang.warnings(decoded, job_facts.of(decoded), queue=QUEUES.get)
    assert "only if the default scheduler runs Coscheduling" in doubt


KOORDINATOR = {"mpijob-elastic/gang": "koordinator"}
QUOTA = "quota.scheduling.koordinator.sh/name"
PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"


@pytest.mark.parametrize(
    ("pod", "kept"), [(launcher_pod(), "false"), (worker_pod(1), "false"), (worker_pod(2), "true")]
)
def test_koordinator_knows_pods_by_a_label_and_its_quota_may_take_the_upper_workers(pod: Object, kept: str) -> None:
    job = asking(annotations=KOORDINATOR | LEAST)
    changed = patched(pod, job)
    group = {"pod-group.scheduling.sigs.k8s.io": "train"}
    assert changed["metadata"]["labels"] == {**pod["metadata"]["labels"], **group}
    assert changed["metadata"]["annotations"]["gang.scheduling.koordinator.sh/name"] == "train"
    assert changed["spec"]["schedulerName"] == "koord-scheduler"
    job["metadata"]["labels"] = {QUOTA: "team"}
    labels = patched(pod, job)["metadata"]["labels"]
    assert labels == {**pod["metadata"]["labels"], **group, QUOTA: "team", PREEMPTIBLE: kept}


def test_a_template_decides_whether_koordinator_may_take_its_pods() -> None:
    job = asking(annotations=KOORDINATOR | LEAST)
    job["metadata"]["labels"] = {QUOTA: "team"}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": {PREEMPTIBLE: "false"}}
    assert patched(worker_pod(3), job)["metadata"]["labels"][PREEMPTIBLE] == "false"


def numbered() -> Object:
    pod = worker_pod(0)
    pod["metadata"]["labels"]["replica-index"] = "0"
    return pod


def renamed() -> Object:
    pod = worker_pod(0)
    pod["metadata"]["name"] = "train-other-0"
    return pod


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        (worker_pod(0), mpi_job(command=ELASTIC)),
        (worker_pod(0), None),
        (worker_pod(0), {**asking(), "metadata": {**asking()["metadata"], "uid": "another"}}),
        (numbered(), asking()),
        (renamed(), asking()),
    ],
)
def test_other_pods_get_no_marks(pod: Object, job: Object | None) -> None:
    assert patched(pod, job) == pod


def refused(job: Object, old: Object | None = None) -> list[str]:
    versions = [mpijob.decode(json.dumps(one).encode()) for one in (job, old) if one]
    new, before = job_facts.of(versions[0]), next(map(job_facts.of, versions[1:]), None)
    return [str(found) for found in gang.refusals(versions[0], new, before, queue=QUEUES.get)]


KUBERNETES = {"mpijob-elastic/gang": "kubernetes"}


def test_kubernetes_knows_pods_by_a_field_of_their_spec() -> None:
    pod = worker_pod(3)
    changed = patched(pod, asking(annotations=KUBERNETES))
    assert changed == {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "train"}}}
    assert patched(changed, asking(annotations=KUBERNETES)) == changed


def test_two_schedulers_in_a_gang_of_kubernetes_are_a_doubt() -> None:
    job = asking(annotations=KUBERNETES)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "mine"
    decoded = mpijob.decode(json.dumps(job).encode())
    [doubt] = gang.warnings(decoded, job_facts.of(decoded), queue=QUEUES.get)
    assert "starts no pod of the gang" in doubt


def in_queue(queue: str) -> Object:
    return asking(annotations={**VOLCANO, "scheduling.volcano.sh/queue-name": queue})


@pytest.mark.parametrize("queue", ["team", "new"])
def test_a_queue_that_takes_jobs_is_no_mistake(queue: str) -> None:
    assert refused(in_queue(queue)) == []


@pytest.mark.parametrize(
    ("queue", "why"), [("typo", "there is no queue typo"), ("shut", "shut is Closed"), ("ending", "ending is Closing")]
)
def test_a_queue_that_takes_no_job_is_refused_once(queue: str, why: str) -> None:
    [said] = refused(in_queue(queue))
    assert said.startswith("metadata.annotations[scheduling.volcano.sh/queue-name]: ")
    assert why in said
    assert refused(in_queue(queue), in_queue(queue)) == []
    assert refused(in_queue(queue), in_queue("team")) == [said]


def test_queues_that_cannot_be_read_are_a_doubt() -> None:
    def unknown(_name: str) -> str | None:
        raise LookupError

    job = mpijob.decode(json.dumps(in_queue("team")).encode())
    facts = job_facts.of(job)
    assert list(gang.refusals(job, facts, None, queue=unknown)) == []
    [doubt] = gang.warnings(job, facts, queue=unknown)
    assert "queue team could not be checked" in doubt


@pytest.mark.parametrize(
    ("scheduler", "kind", "mark", "value"),
    [
        ("volcano", "labels", "scheduling.x-k8s.io/pod-group", "g"),
        ("volcano", "annotations", "gang.scheduling.koordinator.sh/name", "g"),
        ("volcano", "annotations", "scheduling.k8s.io/group-name", "other"),
        ("coscheduling", "annotations", "scheduling.k8s.io/group-name", "train"),
        ("coscheduling", "labels", "scheduling.x-k8s.io/pod-group", "other"),
        ("coscheduling", "labels", "pod-group.scheduling.sigs.k8s.io", "train"),
        ("koordinator", "labels", "pod-group.scheduling.sigs.k8s.io", "other"),
        ("koordinator", "annotations", "scheduling.k8s.io/group-name", "train"),
        ("kubernetes", "annotations", "scheduling.k8s.io/group-name", "train"),
    ],
)
def test_marks_of_two_schedulers_are_refused(scheduler: str, kind: str, mark: str, value: str) -> None:
    job = asking(annotations={"mpijob-elastic/gang": scheduler})
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {kind: {mark: value}}
    [said] = refused(job)
    assert f"{scheduler} and {mark} in a template" in said
    job["metadata"]["annotations"] = {}
    assert refused(job) == []


def test_the_gang_of_a_started_job_stays() -> None:
    started = asking(conditions=["Created"])
    [said] = refused(asking(annotations={}, conditions=["Created"]), started)
    assert "cannot change once the job has started" in said
    assert refused(asking(annotations=VOLCANO, conditions=["Created"]), started) == []
    assert refused(asking(annotations={}), asking()) == []


def test_volcano_without_a_gang_is_a_doubt() -> None:
    job = mpi_job(command=ELASTIC)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "volcano"
    decoded = mpijob.decode(json.dumps(job).encode())
    [doubt] = gang.warnings(decoded, job_facts.of(decoded), queue=QUEUES.get)
    assert "each pod is a gang of its own" in doubt
    assert list(gang.warnings(decoded, job_facts.read(json.dumps(asking()).encode()), queue=QUEUES.get)) == []


def test_a_queue_is_read_with_or_without_a_state() -> None:
    read = [
        gang.read_queue(json.dumps({"metadata": {"name": "q"}, **more}).encode()).state
        for more in ({}, {"status": {"state": "Open"}})
    ]
    assert read == ["", "Open"]
