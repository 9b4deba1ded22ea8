"""A cluster whose MPIJobs have the subresource scale, as an upgrade gives it to them, and what kubectl says there."""

from __future__ import annotations

import json
import subprocess

from lab.cluster import Cluster
from tests.lab.upgrades import CRD
from tests.lab.waiting import until
from upgrade import crd


def make_scalable(cluster: Cluster) -> None:
    """Upgrade the definition, and wait until the subresource is served."""
    live = json.loads(cluster.kubectl("get", CRD, "-o", "json"))
    # Not replaced: the API server may be writing its conditions.
    patch = json.dumps({"spec": crd.upgraded(live)["spec"]})
    cluster.kubectl("patch", CRD, "--type=merge", f"--patch={patch}")
    until(lambda: '"mpijobs/scale"' in cluster.kubectl("get", "--raw", "/apis/kubeflow.org/v1"))


def told(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """The exit code of a kubectl command, and what it says on stderr."""
    command = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr
