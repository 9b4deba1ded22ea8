"""Measure how soon a container sees a change of a mounted ConfigMap, with and without a touch of its pod.

A kubelet syncs each pod every 60 to 90 seconds (syncFrequency, and the work queue's jitter: pkg/kubelet/kubelet.go and
pod_workers.go). An update of a pod makes it sync at once.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.real import visibility
from bench.real.visibility import Watcher
from lab.cluster import Cluster
from lab.errors import LabError
from lab.images import horovod

CONFIG = "hosts"
PATH = "/config/hosts"
LIMIT = 180.0  # seconds
POLL = 0.05
PATIENCE = "--timeout=120s"


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Seconds from the answer to a change until each pod saw it."""

    touched: tuple[float, ...]
    untouched: tuple[float, ...]


def run(cluster: Cluster, *, namespace: str, changes: int, pods: int) -> Delays:
    """Make `changes` with a touch in a row, and a change without, which `pods` wait for. Raises LabError."""
    names = [f"pod-{index}" for index in range(pods)]
    _create(cluster, namespace, names)
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        watchers = [
            stack.enter_context(
                visibility.watched(cluster, namespace=namespace, pod=name, path=PATH, output=Path(folder) / name)
            )
            for name in names
        ]
        _await(watchers, "begin")
        touched = tuple(_touched(cluster, namespace, names[0], watchers[0], f"touched {n}") for n in range(changes))
        changed = _change(cluster, namespace, "untouched")
        _await(watchers, "untouched")
        return Delays(touched=touched, untouched=tuple(at - changed for at in _seen(watchers, "untouched")))


def _touched(cluster: Cluster, namespace: str, pod: str, watcher: Watcher, content: str) -> float:
    changed = _change(cluster, namespace, content)
    cluster.kubectl("annotate", "pod", pod, f"touched={changed}", "--overwrite", "--namespace", namespace)
    _await([watcher], content)
    (seen,) = _seen([watcher], content)
    return seen - changed


def _change(cluster: Cluster, namespace: str, content: str) -> float:
    patch = json.dumps({"data": {CONFIG: content}})
    cluster.kubectl("patch", "configmap", CONFIG, "--patch", patch, "--namespace", namespace)
    return time.time()


def _seen(watchers: list[Watcher], content: str) -> Iterator[float]:
    for watcher in watchers:
        found = visibility.first(watcher.sights(), content=content)
        assert found is not None, "it was awaited"
        yield found.at


def _await(watchers: list[Watcher], content: str) -> None:
    deadline = time.monotonic() + LIMIT
    while any(visibility.first(watcher.sights(), content=content) is None for watcher in watchers):
        if time.monotonic() > deadline:
            raise LabError(f"some pods did not see a change of their ConfigMap within {LIMIT:.0f} s.")
        time.sleep(POLL)


def _create(cluster: Cluster, namespace: str, names: list[str]) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": {CONFIG: "begin"}}
    items = {"apiVersion": "v1", "kind": "List", "items": [config, *map(_pod, names)]}
    cluster.kubectl("create", "-f", "-", "--namespace", namespace, stdin=json.dumps(items))
    cluster.kubectl("wait", "pods", "--all", "--for=condition=Ready", "--namespace", namespace, PATIENCE)


def _pod(name: str) -> dict[str, object]:
    container = {
        "name": "main",
        "image": horovod.REFERENCE,
        "command": ["sleep", "3600"],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    volumes = [{"name": "config", "configMap": {"name": CONFIG}}]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
