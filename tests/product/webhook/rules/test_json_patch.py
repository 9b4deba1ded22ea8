"""No patch but of our fields leaves this program."""

import pytest

from webhook.rules import json_patch
from webhook.rules.json_patch import ForeignField


def test_an_addition_to_our_fields() -> None:
    script = json_patch.adding(at="/data/discover_hosts.sh", value="#!/bin/sh\n")
    assert script == ({"op": "add", "path": "/data/discover_hosts.sh", "value": "#!/bin/sh\n"},)
    label = json_patch.labelling("a.b/c", "d")
    assert label == ({"op": "add", "path": "/metadata/labels/a.b~1c", "value": "d"},)
    deadline = json_patch.adding(at="/spec/activeDeadlineSeconds", value=60)
    assert deadline == ({"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 60},)
    assert json_patch.annotating({"a": "b"}, {"volcano.sh/task-spec": "worker"}) == (
        {"op": "add", "path": "/metadata/annotations/volcano.sh~1task-spec", "value": "worker"},
    )
    profile = json_patch.adding(at="/spec/initContainers/10/securityContext/seccompProfile", value={"type": "x"})
    path = "/spec/initContainers/10/securityContext/seccompProfile"
    assert profile == ({"op": "add", "path": path, "value": {"type": "x"}},)
    item = json_patch.adding(at="/spec/volumes/10/configMap/items/2", value={"key": "x"})
    assert item == ({"op": "add", "path": "/spec/volumes/10/configMap/items/2", "value": {"key": "x"}},)


def test_what_a_launcher_waits_for_and_its_restarts_are_replaced_and_nothing_else() -> None:
    policy = json_patch.replacing(at="/spec/restartPolicy", value="OnFailure")
    assert policy == ({"op": "replace", "path": "/spec/restartPolicy", "value": "OnFailure"},)
    hosts = json_patch.replacing(at="/data/hostfile", value="a slots=1\n")
    assert hosts == ({"op": "replace", "path": "/data/hostfile", "value": "a slots=1\n"},)
    for at in ("", "/data", "/data/discover_hosts.sh", "/data/kubexec.sh", "/data/hostfile/x", "/binaryData/hostfile"):
        with pytest.raises(ForeignField):
            json_patch.replacing(at=at, value="x")


@pytest.mark.parametrize(
    "at",
    [
        "",
        "/data",
        "/data/hostfile",
        "/binaryData/discover_hosts.sh",
        "/data/discover_hosts.sh/x",
        "/data/discover_hosts_sh",
        "/spec/containers/0",
        "/spec/containers/securityContext",
        "/spec/containers/0/securityContext/runAsUser",
        "/spec/securityContext/runAsNonRoot",
        "/spec/securityContext/seccompProfile/type",
        "/spec/ephemeralContainers/0/securityContext",
        "/spec/volumes/0",
        "/spec/volumes/0/secret/items/0",
        "/spec/volumes/0/configMap/name",
        "/spec/volumes/0/configMap/optional",
        "/spec/volumes/0/configMap/items/01",
        "/spec/volumes/0/configMap/items/-",
        "/spec/volumes/x/configMap/items/0",
        "/metadata/labels",
        "/metadata/labels/a~1b~1c",
        "/metadata/labels/a~0b",
        "/metadata/annotations/a",
        "/metadata/annotations/volcano.sh~1other",
        "/spec/nodeName",
        "/status",
        "/status/replicaStatuses/Worker",
        "/status/replicaStatuses/Launcher/selector",
        "/spec/volumes/0/configMap/items/0\n",
        "x/spec/volumes/0/configMap/items/0",
    ],
)
def test_anything_else_is_a_fault(at: str) -> None:
    with pytest.raises(ForeignField):
        json_patch.adding(at=at, value="x")
