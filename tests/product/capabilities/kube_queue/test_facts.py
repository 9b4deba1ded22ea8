"""What is read of QueueUnits."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.kube_queue import facts
from mpijob_elastic.capabilities.kube_queue.facts import QueueUnit

OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "name": "j",
    "uid": "u",
    "controller": True,
}
POD = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
CONSUMER = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "namespace": "n"}


def unit(name: str = "j-mpi-qu", *, spec: Any = None, status: Any = None, **metadata: Any) -> bytes:
    body = {
        "metadata": {"name": name, "namespace": "n", **metadata},
        "spec": spec,
        "status": status,
    }
    return msgspec.json.encode(body)


def whose(found: QueueUnit) -> tuple[str, str, int, str]:
    return found.metadata.job, found.metadata.job_uid, found.workers, found.phase


def test_a_unit_of_ours() -> None:
    found = facts.read(
        unit(
            spec={"consumerRef": CONSUMER, "queue": "team"},
            status={"phase": "Enqueued", "message": "x " * 1000},
            ownerReferences=[OWNER, *({**POD, "uid": f"p{number}"} for number in range(9))],
            annotations={"mpijob-elastic/workers": "3"},
        )
    )
    assert whose(found) == ("j", "u", 3, "Enqueued")
    assert (found.queue, found.pods) == ("team", ("p0", "p1", "p2", "p3"))
    assert len(found.said) == 300


TF_JOB = {"consumerRef": {**CONSUMER, "kind": "TFJob", "name": "t"}}


@pytest.mark.parametrize(
    ("given", "job"),
    [
        (unit("own", spec={"consumerRef": CONSUMER}), "j"),
        (unit(spec=TF_JOB), "j"),
        (unit("t-tf-qu", spec=TF_JOB), ""),
        (
            unit("own", spec={"consumerRef": {**CONSUMER, "apiVersion": "kubeflow.org/v1alpha1"}}),
            "",
        ),
        (unit("own"), ""),
        (unit("own", annotations={"mpijob-elastic/workers": "many"}), ""),
    ],
)
def test_other_units_are_known_by_the_job_that_they_queue_or_whose_name_they_have(
    given: bytes, job: str
) -> None:
    assert whose(facts.read(given)) == (job, "", 0, "")
