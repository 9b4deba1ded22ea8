"""The fields of a job and its pods that `submit` writes for options named as Arena's.

The fields are those of Arena's chart (arena v0.15.5, charts/etjob/templates/etjob.yaml).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]

LAUNCHER, WORKER = "launcher", "worker"
_SHM, _SHM_PATH = "shm", "/dev/shm"  # noqa: S108
_RDMA = {"rdma/hca": "1"}
_TOLERATION = re.compile(
    r"(?P<key>[^=:,]*)=(?P<value>[^=:,]*)"
    r":(?P<effect>(NoSchedule|PreferNoSchedule|NoExecute)?),(?P<operator>Exists|Equal)"
)
TOLERATION_FORM = "KEY=VALUE:EFFECT,OPERATOR"


@dataclass(frozen=True, kw_only=True)
class PodWords:
    """The options; empty for an option that is not given."""

    #: On the job and its pods.
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    launcher_annotations: Mapping[str, str] = field(default_factory=dict)
    worker_annotations: Mapping[str, str] = field(default_factory=dict)
    #: Labels of the nodes on which workers, or the launcher, may run.
    selector: Mapping[str, str] = field(default_factory=dict)
    launcher_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    #: How many devices each worker gets, by the name of the resource.
    devices: Mapping[str, str] = field(default_factory=dict)
    #: Each path on the node, and where the pods see it.
    data_dirs: Sequence[tuple[str, str]] = ()
    #: The size of /dev/shm in the workers, in which NCCL and data loaders share memory.
    shm_size: str = ""
    pull_secrets: Sequence[str] = ()
    pull_policy: str = ""
    scheduler: str = ""
    rdma: bool = False
    host_network: bool = False
    host_ipc: bool = False
    host_pid: bool = False


def toleration(text: str) -> dict[str, str]:
    """Return the toleration of `all`, or of a text in Arena's form KEY=VALUE:EFFECT,OPERATOR.

    Raises ValueError: the API server would refuse each pod with such a toleration.
    """
    if text == "all":
        return {"operator": "Exists"}
    found = _TOLERATION.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text} is neither all nor {TOLERATION_FORM}, such as gpu=yes:NoSchedule,Equal or "
            "gpu=:NoSchedule,Exists"
        )
    given = {name: value for name, value in found.groupdict().items() if value}
    if given["operator"] == "Exists" and "value" in given:
        raise ValueError(f"{text}: Exists goes with no value; write Equal, or leave out the value")
    return given


def paths(words: PodWords) -> list[str]:
    """Return each path at which a volume is mounted in the workers."""
    shared = [_SHM_PATH] if words.shm_size else []
    return [*(in_pod for _, in_pod in words.data_dirs), *shared]


def on_job(metadata: Object, words: PodWords) -> None:
    """Write labels and annotations; those that are there already stay."""
    _add(metadata, "labels", words.labels)
    _add(metadata, "annotations", words.annotations)


def on_template(template: Object, role: str, words: PodWords) -> None:
    """Write the fields of the launcher's or the workers' pods."""
    spec = template["spec"]
    [container] = spec["containers"]
    of_role = words.worker_annotations if role == WORKER else words.launcher_annotations
    metadata: Object = {}
    _add(metadata, "labels", words.labels)
    _add(metadata, "annotations", {**words.annotations, **of_role})
    if metadata:
        template["metadata"] = metadata
    selector = words.selector if role == WORKER else words.launcher_selector
    _add(spec, "nodeSelector", selector)
    _add_resources(container, words.devices if role == WORKER else {})
    _on_container(container, words)
    _mount(spec, container, words.data_dirs)
    if words.shm_size and role == WORKER:
        _mount_memory(spec, container, words.shm_size)
    spec.update(_plain(words))


def _plain(words: PodWords) -> Object:
    """Return the fields of a pod's spec that are the same in all pods."""
    fields = {
        "tolerations": [dict(one) for one in words.tolerations],
        "imagePullSecrets": [{"name": name} for name in words.pull_secrets],
        "schedulerName": words.scheduler,
        "hostNetwork": words.host_network,
        "dnsPolicy": "ClusterFirstWithHostNet" if words.host_network else "",
        "hostIPC": words.host_ipc,
        "hostPID": words.host_pid,
    }
    return {name: value for name, value in fields.items() if value}


def _on_container(container: Object, words: PodWords) -> None:
    if words.pull_policy:
        container["imagePullPolicy"] = words.pull_policy
    if words.rdma:
        _add_resources(container, _RDMA)
        container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}


def _add_resources(container: Object, amounts: Mapping[str, str]) -> None:
    if amounts:
        resources = container.setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources.setdefault(kind, {}).update(amounts)


def _mount(spec: Object, container: Object, paths: Sequence[tuple[str, str]]) -> None:
    for number, (on_node, in_pod) in enumerate(paths):
        name = f"dir-{number}"
        spec.setdefault("volumes", []).append({"name": name, "hostPath": {"path": on_node}})
        mounts = container.setdefault("volumeMounts", [])
        mounts.append({"name": name, "mountPath": in_pod})


def _mount_memory(spec: Object, container: Object, size: str) -> None:
    memory = {"medium": "Memory", "sizeLimit": size}
    spec.setdefault("volumes", []).append({"name": _SHM, "emptyDir": memory})
    container.setdefault("volumeMounts", []).append({"name": _SHM, "mountPath": _SHM_PATH})


def _add(parent: Object, key: str, pairs: Mapping[str, str]) -> None:
    if pairs:
        parent[key] = {**pairs, **parent.get(key, {})}


def data_dir(text: str) -> tuple[str, str]:
    """Return the path on the node and the path in the pods, of a text HOST-PATH[:POD-PATH].

    Raises ValueError for paths that do not begin with a slash.
    """
    on_node, _, other = text.partition(":")
    in_pod = other or on_node
    if not (on_node.startswith("/") and in_pod.startswith("/")):
        raise ValueError(f"{text} is not HOST-PATH or HOST-PATH:POD-PATH, each path from /")
    return on_node, in_pod
