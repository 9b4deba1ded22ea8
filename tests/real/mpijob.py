"""An MPIJob whose launcher and workers are real pods and which needs no Horovod: it runs a command in each worker."""

import json
import time
from typing import Any

from lab.cluster import Cluster
from lab.images import delivery
from mpijob_elastic import names
from tests.real.pods import await_phase, until

PATIENCE = 120.0  # seconds
WORKERS = ("train-worker-0", "train-worker-1", "train-worker-2")
# Standard error is kubexec.sh's own trace. A reminder is a line without slots (decide/reminders).
SCRIPT = f"""
exec 2> /dev/null
hosts() {{ {names.DISCOVER_HOSTS_PATH} | grep -v ':0$' | cut -d : -f 1; }}
until [ $(hosts | wc -l) = 3 ]; do sleep 0.2; done
for host in $(hosts); do /etc/mpi/kubexec.sh $host hostname; done
until [ $(hosts | wc -l) = 1 ]; do sleep 0.2; done
hosts
"""


def job(script: str = SCRIPT, **both: Any) -> dict[str, Any]:
    """Return it with this script of the launcher; `both` is for the containers of launcher and worker."""

    def replicas(count: int, name: str, **container: Any) -> dict[str, Any]:
        spec = {"containers": [{"name": name, "image": delivery.REFERENCE, **both, **container}]}
        return {"replicas": count, "template": {"spec": spec}}

    specs = {
        "Launcher": replicas(1, "launcher", command=["sh", "-ec", script]),
        "Worker": replicas(1, "worker"),
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": "train"},
        "spec": {"slotsPerWorker": 1, "cleanPodPolicy": "Running", "mpiReplicaSpecs": specs},
    }


def await_lines(cluster: Cluster, namespace: str, *lines: str) -> None:
    """Wait until the launcher has said exactly this."""
    deadline = time.monotonic() + PATIENCE
    while (
        said := cluster.kubectl("logs", "train-launcher", "--namespace", namespace)
    ) != "\n".join((*lines, "")):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def resize_through(cluster: Cluster, namespace: str, **both: Any) -> None:
    """Edit 1→3→1 until the launcher has run a command in each worker that it is told of; `both`: see `job`."""
    here = ("--namespace", namespace)

    def scale(size: int) -> None:
        patch = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": size}}}}
        cluster.kubectl("patch", "mpijob", "train", "--type=merge", "-p", json.dumps(patch), *here)

    cluster.kubectl("create", "-f", "-", *here, stdin=json.dumps(job(**both)))
    there = ("get", "pod/train-launcher", "--ignore-not-found", "-o", "name", *here)
    until("the operator creates the launcher", lambda: cluster.kubectl(*there) or None)
    await_phase(cluster, namespace, "train-launcher", "Running")
    scale(3)
    await_lines(cluster, namespace, *WORKERS)
    scale(1)
    await_lines(cluster, namespace, *WORKERS, "train-worker-0")
    await_phase(cluster, namespace, "train-launcher", "Succeeded")
