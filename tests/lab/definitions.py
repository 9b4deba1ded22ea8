"""Definitions of other projects: out of their Go modules, or such that take anything."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.definitions import Release, define, source
from lab.errors import LabError
from lab.golang import download
from mpijob_elastic.kube.resources import Resource

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

# The release that lab/binaries/cert-manager builds.
CERT_MANAGER = Release(
    module="github.com/cert-manager/cert-manager@v1.21.2",
    checksum="h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
    files=[
        f"deploy/crds/cert-manager.io_{kind}.yaml"
        for kind in ("certificates", "certificaterequests", "issuers", "clusterissuers")
    ],
)
PROMETHEUS_OPERATOR = Release(
    module="github.com/prometheus-operator/prometheus-operator@v0.93.0",
    checksum="h1:AohlYJT+En8TmNpAcEUJ3GsaJTAqfEBwHmGTVpRm/Io=",
    files=[
        f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml"
        for kind in ("podmonitors", "prometheusrules")
    ],
)
# The release that lab/binaries/keda builds.
KEDA = Release(
    module="github.com/kedacore/keda/v2@v2.20.2",
    checksum="h1:SR60v8uIcelbveS8n/1jcl8tLdBBIbHMxmdOHw8tKqA=",
    files=[
        f"config/crd/bases/{kind}.yaml"
        for kind in (
            "keda.sh_scaledobjects",
            "keda.sh_scaledjobs",
            "keda.sh_triggerauthentications",
            "keda.sh_clustertriggerauthentications",
            "eventing.keda.sh_cloudeventsources",
            "eventing.keda.sh_clustercloudeventsources",
        )
    ],
)
# The release that lab/binaries/volcano builds.
VOLCANO = Release(
    module="volcano.sh/volcano@v1.15.1",
    checksum="h1:M0iGzhy1dvod2GFy1QiyWdv1jmmNfHW4+2WoRU7CIAk=",
    files=[
        f"config/crd/volcano/bases/{kind}.yaml"
        for kind in (
            "scheduling.volcano.sh_podgroups",
            "scheduling.volcano.sh_queues",
            "nodeinfo.volcano.sh_numatopologies",
            "shard.volcano.sh_nodeshards",
            "topology.volcano.sh_hypernodes",
        )
    ],
)
# The release that lab/binaries/scheduler-plugins builds.
SCHEDULER_PLUGINS = Release(
    module="sigs.k8s.io/scheduler-plugins@v0.34.7",
    checksum="h1:GENSA4rKpCKBrPvNSo2AV2QHU7j3a6LT14kNlHhXfeg=",
    files=[
        f"config/crd/bases/scheduling.x-k8s.io_{kind}.yaml"
        for kind in ("podgroups", "elasticquotas")
    ],
)
# The release that lab/binaries/koordinator builds: what its scheduler lists.
KOORDINATOR = Release(
    module="github.com/koordinator-sh/koordinator@v1.8.0",
    checksum="h1:CEMaFv6qru+arNhcdhkLP2Shxw77Heb6PSaXjHZ/t0I=",
    files=[
        f"config/crd/bases/{kind}.yaml"
        for kind in (
            "scheduling.sigs.k8s.io_podgroups",
            "scheduling.sigs.k8s.io_elasticquotas",
            "scheduling.koordinator.sh_clusternetworktopologies",
            "scheduling.koordinator.sh_devices",
            "scheduling.koordinator.sh_reservations",
            "slo.koordinator.sh_nodemetrics",
            "topology.node.k8s.io_noderesourcetopologies",
        )
    ],
)
# The release that lab/binaries/karmada builds.
KARMADA = Release(
    module="github.com/karmada-io/karmada@v1.16.0",
    checksum="h1:RD58HD7xp0+FKDWkJRygBsN/ht3k7gbBZa0xBzWSio4=",
    files=[
        f"charts/karmada/_crds/bases/{kind}.yaml"
        for kind in (
            "config/config.karmada.io_resourceinterpretercustomizations",
            "policy/policy.karmada.io_propagationpolicies",
        )
    ],
)
# The release that lab/binaries/arena builds, with et-operator's definitions.
ARENA = Release(
    module="github.com/kubeflow/arena@v0.15.5",
    checksum="h1:dZOfQoehHvrnjqFz35zUS9UoN8YF40rcYHhMFNJ7PRY=",
    files=[
        f"arena-artifacts/crds/kai.alibabacloud.com_{kind}.yaml"
        for kind in ("trainingjobs", "scaleins", "scaleouts")
    ],
)


@contextmanager
def served(cluster: Cluster, release: Release, directory: Path) -> Iterator[Path]:
    """Have the API server serve the definitions as long as the block lasts; skip the test if they cannot be had.

    Gives the directory of the module's files. `directory` is for the Go tool to run in, which no
    module may claim.
    """
    try:
        download(release.module, directory=directory)
    except LabError as error:
        pytest.skip(f"the definitions of {release.module} cannot be had: {error}")
    folder = source(release, directory=directory)
    define(cluster, release, folder)
    yield folder
    for name in release.files:
        cluster.kubectl("delete", "-f", str(folder / name))


def definition(kind: Resource, *, status: bool = False) -> dict[str, Any]:
    """A definition that takes anything."""
    schema = {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if status else {}),
    }
    name = f"{kind.plural}.{kind.group}"
    approved = {"api-approved.kubernetes.io": "unapproved, a test double"}
    names = {"kind": kind.kind, "plural": kind.plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": approved},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
