"""A cluster whose MPIJobs have the subresource scale, as an upgrade gives it to them, and what kubectl says there."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lab.cluster import Cluster
from tests.lab.upgrades import CRD
from tests.lab.waiting import until
from upgrade import crd

_API = "/apis/kubeflow.org/v1"
# Of the definition in docs/scale.md that v0.2.3's manifest makes.
MINIMUM = (
    "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mpiReplicaSpecs/properties/"
    "Worker/properties/replicas/minimum"
)
CRD_NAME = crd.NAME
_SCALE = '"mpijobs/scale"'


@contextmanager
def scalable(cluster: Cluster) -> Iterator[None]:
    """Upgrade the definition while the block runs, and put it back."""
    before = json.loads(cluster.kubectl("get", CRD, "-o", "json"))
    _define(cluster, crd.upgraded(before)["spec"])
    until(lambda: _SCALE in cluster.kubectl("get", "--raw", _API))
    yield
    _define(cluster, before["spec"])
    until(lambda: _SCALE not in cluster.kubectl("get", "--raw", _API))


@contextmanager
def from_zero(cluster: Cluster) -> Iterator[None]:
    """Let the definition of scalable MPIJobs allow the size 0 while the block runs."""
    patch = [{"op": "replace", "path": MINIMUM, "value": 0}]
    cluster.kubectl("patch", "crd", CRD_NAME, "--type=json", f"--patch={json.dumps(patch)}")
    yield
    patch = [{"op": "replace", "path": MINIMUM, "value": 1}]
    cluster.kubectl("patch", "crd", CRD_NAME, "--type=json", f"--patch={json.dumps(patch)}")


def _define(cluster: Cluster, spec: dict[str, Any]) -> None:
    # Not replaced: the API server may be writing its conditions.
    cluster.kubectl("patch", CRD, "--type=merge", f"--patch={json.dumps({'spec': spec})}")


def told(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """The exit code of a kubectl command, and what it says on stderr."""
    command = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr
