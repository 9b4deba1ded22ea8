"""Controller and webhook run with nothing but the tokens of their ServiceAccounts, and end when they are told to."""

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from tests.lab.controllers import awaited_leader

pytestmark = pytest.mark.lab


def test_controllers_share_the_lease_of_the_installation(cluster: Cluster, installed: Installed) -> None:
    with Controller.start(cluster, installed) as first, Controller.start(cluster, installed) as second:
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
