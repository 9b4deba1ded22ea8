"""Both ServiceAccounts have the rights they use, and no other: `kubectl auth can-i --list` shows exactly this table."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.cluster import Cluster
from lab.install import install_into, uninstall_from
from mpijob_elastic import names

pytestmark = pytest.mark.lab
Rights = dict[tuple[str, str], str]

# (resource, names it is limited to) to verbs; what every account may do comes on top.
ANYWHERE: dict[str, Rights] = {
    names.CONTROLLER: {
        ("mpijobs.kubeflow.org", ""): "get list patch watch",
        ("pods", ""): "delete get list patch watch",
        ("pods/exec", ""): "create get",
        ("configmaps", ""): "get list patch watch",
        ("roles.rbac.authorization.k8s.io", ""): "list patch watch",
        ("events", ""): "create",
    },
    names.WEBHOOK: {
        ("mutatingwebhookconfigurations.admissionregistration.k8s.io", names.WEBHOOK_CONFIGURATION): "get patch",
        ("validatingwebhookconfigurations.admissionregistration.k8s.io", names.WEBHOOK_CONFIGURATION): "get patch",
    },
}
IN_OUR_NAMESPACE: dict[str, Rights] = {
    names.CONTROLLER: {
        ("leases.coordination.k8s.io", ""): "create",
        ("leases.coordination.k8s.io", names.LEASE): "get patch",
    },
    names.WEBHOOK: {
        ("secrets", ""): "create",
        ("secrets", names.CERTIFICATE_SECRET): "get patch",
    },
}


@contextmanager
def installation(cluster: Cluster, namespace: str | None = None) -> Iterator[None]:
    installed = install_into(cluster, namespace=namespace)
    try:
        yield
    finally:
        uninstall_from(cluster, installed)


@pytest.fixture(scope="module")
def everybodys(cluster: Cluster) -> Rights:
    """What an account has that nobody gave anything."""
    return rights(cluster, "system:serviceaccount:default:nobody", "default")


def test_rights_for_all_namespaces(cluster: Cluster, everybodys: Rights) -> None:
    with installation(cluster):
        for account in (names.CONTROLLER, names.WEBHOOK):
            anywhere = everybodys | ANYWHERE[account]
            assert rights(cluster, user(account), "default") == anywhere
            assert rights(cluster, user(account), names.NAMESPACE) == anywhere | IN_OUR_NAMESPACE[account]


def test_rights_for_a_single_namespace(cluster: Cluster, everybodys: Rights, namespace: str) -> None:
    controller = user(names.CONTROLLER)
    with installation(cluster, namespace):
        assert rights(cluster, controller, namespace) == everybodys | ANYWHERE[names.CONTROLLER]
        assert rights(cluster, controller, "default") == everybodys
        assert rights(cluster, controller, names.NAMESPACE) == everybodys | IN_OUR_NAMESPACE[names.CONTROLLER]


def user(account: str) -> str:
    return f"system:serviceaccount:{names.NAMESPACE}:{account}"


def rights(cluster: Cluster, who: str, namespace: str) -> Rights:
    lines = cluster.kubectl("auth", "can-i", "--list", "--no-headers", "-n", namespace, f"--as={who}").splitlines()
    table: Rights = {}
    for line in lines:
        resource, _, limited_to, verbs = (part.strip("[] ") for part in _columns(line))
        if resource:
            table[resource, limited_to] = " ".join(sorted(verbs.split()))
    return table


def _columns(line: str) -> list[str]:
    """Resource, non-resource URLs, resource names and verbs: the last three are in brackets."""
    resource, *rest = line.split("[")
    return [resource, *rest]
