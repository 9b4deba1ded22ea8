"""A new job that belongs to another program's queue gets no queue of Kueue."""

from dataclasses import replace

import pytest

from lab.operator.objects import Object, mpi_job
from mpijob_elastic.admission import review
from mpijob_elastic.admission.interface import Lookup
from mpijob_elastic.capabilities.kueue.admission import LocalQueue
from mpijob_elastic.kube.meta import Identity, KubeObject
from mpijob_elastic.kube.resources import Resource
from tests.product.webhook.answers import NOTHING
from tests.product.webhook.objects import body
from webhook.rules import handlers


class Everywhere(Lookup):
    """Each namespace has a LocalQueue `default`."""

    def named(self, _resource: Resource, name: str, namespace: str = "") -> KubeObject | None:
        return LocalQueue(metadata=Identity(name=name, namespace=namespace))


def is_queued(job: Object) -> bool:
    """Tell whether a new job gets the queue."""
    handling = handlers.queueing(replace(NOTHING, lookup=Everywhere()))
    return bool(handlers.answer(review.parse(body(job)), handling).verdict.patch)


def labelled(**found: str) -> Object:
    job = mpi_job()
    return {**job, "metadata": {**job["metadata"], "labels": found}}


def template(role: str = "Worker", *, scheduler: str = "", **metadata: Object) -> Object:
    """A job with this in one template."""
    job = mpi_job()
    made = job["spec"]["mpiReplicaSpecs"][role]["template"]
    made["metadata"] = metadata
    if scheduler:
        made["spec"]["schedulerName"] = scheduler
    return job


VOLCANO = "scheduling.volcano.sh/queue-name"
KAI = "kai.scheduler/queue"


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpi_job(annotations={"scheduling.x-k8s.io/suspend": "true"}), id="KubeQueue"),
        pytest.param(
            mpi_job(annotations={"kube-queue/queue-name": "team"}), id="KubeQueue's queue"
        ),
        pytest.param(mpi_job(annotations={"koord-queue/queue-name": "team"}), id="koord-queue"),
        pytest.param(
            labelled(**{"quota.scheduling.koordinator.sh/name": "team"}), id="Koordinator's quota"
        ),
        pytest.param(mpi_job(annotations={VOLCANO: "team"}), id="a queue of Volcano"),
        pytest.param(
            template(annotations={VOLCANO: "team"}), id="a queue of Volcano in a template"
        ),
        pytest.param(labelled(**{KAI: "team"}), id="a queue of KAI"),
        pytest.param(template(labels={KAI: "team"}), id="a queue of KAI in a template"),
        pytest.param(template("Launcher", scheduler="kai-scheduler"), id="KAI"),
    ],
)
def test_a_job_of_another_queue_stays_there(job: Object) -> None:
    assert not is_queued(job)


def test_a_job_that_is_too_large_for_a_queue_is_left_alone() -> None:
    """In a queue it would be refused, for a label that its user never gave."""
    many = {f"example.com/label-{number}": "x" * 20 for number in range(1_500)}
    assert not is_queued(template(labels=many))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(mpi_job(), id="a job"),
        pytest.param(mpi_job(annotations={"mpijob-elastic/gang": "volcano"}), id="a gang alone"),
        pytest.param(template(scheduler="volcano"), id="a scheduler alone"),
        pytest.param(
            mpi_job(annotations={"scheduling.x-k8s.io/suspend": "false"}), id="KubeQueue let it go"
        ),
        pytest.param(mpi_job(annotations={VOLCANO: ""}), id="a queue without a name"),
    ],
)
def test_a_job_that_names_no_queue_gets_the_default(job: Object) -> None:
    assert is_queued(job)
