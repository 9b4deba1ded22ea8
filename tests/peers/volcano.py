"""Volcano's scheduler for a lab's API server, without its controllers and webhooks, with the administrator's rights."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.cluster import Cluster
from lab.components import MANIFESTS
from lab.ports import free_ports
from tests.lab.definitions import VOLCANO, served
from tests.peers.processes import running

# installer/helm/chart/volcano/config/volcano-scheduler.conf, and the action preempt.
CONFIGURATION = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: task-topology
"""
# test/e2e/gangevict/gangevict.go, with the action enqueue: the actions for gangs stand in place of
# preempt and reclaim. Their names are in small letters, other than in Volcano's design.
FOR_GANGS = """\
actions: "enqueue, allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: capacity
    enableHierarchy: false
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: nodeorder
"""
_LOOSE = str(MANIFESTS / "podgroup-crd.yaml")
# The scheduler gives this queue to a PodGroup that names none; `closed` takes no jobs.
QUEUES = {"default": "Open", "team": "Open", "shut": "Closed"}
# GPUs of four that a queue deserves: gangreclaim gives them back to it.
HALF = 2


@contextmanager
def scheduling(
    program: Path, cluster: Cluster, directory: Path, *, actions: str = CONFIGURATION
) -> Iterator[None]:
    """Schedule by this configuration as long as the block lasts; `directory` takes files."""
    configuration = (
        directory / "configuration"
    )  # it is read again when anything is written beside it
    configuration.mkdir()
    (configuration / "scheduler.conf").write_text(actions)
    [listen] = free_ports(1)
    command = [
        str(program),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--scheduler-conf={configuration}/scheduler.conf",
    ]
    command += [
        "--leader-elect=false",
        f"--listen-address=127.0.0.1:{listen}",
        "--cache-dumper=false",
    ]
    command += ["--schedule-period=200ms", "--kube-api-qps=500", "--kube-api-burst=1000"]
    cluster.kubectl("delete", "-f", _LOOSE)
    try:
        with served(cluster, VOLCANO, directory):
            _open_queues(cluster)
            with running(command, directory / "volcano.log"):
                yield
    finally:
        cluster.kubectl("apply", "-f", _LOOSE)


def _open_queues(cluster: Cluster) -> None:
    """Make the queues, and say what vc-controller-manager would say of them."""
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    for name, state in QUEUES.items():
        spec = {"weight": 1, "deserved": {"nvidia.com/gpu": HALF}}
        queue = {**kind, "metadata": {"name": name}, "spec": spec}
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(queue))
        status = json.dumps({"status": {"state": state, "reservation": {}}})
        cluster.kubectl(
            "patch", "queue", name, "--subresource=status", "--type=merge", "-p", status
        )
