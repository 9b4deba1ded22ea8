"""What is read of the objects of autoscalers and of Kueue."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.autoscaling import autoscaler as autoscalers
from mpijob_elastic.capabilities.autoscaling.autoscaler import SPEC_DIGEST
from mpijob_elastic.capabilities.kueue import facts as workloads
from mpijob_elastic.capabilities.kueue.facts import Workload

OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "name": "j",
    "uid": "u",
    "controller": True,
}


def of(found: Any, **known: Any) -> bool:
    """Tell whether these attributes of what was found are so, `job` and `job_uid` in its metadata."""
    return {
        name: getattr(found.metadata if name in {"job", "job_uid"} else found, name)
        for name in known
    } == known


def hpa(kind: str = "MPIJob", version: str = "kubeflow.org/v1", **metadata: object) -> bytes:
    spec = {"scaleTargetRef": {"kind": kind, "name": "j", "apiVersion": version}, "maxReplicas": 8}
    return msgspec.json.encode(
        {"metadata": {"name": "h", "namespace": "n", **metadata}, "spec": spec}
    )


def test_an_hpa_belongs_to_the_job_that_it_scales_and_of_others_little_is_kept() -> None:
    labels = {"app.kubernetes.io/managed-by": "mpijob-elastic"}
    found = autoscalers.read(
        hpa(ownerReferences=[OWNER], labels=labels, annotations={SPEC_DIGEST: "d"})
    )
    assert of(found, job="j", job_uid="u", labelled=True, digest="d")
    assert of(autoscalers.read(hpa()), job="j", job_uid="", labelled=False, digest="")
    # An HPA uses only the group of apiVersion.
    assert of(autoscalers.read(hpa(version="kubeflow.org/v2beta1")), job="j")
    for scaled in (
        hpa("Deployment", "apps/v1"),
        hpa("MPIJob", "example.com/v1"),
        b'{"metadata": {"name": "x"}}',
    ):
        assert of(autoscalers.read(scaled), job="")


@pytest.mark.parametrize("read", [autoscalers.read, workloads.read])
def test_what_is_no_object_is_refused(read: Any) -> None:
    with pytest.raises(msgspec.DecodeError):
        read(b"[]")


SETS = [{"name": "launcher", "count": 1}, {"name": "workers", "count": 3}]
ASSIGNED = [
    {"name": "launcher", "flavors": {"cpu": "spot"}},
    {"name": "workers", "flavors": {"cpu": "spot", "nvidia.com/gpu": "a100"}},
]


def workload(*conditions: tuple[str, str, str], **status: object) -> Workload:
    said = [
        {"type": kind, "status": holds, "reason": "X", "message": message}
        for kind, holds, message in conditions
    ]
    metadata = {
        "name": "j-launcher",
        "uid": "w",
        "resourceVersion": "1",
        "ownerReferences": [OWNER],
    }
    spec = {"queueName": "team", "priority": 5, "podSets": SETS}
    body = {"metadata": metadata, "spec": spec, "status": {"conditions": said, **status}}
    return workloads.read(msgspec.json.encode(body))


ADMITTED, EVICTED = ("Admitted", "True", ""), ("Evicted", "True", "for b")
LACKS = ("QuotaReserved", "False", "insufficient")


@pytest.mark.parametrize(
    ("found", "known"),
    [
        pytest.param(
            workload(),
            {
                "queue": "team",
                "priority": 5,
                "workers": 3,
                "job": "j",
                "job_uid": "u",
                "granted": False,
                "said": "",
            },
            id="what it asks for and whose it is",
        ),
        pytest.param(
            workload(
                ("QuotaReserved", "True", "reserved"),
                ADMITTED,
                admission={"podSetAssignments": ASSIGNED},
            ),
            {
                "granted": True,
                "flavors": {"launcher": ("spot",), "workers": ("a100", "spot")},
                "preempted": False,
            },
            id="it is granted with its flavors",
        ),
        pytest.param(workload(LACKS), {"said": "insufficient"}, id="while it waits Kueue says why"),
        pytest.param(
            workload(EVICTED, ADMITTED, ("QuotaReserved", "True", "")),
            {"preempted": True, "granted": False, "said": "for b"},
            id="it is preempted",
        ),
        pytest.param(
            workload(EVICTED, ("Admitted", "False", ""), LACKS),
            {"preempted": False, "granted": False, "said": "insufficient"},
            id="until its reservation is cleared",
        ),
        pytest.param(
            workloads.read(b'{"metadata": {"name": "x"}}'), {"workers": 0}, id="without a spec"
        ),
        pytest.param(
            workloads.read(b'{"metadata": {"name": "x"}, "spec": {}, "status": {"admission": {}}}'),
            {"flavors": {}},
            id="an empty admission",
        ),
        pytest.param(
            workloads.read(
                b'{"metadata": {"name": "a-launcher"}, "status": {"clusterName": "east"}}'
            ),
            {"job": "a", "job_uid": "", "cluster": "east"},
            id="a copy of MultiKueue has no owner yet and is known by its name",
        ),
    ],
)
def test_a_workload(found: Workload, known: dict[str, Any]) -> None:
    assert of(found, **known)
