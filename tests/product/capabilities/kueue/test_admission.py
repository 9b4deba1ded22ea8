"""The LocalQueue `default`: which new MPIJobs get it, and which edits may leave it."""

from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from lab.operator.objects import Object, mpi_job
from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.interface import Lookup, ReviewContext
from mpijob_elastic.admission.review import Answer
from mpijob_elastic.capabilities.kueue.admission import QUEUE_FIELD, WATCHED, LocalQueue
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, LOCAL_QUEUES, MULTIKUEUE, PREBUILT
from mpijob_elastic.kube.meta import Identity, KubeObject
from mpijob_elastic.kube.resources import Resource
from tests.product.webhook.answers import NOTHING, running, verdict
from tests.product.webhook.objects import body
from webhook.rules import handlers

DEFAULT = {LABEL_QUEUE: "default"}


class Seen(Lookup):
    """The LocalQueues `default` that the webhook has seen, by namespace."""

    def __init__(self, *namespaces: str) -> None:
        self.namespaces = namespaces

    def named(self, resource: Resource, name: str, namespace: str = "") -> KubeObject | None:
        assert (resource, name) == (LOCAL_QUEUES, "default")
        if namespace not in self.namespaces:
            return None
        return LocalQueue(metadata=Identity(name=name, namespace=namespace))


def context(lookup: Lookup) -> ReviewContext:
    return replace(NOTHING, lookup=lookup)


HAS, HAS_NOT, UNKNOWN = (context(lookup) for lookup in (Seen("default"), Seen("other"), Lookup()))


def answered(job: Object, seen: ReviewContext = HAS) -> Answer:
    """The answer of /default-queue on a new job."""
    return handlers.answer(review.parse(body(job)), handlers.queueing(seen))


def labels(job: Object, seen: ReviewContext = HAS) -> Object | None:
    """The labels of a new job as it is stored."""
    answer = answered(job, seen)
    assert answer.verdict.allowed
    assert not answer.verdict.warnings
    stored: Object = jsonpatch.apply_patch(job, answer.verdict.patch)
    assert not answered(stored, seen).verdict.patch, "a second call changes nothing"
    found: Object | None = stored["metadata"].get("labels")
    return found


def labelled(job: Object, **found: str) -> Object:
    return {**job, "metadata": {**job["metadata"], "labels": found}}


def owned(api_version: str, kind: str, *, controller: bool = True) -> Object:
    """A job that another object has made."""
    owner = {"apiVersion": api_version, "kind": kind, "name": "whole", "uid": "1"}
    metadata = {"ownerReferences": [owner | {"controller": controller}]}
    job = mpi_job()
    return {**job, "metadata": {**job["metadata"], **metadata}}


def placed(role: str) -> Object:
    """A job with a template that names a node."""
    job = mpi_job()
    job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["nodeName"] = "gpu-7"
    return job


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, DEFAULT, id="no labels"),
        pytest.param({}, DEFAULT, id="empty labels"),
        pytest.param({"team": "vision"}, {"team": "vision"} | DEFAULT, id="another label"),
        pytest.param({LABEL_QUEUE: ""}, DEFAULT, id="an empty queue, which names none"),
        pytest.param({LABEL_QUEUE: "team"}, {LABEL_QUEUE: "team"}, id="a queue"),
    ],
)
def test_a_new_job_that_names_no_queue_gets_the_default(
    before: Object | None, after: Object
) -> None:
    job = mpi_job()
    job["metadata"].pop("labels", None)
    assert labels(job if before is None else labelled(job, **before)) == after


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpi_job(command=["mpirun"]), id="a plain job"),
        pytest.param(mpi_job(annotations={names.ENABLED: "false"}), id="one that is not elastic"),
        pytest.param(mpi_job(annotations={names.SUSPEND: "true"}), id="a suspended job"),
        pytest.param(mpi_job(annotations={PREBUILT: "sent"}), id="with a Workload of MultiKueue"),
        pytest.param(
            owned("kubeflow.org/v1beta1", "Trial"), id="a part of what Kueue leaves alone"
        ),
        pytest.param(
            owned("batch/v1", "Job", controller=False), id="an owner for the deletion alone"
        ),
    ],
)
def test_so_does_each_job_that_can_wait_for_quota(job: Object) -> None:
    """Kueue asks neither if a job is suspended nor if it has a Workload already."""
    assert labels(labelled(job)) == DEFAULT


