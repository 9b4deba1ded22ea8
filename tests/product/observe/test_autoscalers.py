"""What is read of an HPA."""

import msgspec
import pytest

from mpijob_elastic.observe import autoscalers

OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "uid": "u", "controller": True}
LABELS = {"app.kubernetes.io/managed-by": "mpijob-elastic"}


def raw(kind: str = "MPIJob", version: str = "kubeflow.org/v1", **metadata: object) -> bytes:
    spec = {"scaleTargetRef": {"kind": kind, "name": "j", "apiVersion": version}, "maxReplicas": 8}
    return msgspec.json.encode({"metadata": {"name": "h", "namespace": "n", **metadata}, "spec": spec})


def test_it_belongs_to_the_job_that_it_scales() -> None:
    found = autoscalers.read(raw(labels=LABELS, ownerReferences=[OWNER]))
    assert (found.metadata.job, found.metadata.job_uid, found.labelled) == ("j", "u", True)
    assert found.spec["maxReplicas"] == 8
    # An HPA uses only the group of apiVersion.
    assert autoscalers.read(raw(version="kubeflow.org/v2beta1")).metadata.job == "j"


def test_of_others_little_is_kept() -> None:
    found = autoscalers.read(raw())
    assert (found.metadata.job, found.metadata.job_uid, found.labelled, found.spec) == ("j", "", False, {})
    for scaled in (raw("Deployment", "apps/v1"), raw("MPIJob", "example.com/v1"), b'{"metadata": {"name": "x"}}'):
        assert autoscalers.read(scaled).metadata.job == ""
    with pytest.raises(msgspec.DecodeError):
        autoscalers.read(b"[]")
