"""The webhook configurations in a lab, where no Service leads to a pod: the API server calls a port of this machine.

Either they name the port themselves, or they stay as they are and the Service is one of another
name for this machine.
"""

import copy
import json
from collections.abc import Mapping
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.errors import LabError
from lab.pki import LOOPBACK
from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.server import HOOKS
from mpijob_elastic.kube.resources import MPI_JOBS, VALIDATING_WEBHOOKS

Manifest = dict[str, Any]
# Seconds until the API server goes on without an answer: a busy machine delays one by more than a
# cluster would, and a client waits for 10.
TIMEOUT = 9


def configurations(*, port: int, host: str = LOOPBACK) -> list[Manifest]:
    """Both configurations as they are installed, but for the address that is called."""
    found = [manifest for manifest in InstallPlan().manifests() if manifest["kind"] in HOOKS]
    return [at_address(manifest, host=host, port=port) for manifest in found]


def register(cluster: Cluster, *, port: int) -> None:
    """Have the API server call the webhook at this port. Raise LabError."""
    items = configurations(port=port, host=cluster.machine)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def unregister(cluster: Cluster) -> None:
    """Have the API server call no webhook of ours. Raise LabError."""
    items = configurations(port=1)
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(items))


def called(cluster: Cluster, namespace: str = "default") -> bool:
    """Return True once the API server calls the webhook for jobs of a namespace. Raise LabError.

    It learns of a registration by a watch.
    """
    bad = {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": "registered", "namespace": namespace},
        "spec": {"mpiReplicaSpecs": {}},  # the webhook refuses a job without a launcher
    }
    try:
        cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(bad))
    except LabError as error:
        if "mpiReplicaSpecs.Launcher" not in str(error):
            raise
        return True
    return False


def evictions_wait(cluster: Cluster) -> bool:
    """Return True once the API server is told where to ask about evictions; the webhook looks every 10 s if it is."""
    path = "{.webhooks[*].clientConfig.url}"
    found = cluster.kubectl(
        "get", VALIDATING_WEBHOOKS.plural, names.PROGRAM, "-o", f"jsonpath={path}"
    )
    return names.PATH_EVICT in found


def at_address(manifest: Mapping[str, Any], *, host: str, port: int) -> Manifest:
    """A webhook configuration that names this address and port instead of the Service."""
    changed = copy.deepcopy(dict(manifest))
    for hook in changed["webhooks"]:
        path = hook["clientConfig"].pop("service").get("path", "")
        hook["clientConfig"]["url"] = f"https://{host}:{port}{path}"
        hook["timeoutSeconds"] = TIMEOUT
    return changed


def by_service(manifest: Mapping[str, Any], port: int) -> Manifest:
    """A manifest of an installation whose Service leads to this port on loopback; most stay as they are.

    The API server follows a Service of type ExternalName itself (aggregator, ResolveCluster).
    """
    changed = copy.deepcopy(dict(manifest))
    if changed["kind"] == "Service":
        changed["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    for hook in changed["webhooks"] if changed["kind"] in HOOKS else ():
        hook["clientConfig"]["service"]["port"] = port
    return changed
