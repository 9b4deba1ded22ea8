"""Both ServiceAccounts have the rights they use, and no other: `kubectl auth can-i --list` shows exactly this table."""

import os
import time
from collections.abc import Iterator

import pytest

from lab.cluster import Cluster
from lab.install import install_into
from mpijob_elastic import names
from tests.lab.waiting import PATIENCE

pytestmark = pytest.mark.lab
Rights = dict[tuple[str, str], str]

NODES: Rights = {("nodes", ""): "get list watch"}
QUEUES: Rights = {("queues.scheduling.volcano.sh", ""): "list watch"}
WITHOUT_NAMESPACE: Rights = {
    ("customresourcedefinitions.apiextensions.k8s.io", "mpijobs.kubeflow.org"): "get",
    ("resourceflavors.kueue.x-k8s.io", ""): "get",
    ("workloadpriorityclasses.kueue.x-k8s.io", ""): "get",
}
# (resource, names it is limited to) to verbs; what every account may do comes on top.
ANYWHERE: dict[str, Rights] = {
    names.CONTROLLER: WITHOUT_NAMESPACE
    | {
        ("mpijobs.kubeflow.org", ""): "delete get list patch watch",
        ("mpijobs.kubeflow.org/status", ""): "patch",
        ("pods", ""): "delete get list patch watch",
        ("pods/exec", ""): "create get",
        ("configmaps", ""): "get list patch watch",
        ("roles.rbac.authorization.k8s.io", ""): "list patch watch",
        ("podgroups.scheduling.volcano.sh", ""): "create list patch watch",
        ("podgroups.scheduling.x-k8s.io", ""): "create list patch watch",
        ("podgroups.scheduling.sigs.k8s.io", ""): "create list patch watch",
        ("podgroups.scheduling.k8s.io", ""): "create delete list patch watch",
        ("workloads.kueue.x-k8s.io", ""): "create delete get list patch watch",
        ("workloads.kueue.x-k8s.io/status", ""): "patch",
        ("queueunits.scheduling.x-k8s.io", ""): "create delete get list patch watch",
        ("queueunits.scheduling.x-k8s.io/status", ""): "patch",
        ("horizontalpodautoscalers.autoscaling", ""): "create delete list patch watch",
        ("events", ""): "create",
    },
    names.WEBHOOK: QUEUES
    | {
        ("mpijobs.kubeflow.org", ""): "get list watch",
        ("horizontalpodautoscalers.autoscaling", ""): "get list watch",
        ("resourcequotas", ""): "list watch",
        ("pods", ""): "get patch",
        ("pods/eviction", ""): "create",
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


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A lab beside the session's, where nothing of ours is yet."""
    with Cluster.start(name=f"pytest-{os.getpid()}-rights") as running:
        yield running


@pytest.fixture(scope="module")
def everybodys(cluster: Cluster) -> Rights:
    """Return the rights of an account that nobody gave any."""
    return rights(cluster, "nobody", "default")


@pytest.mark.parametrize("account", [names.CONTROLLER, names.WEBHOOK])
@pytest.mark.usefixtures("installed")
def test_rights_for_all_namespaces(cluster: Cluster, everybodys: Rights, account: str) -> None:
    anywhere = everybodys | ANYWHERE[account] | (NODES if account == names.CONTROLLER else {})
    has(cluster, account, "default", anywhere)
    has(cluster, account, names.NAMESPACE, anywhere | IN_OUR_NAMESPACE[account])


@pytest.mark.thorough
def test_rights_for_a_single_namespace(own_cluster: Cluster, everybodys: Rights) -> None:
    everywhere = everybodys | WITHOUT_NAMESPACE
    own_cluster.kubectl("create", "namespace", "jobs")
    install_into(own_cluster, namespace="jobs")
    has(own_cluster, names.CONTROLLER, "jobs", everywhere | ANYWHERE[names.CONTROLLER])
    has(own_cluster, names.CONTROLLER, "default", everywhere)
    at_home = everywhere | IN_OUR_NAMESPACE[names.CONTROLLER]
    has(own_cluster, names.CONTROLLER, names.NAMESPACE, at_home)
    registrations = {
        right: verbs for right, verbs in ANYWHERE[names.WEBHOOK].items() if names.WEBHOOK_CONFIGURATION in right
    }
    has(own_cluster, names.WEBHOOK, "jobs", everybodys | ANYWHERE[names.WEBHOOK])
    has(own_cluster, names.WEBHOOK, "default", everybodys | registrations | QUEUES)


def has(cluster: Cluster, account: str, namespace: str, expected: Rights) -> None:
    """An API server learns of new roles and bindings by a watch, so it may know some of them first."""
    deadline = time.monotonic() + PATIENCE
    while (found := rights(cluster, account, namespace)) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == expected


def rights(cluster: Cluster, account: str, namespace: str) -> Rights:
    who = f"system:serviceaccount:{names.NAMESPACE}:{account}"
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
