"""The pretended nodes: large enough that nothing in a test waits for room.

Beside real nodes they have a taint of the same key and value as their label, so that pods go to a
real one unless they tolerate it; and kwok is told by the label which nodes are its own.
"""

from datetime import datetime
from typing import Any

KIND_LABEL = "lab.mpijob-elastic/node"
REAL = {KIND_LABEL: "real"}
PRETENDED = {KIND_LABEL: "pretended"}
RESOURCES = {
    "cpu": "10000",
    "memory": "100Ti",
    "ephemeral-storage": "1000Ti",  # the operator's init container asks for 5Gi
    "pods": "10000",
    "nvidia.com/gpu": "10000",
}


def node(
    index: int, *, kubernetes_version: str, kubelet_port: int | None, beside_real: bool = False
) -> dict[str, Any]:
    """Return node `lab-INDEX` as a kubelet would register it; without `kubelet_port` nobody can exec into its pods."""
    name = f"lab-{index}"
    status: dict[str, Any] = {
        "capacity": RESOURCES,
        "allocatable": RESOURCES,
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": name},
        ],
        "nodeInfo": _node_info(kubernetes_version),
    }
    if kubelet_port is not None:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": kubelet_port}}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    taint = {"key": KIND_LABEL, "value": PRETENDED[KIND_LABEL], "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **PRETENDED}},
        "spec": {"taints": [taint]} if beside_real else {},
        "status": status,
    }


def usable(node: dict[str, Any]) -> bool:
    """Tell whether pods can be scheduled on it: it is ready, and taints it was created with, but ours, are gone."""
    ready = any(condition["status"] == "True" for condition in _ready(node))
    return ready and all(taint["key"] == KIND_LABEL for taint in node["spec"].get("taints", ()))


def usable_since(node: dict[str, Any], since: datetime) -> bool:
    """Tell whether pods can be scheduled on it, as its kubelet said after `since`, UTC."""
    # Conditions have whole seconds.
    return usable(node) and heard(node) >= since.replace(microsecond=0)


def heard(node: dict[str, Any]) -> datetime:
    """Return when its kubelet last said whether it is ready; raise ValueError if it never did."""
    return max(datetime.fromisoformat(condition["lastHeartbeatTime"]) for condition in _ready(node))


def _ready(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        condition
        for condition in node["status"].get("conditions", [])
        if condition["type"] == "Ready"
    ]


def _node_info(kubernetes_version: str) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "operatingSystem": "linux",
        "osImage": "pretended by kwok",
        "kernelVersion": "pretended",
        "containerRuntimeVersion": "kwok://pretended",
        "kubeletVersion": kubernetes_version,
        "kubeProxyVersion": kubernetes_version,
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }
