"""The ServiceAccount of a mpi-operator in a lab, with the rights that the manifest of its release grants.

So the API server checks each request of the operator as in a cluster of users. For example, it
looks whether the operator itself may do what a Role that it writes allows.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.components import MANIFESTS
from lab.operator import Release

Object = dict[str, Any]

NAMESPACE = "mpi-operator"
# How the name of the user of any operator begins.
USERS = f"system:serviceaccount:{NAMESPACE}:"
# What the manifest of v0.2.3 lacks for --gang-scheduling, and its users have to grant themselves: the
# operator handles no job before it may list PodGroups. That of v0.3.0 has it.
ADDED_FOR_GANGS: Mapping[Release, Sequence[Object]] = {
    Release.V0_2_3: [
        {
            "apiGroups": ["scheduling.volcano.sh"],
            "resources": ["podgroups"],
            "verbs": ["list", "watch", "create", "delete"],
        }
    ]
}
_RBAC = "rbac.authorization.k8s.io"


def role_file(release: Release) -> Path:
    """Return the file with the ClusterRole of a release."""
    return MANIFESTS / f"mpi-operator-{release}-role.yaml"


def account(release: Release) -> str:
    """Return the name of the ServiceAccount of a release: each has its own, so that both may run in a lab."""
    return f"{NAMESPACE}-{release}"


def manifests(release: Release, *, gangs: bool = False) -> list[Object]:
    """Return the ServiceAccount of a release with its rights; `gangs` adds ADDED_FOR_GANGS, in a role of its own."""
    name = account(release)
    granted = _bound(name, yaml.safe_load(role_file(release).read_text())["rules"], to=name)
    lacking = ADDED_FOR_GANGS.get(release, ()) if gangs else ()
    added = _bound(f"{name}-gangs", lacking, to=name) if lacking else []
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": NAMESPACE},
        },
        *granted,
        *added,
    ]


def kubeconfig(cluster: Cluster, release: Release, *, gangs: bool = False) -> Path:
    """Make these objects in a lab, and return a new kubeconfig of the account. Raise LabError."""
    items = manifests(release, gangs=gangs)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)
    return cluster.service_account_kubeconfig(NAMESPACE, account(release))


def _bound(name: str, rules: Sequence[Object], *, to: str) -> list[Object]:
    """Return a ClusterRole, and a binding to the account called `to`."""
    role = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [*rules],
    }
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": to, "namespace": NAMESPACE}],
    }
    return [role, binding]
