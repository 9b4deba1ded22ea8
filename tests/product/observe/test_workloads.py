"""What is read of a Workload."""

import msgspec
import pytest

from mpijob_elastic.observe import workloads

OWNER = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "uid": "u", "controller": True}
SETS = [{"name": "launcher", "count": 1}, {"name": "workers", "count": 3}]
ASSIGNED = [
    {"name": "launcher", "flavors": {"cpu": "spot"}},
    {"name": "workers", "flavors": {"cpu": "spot", "nvidia.com/gpu": "a100"}},
]


def raw(*conditions: tuple[str, str, str], **status: object) -> bytes:
    said = [{"type": kind, "status": holds, "reason": "X", "message": message} for kind, holds, message in conditions]
    metadata = {"name": "j-launcher", "uid": "w", "resourceVersion": "1", "ownerReferences": [OWNER]}
    spec = {"queueName": "team", "priority": 5, "podSets": SETS}
    return msgspec.json.encode({"metadata": metadata, "spec": spec, "status": {"conditions": said, **status}})


def test_it_says_what_it_asks_for_and_whose_it_is() -> None:
    found = workloads.read(raw())
    assert (found.queue, found.priority, found.workers) == ("team", 5, 3)
    assert (found.metadata.job, found.metadata.job_uid) == ("j", "u")
    assert (found.granted, found.preempted, found.said) == (False, False, "")


def test_an_empty_workload_can_be_read() -> None:
    assert workloads.read(b'{"metadata": {"name": "x"}}').workers == 0
    assert workloads.read(b'{"metadata": {"name": "x"}, "spec": {}, "status": {"admission": {}}}').flavors == {}
    with pytest.raises(msgspec.DecodeError):
        workloads.read(b"[]")


def test_it_is_granted_with_its_flavors() -> None:
    reserved, admitted = ("QuotaReserved", "True", "Quota reserved in ClusterQueue c"), ("Admitted", "True", "")
    found = workloads.read(raw(reserved, admitted, admission={"podSetAssignments": ASSIGNED}))
    assert found.granted
    assert found.flavors == {"launcher": ("spot",), "workers": ("a100", "spot")}


def test_while_it_waits_kueue_says_why() -> None:
    assert workloads.read(raw(("QuotaReserved", "False", "insufficient"))).said == "insufficient"


def test_it_is_preempted_until_its_reservation_is_cleared() -> None:
    evicted, admitted = ("Evicted", "True", "for b"), ("Admitted", "True", "")
    found = workloads.read(raw(evicted, admitted, ("QuotaReserved", "True", "")))
    assert (found.preempted, found.granted, found.said) == (True, False, "for b")
    cleared = workloads.read(raw(evicted, ("Admitted", "False", ""), ("QuotaReserved", "False", "insufficient")))
    assert (cleared.preempted, cleared.granted, cleared.said) == (False, False, "insufficient")


def test_a_copy_of_multikueue_has_no_owner_yet_and_is_known_by_its_name() -> None:
    found = workloads.read(b'{"metadata": {"name": "a-launcher"}, "status": {"clusterName": "east"}}')
    assert (found.metadata.job, found.metadata.job_uid, found.cluster) == ("a", "", "east")
