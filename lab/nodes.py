"""The pretended nodes: large enough that nothing in a test waits for room."""

from typing import Any

RESOURCES = {
    "cpu": "10000",
    "memory": "100Ti",
    "ephemeral-storage": "1000Ti",  # the operator's init container asks for 5Gi
    "pods": "10000",
    "nvidia.com/gpu": "10000",
}


def node(index: int, *, kubernetes_version: str, kubelet_port: int | None) -> dict[str, Any]:
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
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": status,
    }


def usable(node: dict[str, Any]) -> bool:
    """Tell whether pods can be scheduled on it: it is ready, and the taint it was created with is gone."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
    return ready and not node["spec"].get("taints")


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
