import msgspec
import pytest

from lab.operator.wire import Dependent, ReplicaStatus, Status


@pytest.mark.parametrize(
    ("status", "written"),
    [
        (Status(), {"conditions": None, "replicaStatuses": None}),
        (
            Status(conditions=(), replica_statuses={"Worker": ReplicaStatus(active=2)}, start_time="t"),
            {"conditions": [], "replicaStatuses": {"Worker": {"active": 2}}, "startTime": "t"},
        ),
        (Status(replica_statuses={"Worker": ReplicaStatus()}), {"conditions": None, "replicaStatuses": {"Worker": {}}}),
    ],
)
def test_a_status_is_written_as_go_writes_it(status: Status, written: object) -> None:
    assert msgspec.json.decode(msgspec.json.encode(status)) == written


def test_fields_that_the_type_does_not_know_are_lost() -> None:
    stored = b'{"replicaStatuses": {"Worker": {"active": 1, "selector": "a=b"}}, "observedGeneration": 3}'
    status = msgspec.json.decode(stored, type=Status)
    assert msgspec.json.decode(msgspec.json.encode(status)) == {
        "conditions": None,
        "replicaStatuses": {"Worker": {"active": 1}},
    }


def test_only_the_controlling_owner_counts() -> None:
    owner = '{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}'
    controlling = '{"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "j", "uid": "u", "controller": true}'
    body = f'{{"metadata": {{"name": "p", "resourceVersion": "7", "ownerReferences": [{owner}, {controlling}]}}}}'
    dependent = msgspec.json.decode(body, type=Dependent)
    assert dependent.owner
    assert (dependent.owner.uid, dependent.version) == ("u", 7)
