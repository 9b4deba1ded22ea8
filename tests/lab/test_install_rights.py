"""Both ServiceAccounts have the rights they use, and no other, as `kubectl auth can-i --list` shows; they suffice."""

import json
import time

import pytest

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.kube.client import connect
from tests.lab.command_line import CommandLine
from tests.lab.controllers import awaited_leader
from tests.lab.job import Job
from tests.lab.scalable import told
from tests.lab.waiting import PATIENCE, until

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
        ("podgroups.scheduling.k8s.io", ""): "create list patch watch",
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
        ("resourcequotas", ""): "list watch",
        ("limitranges", ""): "list watch",
        ("poddisruptionbudgets.policy", ""): "list watch",
        ("localqueues.kueue.x-k8s.io", "default"): "list watch",
        ("pods", ""): "get patch",
        ("pods/eviction", ""): "create",
        (
            "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            names.WEBHOOK_CONFIGURATION,
        ): "get patch",
        (
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
            names.WEBHOOK_CONFIGURATION,
        ): "get patch",
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


@pytest.fixture(scope="module")
def own_cluster(lab: CommandLine) -> Cluster:
    """A lab beside the session's, for installations in some namespaces only."""
    return lab.cluster


@pytest.fixture(scope="module")
def narrow(own_cluster: Cluster) -> Installed:
    """An installation for two namespaces."""
    return install_into(own_cluster, namespaces=("jobs", "others"))


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
@pytest.mark.usefixtures("narrow")
def test_rights_in_some_namespaces_only(own_cluster: Cluster, everybodys: Rights) -> None:
    everywhere = everybodys | WITHOUT_NAMESPACE
    for namespace in ("jobs", "others"):
        has(own_cluster, names.CONTROLLER, namespace, everywhere | ANYWHERE[names.CONTROLLER])
        has(own_cluster, names.WEBHOOK, namespace, everybodys | ANYWHERE[names.WEBHOOK])
    has(own_cluster, names.CONTROLLER, "default", everywhere)
    at_home = everywhere | IN_OUR_NAMESPACE[names.CONTROLLER]
    has(own_cluster, names.CONTROLLER, names.NAMESPACE, at_home)
    registrations = {
        right: verbs
        for right, verbs in ANYWHERE[names.WEBHOOK].items()
        if names.WEBHOOK_CONFIGURATION in right
    }
    has(own_cluster, names.WEBHOOK, "default", everybodys | registrations | QUEUES)


@pytest.mark.thorough
async def test_two_namespaces_are_managed_and_no_third(
    own_cluster: Cluster, narrow: Installed
) -> None:
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=own_cluster.kubeconfig
    ) as client:
        [first, second, third] = (
            Job(client=client, namespace=one) for one in ("jobs", "others", "default")
        )
        with Operator.start(own_cluster, qps=0, flags=["--threadiness=8"]):
            with Webhook.start(own_cluster, narrow), Controller.start(own_cluster, narrow):
                until(lambda: called(own_cluster, "jobs"))
                for job in (first, second, third):
                    await job.create(replicas=1)
                for job in (first, second):
                    await job.settled(1)
                    await job.scale(2)
                    await job.settled(2)
                await third.until(lambda state: "Running" in state.conditions, "all running")
                config = json.loads(
                    own_cluster.kubectl("get", f"configmap/{third.name}-config", "-o", "json")
                )
                assert names.KEY_DISCOVER_HOSTS not in config["data"]
            # Who may administer a namespace may take our Role away there. The jobs of others must
            # not notice.
            own_cluster.kubectl("delete", "rolebinding", "-n", "others", names.CONTROLLER)
            account = f"--as=system:serviceaccount:{names.NAMESPACE}:{names.CONTROLLER}"
            until(
                lambda: (
                    told(own_cluster, "auth", "can-i", "list", "mpijobs", "-n", "others", account)[
                        0
                    ]
                    != 0
                )
            )
            with Controller.start(own_cluster, narrow) as controller:
                await first.scale(3)
                await first.settled(3)
                assert "no rights in others" in controller.log.read_text()


def test_controllers_share_the_lease_of_the_installation(
    cluster: Cluster, installed: Installed
) -> None:
    with (
        Controller.start(cluster, installed) as first,
        Controller.start(cluster, installed) as second,
    ):
        leader = awaited_leader([first, second])
        assert leader.terminate() == 0
        [standby] = [one for one in (first, second) if one is not leader]
        assert awaited_leader([standby]) is standby
    for one in (first, second):
        # A namespace of another test may be going, which forbids Events to everybody.
        refused = [line for line in one.log.read_text().splitlines() if "Forbidden" in line]
        assert [line for line in refused if "is being terminated" not in line] == []
    assert (
        cluster.kubectl("get", "lease", "-n", names.NAMESPACE, "-o", "name")
        == f"lease.coordination.k8s.io/{names.LEASE}\n"
    )


def test_webhook_makes_its_certificates_and_ends(cluster: Cluster, installed: Installed) -> None:
    with Webhook.start(cluster, installed) as webhook:
        assert "mpijob_elastic_webhook_certificate_expiry_timestamp_seconds 1" in webhook.metrics()
        assert webhook.terminate() == 0
    assert "Forbidden" not in webhook.log.read_text()
    cluster.kubectl("get", "secret", "-n", names.NAMESPACE, names.CERTIFICATE_SECRET)


def has(cluster: Cluster, account: str, namespace: str, expected: Rights) -> None:
    """An API server learns of new roles and bindings by a watch, so it may know some of them first."""
    deadline = time.monotonic() + PATIENCE
    while (
        found := rights(cluster, account, namespace)
    ) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    assert found == expected


def rights(cluster: Cluster, account: str, namespace: str) -> Rights:
    who = f"system:serviceaccount:{names.NAMESPACE}:{account}"
    lines = cluster.kubectl(
        "auth", "can-i", "--list", "--no-headers", "-n", namespace, f"--as={who}"
    ).splitlines()
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
