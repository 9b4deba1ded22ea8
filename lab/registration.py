"""The webhook configurations in a lab, where no Service leads anywhere: the API server calls a port on loopback."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import yaml

from lab.cluster import Cluster
from mpijob_elastic.install.applying import HOOKS
from mpijob_elastic.install.installer import Plan

Manifest = dict[str, Any]


def configurations(*, port: int) -> list[Manifest]:
    """Both configurations as they are installed, but for the address that is called."""
    found = [manifest for manifest in Plan().manifests() if manifest["kind"] in HOOKS]
    return [at_loopback(manifest, port) for manifest in found]


def register(cluster: Cluster, *, port: int) -> None:
    """Have the API server call the webhook at this port. Raise LabError."""
    items = configurations(port=port)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def unregister(cluster: Cluster) -> None:
    """Have the API server call no webhook of ours. Raise LabError."""
    items = configurations(port=1)
    cluster.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=yaml.safe_dump_all(items))


def at_loopback(manifest: Mapping[str, Any], port: int) -> Manifest:
    """A webhook configuration that names this port instead of the Service."""
    changed = copy.deepcopy(dict(manifest))
    for hook in changed["webhooks"]:
        path = hook["clientConfig"].pop("service")["path"]
        hook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
    return changed
