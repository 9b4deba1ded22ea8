"""What is read of a QueueUnit."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.observe import queue_units

OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "uid": "u", "controller": True}
CONSUMER = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "namespace": "n"}


def raw(name: str = "j-mpi-qu", *, spec: Any = None, status: Any = None, **metadata: Any) -> bytes:
    body = {"metadata": {"name": name, "namespace": "n", **metadata}, "spec": spec, "status": status}
    return msgspec.json.encode(body)


def test_a_unit_of_ours() -> None:
    found = queue_units.read(
        raw(
            spec={"consumerRef": CONSUMER, "queue": "team"},
            status={"phase": "Enqueued", "message": "x " * 1000},
            ownerReferences=[OWNER],
            annotations={"mpijob-elastic/workers": "3"},
        )
    )
    assert (found.metadata.job, found.metadata.job_uid, found.workers) == ("j", "u", 3)
    assert (found.phase, found.queue, len(found.said)) == ("Enqueued", "team", 300)


@pytest.mark.parametrize(
    ("given", "job"),
    [
        (raw("own", spec={"consumerRef": CONSUMER}), "j"),
        (raw(spec={"consumerRef": {**CONSUMER, "kind": "TFJob", "name": "t"}}), "j"),
        (raw("t-tf-qu", spec={"consumerRef": {**CONSUMER, "kind": "TFJob", "name": "t"}}), ""),
        (raw("own", spec={"consumerRef": {**CONSUMER, "apiVersion": "kubeflow.org/v1alpha1"}}), ""),
        (raw("own"), ""),
        (raw("own", annotations={"mpijob-elastic/workers": "many"}), ""),
    ],
)
def test_others_are_known_by_the_job_that_they_queue_or_whose_name_they_have(given: bytes, job: str) -> None:
    found = queue_units.read(given)
    assert (found.metadata.job, found.metadata.job_uid, found.workers, found.phase) == (job, "", 0, "")
