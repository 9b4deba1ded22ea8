"""Rights that no manifest may grant, in any overlay."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.objects import Manifest
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


def test_in_one_namespace_the_webhook_knows_jobs_and_quotas_of_that_one() -> None:
    [narrow] = [role for role in roles(Overlay.SINGLE_NAMESPACE) if is_webhooks(role, "Role", "your-namespace")]
    for overlay, more in ((overlays.DEFAULT, narrow["rules"]), (Overlay.SINGLE_NAMESPACE, [])):
        [anywhere] = [role for role in roles(overlay) if is_webhooks(role, "ClusterRole", None)]
        queues, *rest = anywhere["rules"]
        assert queues["resources"] == ["queues"]  # which have no namespace
        assert rest == more


@pytest.mark.parametrize("more", [(), (Overlay.SINGLE_NAMESPACE,)])
def test_with_cert_manager_the_webhook_only_reads(more: tuple[Overlay, ...]) -> None:
    manifests = {(one["kind"], name_of(one)): one for one in overlays.combined((Overlay.CERT_MANAGER, *more))}
    bindings = [one for one in manifests.values() if "subjects" in one and one["subjects"][0]["name"] == names.WEBHOOK]
    granted = [(one["roleRef"]["kind"], (one["roleRef"]["name"], one["metadata"].get("namespace"))) for one in bindings]
    rules = [rule for role in granted for rule in manifests[role]["rules"]]
    assert {resource for rule in rules for resource in rule["resources"]} == {
        "mpijobs",
        "queues",
        "resourcequotas",
    }
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def name_of(manifest: Manifest) -> tuple[str, str | None]:
    return manifest["metadata"]["name"], manifest["metadata"].get("namespace")


def is_webhooks(role: dict[str, Any], kind: str, namespace: str | None) -> bool:
    metadata = role["metadata"]
    return (role["kind"], metadata["name"], metadata.get("namespace")) == (kind, "mpijob-elastic-webhook", namespace)


def is_controllers(role: dict[str, Any], kind: str) -> bool:
    return bool(role["kind"] == kind and role["metadata"]["name"] == "mpijob-elastic-controller")


def roles(overlay: str) -> list[dict[str, Any]]:
    return [dict(one) for one in overlays.rendered(overlay) if one["kind"] in ("Role", "ClusterRole")]


def rules(overlay: str) -> list[dict[str, Any]]:
    return [rule for role in roles(overlay) for rule in role["rules"]]
