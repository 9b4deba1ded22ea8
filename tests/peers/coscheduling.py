"""Coscheduling for a lab's API server: the scheduler of scheduler-plugins, beside the cluster's own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.cluster import Cluster
from lab.ports import free_ports
from tests.lab.definitions import SCHEDULER_PLUGINS, served
from tests.peers.processes import BACKS_OFF, running

NAME = "coscheduler"
# No deleted pod wakes what the plugin refused (EventsToRegister in pkg/coscheduling), so time must;
# the default is 5m.
TRIED_AGAIN = "30s"


@contextmanager
def scheduling(program: Path, cluster: Cluster, directory: Path) -> Iterator[None]:
    """Schedule as long as the block lasts; `directory` takes files."""
    only = {"enabled": [{"name": "Coscheduling"}]}
    arguments = {
        "name": "Coscheduling",
        "args": {"permitWaitingTimeSeconds": 10, "podGroupBackoffSeconds": 10},
    }
    profile = {
        "schedulerName": NAME,
        "plugins": {"multiPoint": only, "queueSort": {**only, "disabled": [{"name": "*"}]}},
        "pluginConfig": [arguments],
    }
    configuration = {  # manifests/coscheduling/scheduler-config.yaml
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig), "qps": 500, "burst": 1000},
        "profiles": [profile],
    }
    file = directory / "scheduler.yaml"
    file.write_text(json.dumps(configuration))
    [port] = free_ports(1)
    command = [
        str(program),
        f"--config={file}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    ]
    command += [
        f"--cert-dir={directory}",
        f"--pod-max-in-unschedulable-pods-duration={TRIED_AGAIN}",
        BACKS_OFF,
    ]
    with (
        served(cluster, SCHEDULER_PLUGINS, directory),
        running(command, directory / "coscheduler.log"),
    ):
        yield
