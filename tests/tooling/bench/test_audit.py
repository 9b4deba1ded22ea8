"""Reading the API server's audit log."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.audit import Tail, Write, read


def line(**more: Any) -> bytes:
    """As kube-apiserver v1.34 writes it at level Metadata, shortened."""
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/n/pods/train-worker-1",
        "verb": "delete",
        "user": {"username": "lab-admin", "groups": ["system:masters"]},
        "userAgent": "mpi-operator",
        "objectRef": {"resource": "pods", "namespace": "n", "name": "train-worker-1", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-11-21T08:30:56.525127Z",
        "stageTimestamp": "2026-11-21T08:30:56.527986Z",
        **more,
    }
    return json.dumps(event).encode()


def test_a_write_is_read_with_its_times() -> None:
    assert read([line()]) == [
        Write(
            received=1795249856.525127,
            at=1795249856.527986,
            verb="delete",
            resource="pods",
            subresource="",
            namespace="n",
            name="train-worker-1",
            user="lab-admin",
            agent="mpi-operator",
        )
    ]


def test_of_a_lease_it_is_read_who_holds_it_and_with_which_token() -> None:
    user = {"username": "a", "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"], "other": ["x"]}}
    held, released = (
        line(user=user, objectRef={"resource": "leases"}, requestObject={"spec": {"holderIdentity": holder}})
        for holder in ("h", "")
    )
    assert [(write.credential, write.holder) for write in read([held, released, line()])] == [
        ("JTI=1", "h"),
        ("JTI=1", ""),
        ("", None),
    ]


def test_of_a_deletion_it_is_read_which_pod_was_meant() -> None:
    options = {"kind": "DeleteOptions", "gracePeriodSeconds": 1, "preconditions": {"uid": "u", "resourceVersion": "7"}}
    assert [write.uid for write in read([line(requestObject=options), line()])] == ["u", ""]


@pytest.mark.parametrize(
    "more",
    [
        {"verb": "get"},
        {"responseStatus": {"code": 409}},
        {"requestURI": "/api/v1/namespaces/n/pods?dryRun=All", "verb": "create"},
    ],
    ids=["read", "refused", "dry run"],
)
def test_what_changed_nothing_is_left_out(more: dict[str, Any]) -> None:
    assert read([line(**more)]) == []


def test_a_tail_gives_what_is_logged_after_it_began(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(line() + b"\n")
    tail = Tail(log)
    assert tail.writes() == []
    whole = line(verb="create") + b"\n"
    with log.open("ab") as file:
        file.write(whole[:40])
        file.flush()
        assert tail.writes() == []
        file.write(whole[40:])
    assert [write.verb for write in tail.writes()] == ["create"]
    assert [write.verb for write in tail.writes()] == ["create"]
