"""Rights that no manifest may grant, in any overlay."""

from typing import Any

import pytest

from mpijob_elastic.install import overlays
from mpijob_elastic.install.overlays import Overlay

RENDERED = [overlays.DEFAULT, *Overlay]
TOO_MUCH = {"*", "escalate", "bind", "impersonate", "deletecollection"}


@pytest.mark.parametrize("overlay", RENDERED)
def test_no_wildcard_and_no_verb_that_grants_more(overlay: str) -> None:
    for rule in rules(overlay):
        assert not TOO_MUCH & {*rule["verbs"], *rule["resources"], *rule["apiGroups"]}, rule


@pytest.mark.parametrize("overlay", RENDERED)
def test_secrets_and_hooks_only_by_name(overlay: str) -> None:
    for rule in rules(overlay):
        if {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"} & {*rule["resources"]}:
            # RBAC cannot limit a create by name.
            assert rule.get("resourceNames") or rule["verbs"] == ["create"], rule


def test_one_namespace_gets_the_rules_of_the_cluster() -> None:
    [cluster_wide] = [role for role in roles(overlays.DEFAULT) if is_controllers(role, "ClusterRole")]
    [narrow] = [
        role
        for role in roles(Overlay.SINGLE_NAMESPACE)
        if is_controllers(role, "Role") and role["metadata"]["namespace"] == "your-namespace"
    ]
    assert narrow["rules"] == cluster_wide["rules"]
    assert not [role for role in roles(Overlay.SINGLE_NAMESPACE) if is_controllers(role, "ClusterRole")]


def test_in_one_namespace_the_webhook_knows_jobs_and_autoscalers_of_that_one() -> None:
    [narrow] = [role for role in roles(Overlay.SINGLE_NAMESPACE) if is_webhooks(role, "Role", "your-namespace")]
    for overlay, more in ((overlays.DEFAULT, narrow["rules"]), (Overlay.SINGLE_NAMESPACE, [])):
        [anywhere] = [role for role in roles(overlay) if is_webhooks(role, "ClusterRole", None)]
        own, *rest, queues = anywhere["rules"]
        assert own["apiGroups"] == ["admissionregistration.k8s.io"]
        assert queues["resources"] == ["queues"]  # which have no namespace
        assert rest == more


def is_webhooks(role: dict[str, Any], kind: str, namespace: str | None) -> bool:
    metadata = role["metadata"]
    return (role["kind"], metadata["name"], metadata.get("namespace")) == (kind, "mpijob-elastic-webhook", namespace)


def is_controllers(role: dict[str, Any], kind: str) -> bool:
    return bool(role["kind"] == kind and role["metadata"]["name"] == "mpijob-elastic-controller")


def roles(overlay: str) -> list[dict[str, Any]]:
    return [dict(one) for one in overlays.rendered(overlay) if one["kind"] in ("Role", "ClusterRole")]


def rules(overlay: str) -> list[dict[str, Any]]:
    return [rule for role in roles(overlay) for rule in role["rules"]]
