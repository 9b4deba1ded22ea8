"""A pod that does what a test tells it, and waits for what pods do."""

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

from lab.cluster import Cluster
from lab.images import delivery

POLL = 0.5  # seconds

T = TypeVar("T")


def manifest(name: str, script: str, **spec: Any) -> dict[str, Any]:
    """A pod that runs a shell script once; its image has busybox and kubectl."""
    container = {"name": "main", "image": delivery.REFERENCE, "command": ["sh", "-ec", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def create(cluster: Cluster, namespace: str, pod: dict[str, Any]) -> None:
    cluster.kubectl("create", "--namespace", namespace, "-f", "-", stdin=json.dumps(pod))


def await_phase(cluster: Cluster, namespace: str, name: str, phase: str) -> None:
    condition = f"--for=jsonpath={{.status.phase}}={phase}"
    cluster.kubectl("wait", f"pod/{name}", condition, "--namespace", namespace, "--timeout=120s")


def until(what: str, look: Callable[[], T | None], *, patience: float = 180.0) -> T:
    """Return what `look` finds, as soon as that is not None; fail after `patience` seconds."""
    deadline = time.monotonic() + patience
    while (found := look()) is None:
        assert time.monotonic() < deadline, f"not within {patience:.0f} s: {what}"
        time.sleep(POLL)
    return found
