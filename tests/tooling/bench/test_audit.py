"""Reading the API server's audit log."""

import json
from pathlib import Path
from typing import Any

from bench.audit import Tail, read


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
        "objectRef": {
            "resource": "pods",
            "namespace": "n",
            "name": "train-worker-1",
            "apiVersion": "v1",
        },
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2026-11-21T08:30:56.525127Z",
        "stageTimestamp": "2026-11-21T08:30:56.527986Z",
        **more,
    }
    return json.dumps(event).encode()


def test_a_write_is_read_with_its_times() -> None:
    [write] = read([line()])
    assert (write.received, write.at) == (1795249856.525127, 1795249856.527986)
    assert (write.verb, write.resource, write.subresource) == ("delete", "pods", "")
    assert (write.namespace, write.name) == ("n", "train-worker-1")
    assert (write.user, write.agent) == ("lab-admin", "mpi-operator")


def test_of_a_lease_it_is_read_who_holds_it_and_of_a_deletion_which_pod_was_meant() -> None:
    user = {
        "username": "a",
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"], "other": ["x"]},
    }
    held, released = (
        line(user=user, requestObject={"spec": {"holderIdentity": holder}}) for holder in ("h", "")
    )
    deleted = line(
        requestObject={
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u", "resourceVersion": "7"},
        }
    )
    assert [
        (write.credential, write.holder, write.uid)
        for write in read([held, released, deleted, line()])
    ] == [
        ("JTI=1", "h", ""),
        ("JTI=1", "", ""),
        ("", None, "u"),
        ("", None, ""),
    ]


def test_reads_refusals_and_dry_runs_are_left_out() -> None:
    dry_run = line(requestURI="/api/v1/namespaces/n/pods?dryRun=All", verb="create")
    assert read([line(verb="get"), line(responseStatus={"code": 409}), dry_run]) == []


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
