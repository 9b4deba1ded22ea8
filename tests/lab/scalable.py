"""A cluster whose MPIJobs have the subresource scale, as an upgrade gives it to them, and what kubectl says there."""

from __future__ import annotations

import json
import subprocess
import time

from lab.cluster import Cluster
from upgrade import crd

CRD = "crd/mpijobs.kubeflow.org"


def make_scalable(cluster: Cluster) -> None:
    """Upgrade the definition, and wait until the subresource is served."""
    live = json.loads(cluster.kubectl("get", CRD, "-o", "json"))
    cluster.kubectl("replace", "-f", "-", stdin=json.dumps(crd.upgraded(live)))
    for _ in range(300):
        served = json.loads(cluster.kubectl("get", "--raw", "/apis/kubeflow.org/v1"))["resources"]
        if any(one["name"] == "mpijobs/scale" for one in served):
            return
        time.sleep(0.1)
    raise AssertionError("mpijobs/scale is never served")


def told(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """The exit code of a kubectl command, and what it says on stderr."""
    command = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr
