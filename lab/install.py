"""Our own objects in a lab: everything `mpijob-elastic install` makes but what the lab cannot run.

A pod of a Deployment would only be pretended here, and a pretended webhook answers nothing; so
controller and webhook are processes of this machine (lab.replicas). They get the tokens of their
ServiceAccounts, hence exactly their rights, under exactly the policies of a real installation.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.ports import free_ports
from lab.registration import at_address
from lab.versions import KubernetesVersion
from mpijob_elastic import names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import HOOKS, OPTIONAL_KINDS, WORKLOADS


@dataclass(frozen=True, kw_only=True)
class Installed:
    """Kubeconfigs with the tokens of the two ServiceAccounts, and the port where the API server looks for the webhook.

    `namespaces`: those whose jobs are looked after; none for all.
    """

    controller_kubeconfig: Path
    webhook_kubeconfig: Path
    webhook_port: int
    namespaces: tuple[str, ...] = ()


def install_into(
    cluster: Cluster, *, namespaces: tuple[str, ...] = (), also: tuple[Overlay, ...] = ()
) -> Installed:
    """Make the objects; what is there already stays or is put right. Raise LabError."""
    [port] = free_ports(1)
    host = cluster.machine
    manifests = _manifests(cluster, namespaces, also)
    wanted = [
        at_address(one, host=host, port=port) if one["kind"] in HOOKS else one for one in manifests
    ]
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=_text(wanted))
    return Installed(
        controller_kubeconfig=cluster.service_account_kubeconfig(names.NAMESPACE, names.CONTROLLER),
        webhook_kubeconfig=cluster.service_account_kubeconfig(names.NAMESPACE, names.WEBHOOK),
        webhook_port=port,
        namespaces=namespaces,
    )


def uninstall_from(cluster: Cluster, installed: Installed) -> None:
    """Remove the objects, and wait until they are gone. Raise LabError."""
    cluster.kubectl(
        "delete",
        "--ignore-not-found",
        "-f",
        "-",
        stdin=_text(_manifests(cluster, installed.namespaces)),
    )


def _manifests(
    cluster: Cluster, namespaces: tuple[str, ...], also: tuple[Overlay, ...] = ()
) -> list[Manifest]:
    minor = KubernetesVersion.parse(cluster.options.kubernetes_version).minor
    manifests = overlays.for_version(
        InstallPlan(jobs_namespaces=namespaces, overlays=also).manifests(), minor
    )
    served = [
        manifest for manifest in manifests if OPTIONAL_KINDS.get(manifest["kind"], 0) <= minor
    ]
    return [manifest for manifest in served if manifest["kind"] not in WORKLOADS]


def _text(manifests: list[Manifest]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
