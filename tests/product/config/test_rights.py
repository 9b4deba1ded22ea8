"""Rights that no manifest may grant, in any overlay."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import DEFAULT_QUEUE, LOCAL_QUEUES
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
        if {"secrets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"} & {
            *rule["resources"]
        }:
            # RBAC cannot limit a create by name.
            assert rule.get("resourceNames") or rule["verbs"] == ["create"], rule


def of_program(overlay: str, kind: str, name: str, namespace: str | None = None) -> list[Any]:
    found = [
        one
        for one in overlays.rendered(overlay)
        if (one["kind"], name_of(one)) == (kind, (name, namespace))
    ]
    return [one["rules"] for one in found]


def test_one_namespace_gets_the_rules_of_the_cluster() -> None:
    cluster_wide = of_program(overlays.DEFAULT, "ClusterRole", names.CONTROLLER)
    assert len(cluster_wide) == 1
    assert (
        of_program(Overlay.SINGLE_NAMESPACE, "Role", names.CONTROLLER, "your-namespace")
        == cluster_wide
    )
    assert of_program(Overlay.SINGLE_NAMESPACE, "ClusterRole", names.CONTROLLER) == []


def test_in_one_namespace_the_webhook_knows_jobs_and_quotas_of_that_one() -> None:
    [narrow] = of_program(Overlay.SINGLE_NAMESPACE, "Role", names.WEBHOOK, "your-namespace")
    for overlay, more in ((overlays.DEFAULT, narrow), (Overlay.SINGLE_NAMESPACE, [])):
        [[queues, *rest]] = of_program(overlay, "ClusterRole", names.WEBHOOK)
        assert queues["resources"] == ["queues"]  # which have no namespace
        assert rest == more


@pytest.mark.parametrize("overlay", RENDERED)
def test_local_queues_only_by_the_name_that_the_webhook_watches(overlay: str) -> None:
    found = [rule for rule in rules(overlay) if LOCAL_QUEUES.plural in rule["resources"]]
    assert {(*rule["resourceNames"], *rule["verbs"]) for rule in found} == {
        (DEFAULT_QUEUE, "list", "watch")
    }


@pytest.mark.parametrize("more", [(), (Overlay.SINGLE_NAMESPACE,)])
def test_with_cert_manager_the_webhook_only_reads(more: tuple[Overlay, ...]) -> None:
    manifests = {
        (one["kind"], name_of(one)): one for one in overlays.combined((Overlay.CERT_MANAGER, *more))
    }
    bindings = [
        one
        for one in manifests.values()
        if "subjects" in one and one["subjects"][0]["name"] == names.WEBHOOK
    ]
    granted = [
        (one["roleRef"]["kind"], (one["roleRef"]["name"], one["metadata"].get("namespace")))
        for one in bindings
    ]
    rules = [rule for role in granted for rule in manifests[role]["rules"]]
    assert {resource for rule in rules for resource in rule["resources"]} == {
        "mpijobs",
        "queues",
        "resourcequotas",
        "limitranges",
        "poddisruptionbudgets",
        "localqueues",
    }
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


def name_of(manifest: Manifest) -> tuple[str, str | None]:
    return manifest["metadata"]["name"], manifest["metadata"].get("namespace")


def rules(overlay: str) -> list[dict[str, Any]]:
    roles = [one for one in overlays.rendered(overlay) if one["kind"] in ("Role", "ClusterRole")]
    return [dict(rule) for role in roles for rule in role["rules"]]
