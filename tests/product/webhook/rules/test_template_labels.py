"""The labels of the templates, on the pods that the operator made without them."""

from typing import Any

import pytest

from mpijob_elastic import names
from tests.product.webhook.answers import patched
from tests.product.webhook.objects import PLAIN, Object, launcher_pod, mpi_job, worker_pod
from webhook.rules import template_labels

LABELS = {"team": "vision", "sidecar.istio.io/inject": "false"}
OFF = {names.ENABLED: "false"}


def labelled(labels: Any, *, role: str = "Worker", **job: Any) -> Object:
    """A job with these labels in a template."""
    made = mpi_job(**job)
    made["spec"]["mpiReplicaSpecs"][role]["template"]["metadata"] = {"labels": labels}
    return made


@pytest.mark.parametrize(
    ("pod", "job", "added"),
    [
        pytest.param(worker_pod(), labelled(LABELS), LABELS, id="a worker"),
        pytest.param(launcher_pod(), labelled(LABELS, role="Launcher"), LABELS, id="a launcher"),
        pytest.param(worker_pod(), labelled(LABELS, role="Launcher"), {}, id="not those of the launcher's template"),
        pytest.param(launcher_pod(), labelled(LABELS), {}, id="not those of the workers' template"),
        pytest.param(worker_pod(), labelled(LABELS, command=PLAIN), LABELS, id="elastic or not"),
        pytest.param(worker_pod(), labelled(LABELS, annotations=OFF), {}, id="unless the job says that it is not"),
        pytest.param(worker_pod(), labelled(LABELS, command=PLAIN, annotations=OFF), {}, id="nor a plain one then"),
        pytest.param(worker_pod(), labelled(None), {}, id="no labels"),
    ],
)
def test_a_pod_gets_the_labels_of_its_template_and_nothing_else(
    pod: Object, job: Object, added: dict[str, str]
) -> None:
    metadata = {**pod["metadata"], "labels": pod["metadata"]["labels"] | added}
    assert patched(template_labels.missing, pod, job) == {**pod, "metadata": metadata}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mpi-job-name", "another"),
        ("training.kubeflow.org/replica-type", "worker"),
        ("replica-index", "0"),
        ("kueue.x-k8s.io/queue-name", "team"),
        ("mpijob-elastic/enabled", "true"),
        # The API server would refuse the pod with any of these.
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
def test_what_others_read_as_their_own_and_what_is_no_label_is_left_out(key: str, value: str) -> None:
    assert patched(template_labels.missing, worker_pod(), labelled({key: value})) == worker_pod()


@pytest.mark.parametrize(("key", "value"), [("a", ""), ("a.b-c/D_e.f", "x" * 63), ("a" * 63, "1"), ("team", None)])
def test_any_other_label_is_copied(key: str, value: str | None) -> None:
    changed = patched(template_labels.missing, worker_pod(), labelled({key: value}))
    assert changed["metadata"]["labels"][key] == (value or "")
