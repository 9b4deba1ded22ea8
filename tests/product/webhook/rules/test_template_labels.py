"""The labels of the templates, on the pods that the operator made without them."""

import json
from typing import Any

import jsonpatch
import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.model import job_facts
from tests.product.webhook.objects import ELASTIC, PLAIN, Object, launcher_pod, mpi_job, worker_pod
from webhook.rules import mutate, template_labels

LABELS = {"team": "vision", "sidecar.istio.io/inject": "false"}


def labelled(labels: Any, *, role: str = "Worker", **job: Any) -> Object:
    """A job with these labels in a template, elastic unless a command is given."""
    made = mpi_job(**{"command": ELASTIC, **job})
    made["spec"]["mpiReplicaSpecs"][role]["template"]["metadata"] = {"labels": labels}
    return made


def patched(pod: Object, job: Object | None) -> Object:
    facts = job_facts.read(json.dumps(job).encode()) if job else None
    patch = template_labels.missing(msgspec.convert(pod, mutate.Pod), facts)
    changed: Object = jsonpatch.apply_patch(pod, patch)
    return changed


@pytest.mark.parametrize(("pod", "role"), [(worker_pod(), "Worker"), (launcher_pod(), "Launcher")])
def test_a_pod_gets_the_labels_of_its_template_and_nothing_else(pod: Object, role: str) -> None:
    job = labelled(LABELS, role=role)
    changed = patched(pod, job)
    metadata = pod["metadata"]
    assert changed == {**pod, "metadata": {**metadata, "labels": {**metadata["labels"], **LABELS}}}
    assert patched(changed, job) == changed


def test_the_labels_of_the_other_template_are_not_taken() -> None:
    assert patched(worker_pod(), labelled(LABELS, role="Launcher")) == worker_pod()
    assert patched(launcher_pod(), labelled(LABELS)) == launcher_pod()


@pytest.mark.parametrize(
    "labels",
    [
        None,
        {},
        {"mpi-job-name": "another"},
        {"training.kubeflow.org/replica-type": "worker"},
        {"replica-index": "0"},
        {"kueue.x-k8s.io/queue-name": "team"},
        {"mpijob-elastic/enabled": "true"},
    ],
)
def test_what_others_read_as_their_own_is_left_out(labels: Any) -> None:
    assert patched(worker_pod(), labelled(labels)) == worker_pod()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("", "x"),
        ("a b", "x"),
        ("a/b/c", "x"),
        ("/a", "x"),
        ("Upper.Case/a", "x"),
        ("a" * 64, "x"),
        (f"{'a.' * 127}b/c", "x"),
        ("a~b", "x"),
        ("team\n", "x"),
        ("team", "x y"),
        ("team", "x" * 64),
        ("team", "-x"),
        ("team", "x\n"),
    ],
)
def test_a_label_that_the_api_server_would_refuse_refuses_no_pod(key: str, value: str) -> None:
    assert patched(worker_pod(), labelled({key: value})) == worker_pod()


@pytest.mark.parametrize(("key", "value"), [("a", ""), ("a.b-c/D_e.f", "x" * 63), ("a" * 63, "1"), ("team", None)])
def test_any_other_label_is_copied(key: str, value: str | None) -> None:
    assert patched(worker_pod(), labelled({key: value}))["metadata"]["labels"][key] == (value or "")


@pytest.mark.parametrize("command", [ELASTIC, PLAIN])
def test_a_job_gets_them_elastic_or_not_unless_it_says_that_it_is_not(command: list[str]) -> None:
    changed = patched(worker_pod(), labelled(LABELS, command=command))
    assert LABELS.items() <= changed["metadata"]["labels"].items()
    refuses = labelled(LABELS, command=command, annotations={names.ENABLED: "false"})
    assert patched(worker_pod(), refuses) == worker_pod()


def test_only_the_pods_of_the_job_itself_get_them() -> None:
    recreated = labelled(LABELS)
    recreated["metadata"]["uid"] = "of a later job of this name"
    for job in (recreated, None):
        assert patched(worker_pod(), job) == worker_pod()

    strange = worker_pod()
    strange["metadata"]["name"] = "train-worker-x"
    relabelled = worker_pod()
    relabelled["metadata"]["labels"]["mpi-job-role"] = "launcher"
    unowned = worker_pod()
    del unowned["metadata"]["ownerReferences"]
    named_otherwise = launcher_pod()
    named_otherwise["metadata"]["name"] = "train"
    assert patched(named_otherwise, labelled(LABELS, role="Launcher")) == named_otherwise
    for pod in (strange, relabelled, unowned):
        assert patched(pod, labelled(LABELS)) == pod
