"""What is kept of a tenant's objects between two looks is bounded, whatever they hold."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import size
from mpijob_elastic.capabilities import live
from mpijob_elastic.kube.meta import KubeObject, TooLarge
from mpijob_elastic.model import bounds
from mpijob_elastic.observe import facts_config, facts_pod
from tests.counted import calls

LONG = "x" * 2**20
LAUNCHER = {names.LABEL_JOB_ROLE: names.ROLE_LAUNCHER}
MANY = {f"{names.PREFIX}{index}": "x" * 60 for index in range(2_000)}
OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "MPIJob",
    "name": "train",
    "uid": "u",
    "controller": True,
}


def raw(name: str = "train", **parts: Any) -> bytes:
    metadata = {
        "name": name,
        "namespace": "n",
        "uid": "u",
        "ownerReferences": [OWNER],
        **parts.pop("metadata", {}),
    }
    return msgspec.json.encode({"metadata": metadata, **parts})


def templated(**metadata: Any) -> bytes:
    return raw(
        spec={"mpiReplicaSpecs": {"Worker": {"replicas": 1, "template": {"metadata": metadata}}}}
    )


def kept(facts: object) -> int:
    return len(msgspec.json.encode(facts, enc_hook=str))


@pytest.mark.parametrize(
    "hostile",
    [
        templated(labels={"a": LONG}),
        templated(labels=MANY),
        raw(spec={"mainContainer": LONG}),
        raw(spec={"cleanPodPolicy": LONG}),
        raw(spec={"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"schedulerName": LONG}}}}}),
    ],
    ids=["a label", "labels", "main container", "policy", "scheduler"],
)
def test_a_job_with_more_text_than_may_be_kept_is_not_read(hostile: bytes) -> None:
    with pytest.raises(TooLarge, match="49,152 bytes"):
        capabilities.read(hostile)


@pytest.mark.parametrize("character", ["x", "\x01", "\N{GRINNING FACE}"])
def test_notices_that_somebody_makes_longer_than_ours_are_cut(character: str) -> None:
    facts = capabilities.read(raw(metadata={"annotations": {names.STATUS: character * 2**16}}))
    assert 0 < kept(facts.notices) <= bounds.LONGEST_NOTICES
    assert bounds.notices(facts.notices) == facts.notices


@pytest.mark.parametrize(
    "hostile",
    [
        raw(
            metadata={"annotations": {names.DEFAULT_CONTAINER: LONG}}, spec={"containers": [{}, {}]}
        ),
        raw(spec={"nodeName": LONG}),
        raw(status={"phase": LONG}),
        raw(spec={"containers": [{"name": LONG}]}),
    ],
    ids=["default container", "node", "phase", "container"],
)
def test_a_pod_with_more_text_than_may_be_kept_is_not_read(hostile: bytes) -> None:
    with pytest.raises(TooLarge, match="8,192 bytes"):
        live.READ.pod(hostile)


@pytest.mark.parametrize(
    ("read", "hostile", "same", "own"),
    [
        (
            facts_config.read_config,
            {"data": {names.KEY_DISCOVER_HOSTS: LONG}},
            {"data": {names.KEY_KUBEXEC: LONG}, "metadata": {"annotations": {names.MEMORY: LONG}}},
            "train-config",
        ),
        (
            facts_config.read_role,
            {"rules": [{"resources": ["pods/exec"], "resourceNames": [LONG]}]},
            {"rules": [{"resources": ["pods/exec"], "resourceNames": ["x" * 60] * 10_000}]},
            "train-launcher",
        ),
    ],
    ids=["ConfigMap", "Role"],
)
def test_of_other_objects_that_a_job_owns_only_the_identity_is_kept(
    read: Callable[[bytes], KubeObject], hostile: dict[str, Any], same: dict[str, Any], own: str
) -> None:
    for parts in (hostile, same):
        assert kept(read(raw("another", **parts))) < 1_000
        assert kept(read(raw(own, **parts))) > 500_000, (
            "the one that the operator made is read whole"
        )


def test_of_a_quota_little_is_kept() -> None:
    many = {f"count/{index}.{'x' * 300}": "1" for index in range(2_000)}
    found = size.read_quota(raw("q", spec={"hard": many}, status={"hard": many, "used": many}))
    assert kept(found) < bounds.LARGEST_FACTS


def test_an_object_of_the_largest_size_that_may_be_kept_is_read() -> None:
    room = (
        bounds.LARGEST_FACTS
        - bounds.LONGEST_NOTICES
        - kept(capabilities.read(templated(labels={"a": ""})))
    )
    assert capabilities.read(templated(labels={"a": "x" * room})).pod_labels["worker"] == {
        "a": "x" * room
    }
    with pytest.raises(TooLarge):
        capabilities.read(templated(labels={"a": "x" * (room + 1)}))


def test_a_further_container_of_a_launcher_costs_few_calls() -> None:
    """A pod of 100 KiB may have 8,000, and is not kept after it was read."""

    def cost_of(count: int) -> int:
        found = facts_pod.decode(
            raw(metadata={"labels": LAUNCHER}, spec={"containers": [{"name": "a"}] * count})
        )
        with calls() as counted:
            facts_pod.of(found)
        return counted.total()

    assert cost_of(110) - cost_of(10) <= 100 * 10