def test_a_job_for_another_cluster_gets_it_too() -> None:
    job = labelled(mpi_job())
    job["spec"]["managedBy"] = MULTIKUEUE
    assert labels(job) == DEFAULT


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(owned("workload.codeflare.dev/v1beta2", "AppWrapper"), id="of an AppWrapper"),
        pytest.param(owned("batch/v1", "Job"), id="of a Job"),
        pytest.param(owned("v1", "Pod"), id="of a pod"),
        pytest.param(placed("Launcher"), id="its launcher names a node"),
        pytest.param(placed("Worker"), id="its workers name a node"),
        pytest.param(mpi_job(replicas=3, annotations={names.PARKED: "1"}), id="it parks workers"),
    ],
)
def test_a_job_gets_none_whose_owner_waits_or_that_no_queue_could_hold(job: Object) -> None:
    """The quota would be asked for twice, or the webhook would refuse the job because of our label."""
    assert labels(labelled(job)) == {}


@pytest.mark.parametrize("seen", [HAS_NOT, UNKNOWN], ids=["no such queue", "nobody knows"])
def test_without_a_default_queue_nothing_is_added(seen: ReviewContext) -> None:
    assert labels(labelled(mpi_job()), seen) == {}


def test_an_unreadable_job_gets_none() -> None:
    job = mpi_job()
    job["metadata"]["labels"] = {"team": 7}
    answer = answered(job)
    assert answer.outcome == "unreadable"
    assert not answer.verdict.patch


def test_the_other_paths_add_no_queue() -> None:
    request = review.parse(body(labelled(mpi_job())))
    assert not handlers.answer(request, handlers.mutating(HAS)).verdict.patch
    update = review.parse(body(labelled(running()), old=labelled(running())))
    assert not handlers.answer(update, handlers.queueing(HAS)).verdict.patch


def edited(seen: ReviewContext, before: Object, after: Object, **facts: Any) -> Any:
    """The verdict on an edit of the labels."""
    return verdict(
        labelled(running(**facts), **after), labelled(running(**facts), **before), context=seen
    )


@pytest.mark.parametrize("seen", [HAS, HAS_NOT, UNKNOWN], ids=["default", "none", "unknown"])
@pytest.mark.parametrize("after", [{}, {LABEL_QUEUE: ""}, {"team": "vision"}])
def test_a_job_may_leave_its_queue_and_is_warned(seen: ReviewContext, after: Object) -> None:
    """As `kubectl replace` does with a manifest that has no label."""
    told = edited(seen, DEFAULT, after)
    assert not told.refusals
    assert [warning for warning in told.warnings if warning.startswith(QUEUE_FIELD)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {}, id="a job that is older than the LocalQueue"),
        pytest.param({}, {LABEL_QUEUE: "team"}, id="into a queue"),
        pytest.param(DEFAULT, {LABEL_QUEUE: "team"}, id="into another queue"),
        pytest.param(DEFAULT, DEFAULT, id="the same queue"),
    ],
)
def test_other_edits_are_allowed(before: Object, after: Object) -> None:
    assert not edited(HAS, before, after).refusals


def test_only_the_name_of_a_local_queue_is_read() -> None:
    raw = (
        b'{"metadata": {"name": "default", "namespace": "team", "labels": {"a": "b"}}, "spec": {}}'
    )
    assert WATCHED.read(raw).metadata == Identity(name="default", namespace="team")
