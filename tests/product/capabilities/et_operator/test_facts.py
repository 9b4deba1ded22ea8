"""ScaleIns and ScaleOuts as they are stored."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.capabilities.et_operator.facts import (
    READ,
    SCALE_INS,
    SCALE_OUTS,
    SCALING,
    TIMEOUT,
    ScaleRequest,
)
from mpijob_elastic.kube.resources import Resource


def read(resource: Resource, *, owner: str = "", **parts: Any) -> ScaleRequest:
    owners = (
        [{"apiVersion": owner, "kind": "MPIJob", "name": "j", "uid": "u", "controller": True}]
        if owner
        else []
    )
    metadata = {
        "name": "x",
        "namespace": "n",
        "creationTimestamp": "1970-01-01T00:00:09Z",
        "ownerReferences": owners,
    }
    return READ[resource](msgspec.json.encode({"metadata": metadata, **parts}))


def test_each_is_read_with_its_defaults() -> None:
    selector = {"name": "train"}
    found = read(
        SCALE_INS, spec={"selector": selector, "toDelete": {"podNames": ["a"]}, "script": "x"}
    )
    assert (found.metadata.job, found.names, found.count, found.script, found.grows) == (
        "train",
        ("a",),
        0,
        True,
        False,
    )
    found = read(SCALE_OUTS, spec={"selector": selector, "toAdd": {"count": 2}, "timeout": 300})
    assert (found.count, found.timeout, found.grows, found.created_at) == (2, 300, True, 9.0)
    assert read(SCALE_OUTS, spec={}).timeout == TIMEOUT


def test_its_status_tells_since_when_it_scales() -> None:
    condition = {"type": SCALING, "status": "True", "lastTransitionTime": "1970-01-01T00:01:00Z"}
    found = read(
        SCALE_OUTS, status={"phase": SCALING, "addPods": ["a", "b"], "conditions": [condition]}
    )
    assert (found.phase, found.pods, found.started_at, found.is_open) == (
        SCALING,
        ("a", "b"),
        60.0,
        True,
    )


@pytest.mark.parametrize(
    ("owner", "job"), [("", "train"), ("kubeflow.org/v1", "train"), ("kai.alibabacloud.com/v1", "")]
)
def test_what_another_kind_controls_is_about_no_job_of_ours(owner: str, job: str) -> None:
    assert read(SCALE_INS, owner=owner, spec={"selector": {"name": "train"}}).metadata.job == job
