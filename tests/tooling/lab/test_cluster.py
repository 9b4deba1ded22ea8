"""The lab is a real cluster: its API authorizes and audits."""

import json
import stat

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from tests.lab.waiting import may


def test_a_service_account_may_do_what_its_role_says_and_nothing_else(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "-n", namespace, "serviceaccount", "reader")
    cluster.kubectl("create", "-n", namespace, "role", "reader", "--verb=get,list", "--resource=configmaps")
    binding = ("rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader")
    cluster.kubectl("create", "-n", namespace, *binding)
    may(cluster, "reader", "list", "configmaps", namespace=namespace)
    kubeconfig = cluster.service_account_kubeconfig(namespace, "reader")
    assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
    assert "kube-root-ca.crt" in cluster.kubectl("get", "configmaps", kubeconfig=kubeconfig)
    for forbidden in (
        ("get", "pods"),
        ("get", "configmaps", "-n", "default"),
        ("delete", "configmap", "kube-root-ca.crt"),
    ):
        with pytest.raises(LabError, match=f'forbidden: User "system:serviceaccount:{namespace}:reader"'):
            cluster.kubectl(*forbidden, kubeconfig=kubeconfig)


def test_the_audit_log_names_who_wrote_what(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "-n", namespace, "configmap", "c")
    cluster.kubectl("get", "-n", namespace, "configmap", "c")
    cluster.kubectl("delete", "-n", namespace, "configmap", "c")
    events = [json.loads(line) for line in cluster.audit_log.read_text().splitlines()]
    about_c = [
        event
        for event in events
        if event["objectRef"].get("namespace") == namespace and event["objectRef"].get("name") == "c"
    ]
    assert [(event["verb"], event["user"]["username"]) for event in about_c] == [
        ("create", "lab-admin"),
        ("delete", "lab-admin"),
    ]
    assert all(event["stageTimestamp"] and event["level"] == "Metadata" for event in about_c)
