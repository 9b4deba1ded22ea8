"""A cluster as an upgrade finds it: its MPIJob definition, its operator, and everything that stands in it."""

import json
import secrets
import uuid
from typing import Any

from lab.cluster import Cluster
from tests.lab import etcd
from tests.lab.waiting import PATIENCE, kubectl_until_done, until
from tests.product.upgrade.definitions import definition

Object = dict[str, Any]
CRD = "crd/mpijobs.kubeflow.org"
# Made and remade by the control plane itself all the time.
_PASSING = frozenset(
    (
        "Event",
        "EndpointSlice",
        "Endpoints",
        "ReplicaSet",
        "Lease",
        "ControllerRevision",
        "Node",
        "CSINode",
        "APIService",
    )
)
# What the controller manager makes in every namespace, some time after it was created.
_FIRST = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
_ROLLOUTS = "deployment.kubernetes.io/revision"  # the controller manager counts on
_VERSIONS = ("resourceVersion", "generation", "managedFields")


def established(cluster: Cluster, name: str) -> None:
    """Wait until a definition is served; kubectl fails at once where it has no conditions yet."""
    kubectl_until_done(cluster, "wait", "--for=condition=Established", name, patience=PATIENCE)
    plural, _, group = name.partition("/")[2].partition(".")
    until(
        lambda: (
            f"{plural}.{group}"
            in cluster.kubectl("api-resources", f"--api-group={group}", "-o", "name")
        )
    )


def gone(cluster: Cluster, name: str) -> None:
    """Delete a definition, and wait until its kind is not served any more."""
    cluster.kubectl("delete", "--ignore-not-found", name)
    kind = name.partition("/")[2]
    until(lambda: kind not in cluster.kubectl("api-resources", "-o", "name"))


def define(cluster: Cluster, name: str) -> None:
    """Give the cluster the MPIJob definition of that name (tests/product/upgrade/crds), and no jobs."""
    gone(cluster, CRD)
    if name == "v0.2.3":
        _define_legacy(cluster)
    else:
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(_without_status(definition(name))))
    established(cluster, CRD)


def deploy_operator(cluster: Cluster, image: str) -> str:
    """Make a Deployment of that image, whose pods are only pretended; returns its namespace."""
    namespace = f"operator-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", namespace)
    cluster.kubectl("create", "deployment", "mpi-operator", f"--image={image}", "-n", namespace)
    return namespace


def whole(cluster: Cluster) -> dict[str, Object]:
    """Everything that stands in the cluster until somebody removes it, but for versions of it."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(
        kind for kind in kinds if not kind.startswith(("events", "componentstatuses"))
    )
    items = json.loads(cluster.kubectl("get", wanted, "-A", "-o", "json"))["items"]
    return {_key(one): _normalised(one) for one in items if not _passes(one)}


def _define_legacy(cluster: Cluster) -> None:
    # An API server that serves only apiextensions v1 refuses to create it, but goes on serving one
    # that is there.
    one = definition("v0.2.3")
    one["metadata"] |= {
        "uid": str(uuid.uuid4()),
        "creationTimestamp": "2020-05-14T00:00:00Z",
        "generation": 1,
    }
    one["status"] |= {"acceptedNames": one["spec"]["names"], "conditions": []}
    for kind in ("NamesAccepted", "Established"):
        condition = {
            "type": kind,
            "status": "True",
            "lastTransitionTime": "2020-05-14T00:00:00Z",
            "reason": "Stored",
        }
        one["status"]["conditions"].append({**condition, "message": "as it was"})
    etcd.put(
        cluster,
        f"/registry/apiextensions.k8s.io/customresourcedefinitions/{one['metadata']['name']}",
        one,
    )


def _without_status(one: Object) -> Object:
    return {key: value for key, value in one.items() if key != "status"}


def _key(one: Object) -> str:
    return f"{one['kind']} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}"


def _passes(one: Object) -> bool:
    metadata = one["metadata"]
    replicated = any(owner["kind"] == "ReplicaSet" for owner in metadata.get("ownerReferences", []))
    first = (one["kind"], metadata["name"]) in _FIRST
    return one["kind"] in _PASSING or first or replicated or "deletionTimestamp" in metadata


def _normalised(one: Object) -> Object:
    metadata = {key: value for key, value in one["metadata"].items() if key not in _VERSIONS}
    metadata["annotations"] = {
        key: it for key, it in metadata.get("annotations", {}).items() if key != _ROLLOUTS
    }
    # The rules of an aggregated ClusterRole are gathered from others, some time after these have
    # changed.
    passing = {"status", "rules"} if "aggregationRule" in one else {"status"}
    rest = {key: value for key, value in one.items() if key not in passing}
    return {**rest, "metadata": metadata}
