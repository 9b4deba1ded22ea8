from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.install import overlays
from mpijob_elastic.install.customize import for_jobs_in, for_version, with_image
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay


def of_kind(manifests: list[Manifest], kind: str) -> list[Any]:
    return [one for one in manifests if one["kind"] == kind]


def test_the_image_runs_in_every_container() -> None:
    manifests = with_image(overlays.rendered("default"), "here/it:1")
    containers = [
        one for each in of_kind(manifests, "Deployment") for one in each["spec"]["template"]["spec"]["containers"]
    ]
    assert [(one["name"], one["image"]) for one in containers] == [
        ("controller", "here/it:1"),
        ("webhook", "here/it:1"),
    ]


def test_the_namespaces_of_the_jobs_are_named_everywhere() -> None:
    manifests = for_jobs_in(overlays.rendered("single-namespace"), ["team-a", "team-b"])
    assert "your-namespace" not in str(manifests)
    for deployment in of_kind(manifests, "Deployment"):
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": "team-a team-b"}]
    rights = [one for kind in ("Role", "RoleBinding") for one in of_kind(manifests, kind)]
    names_in = {
        team: [one["metadata"]["name"] for one in rights if one["metadata"]["namespace"] == team]
        for team in ("team-a", "team-b")
    }
    assert names_in["team-a"] == names_in["team-b"]
    assert set(names_in["team-a"]) == {names.CONTROLLER, names.WEBHOOK, "mpijob-elastic-evictions"}
    assert {one["metadata"].get("namespace", "") for one in manifests} == {"", names.NAMESPACE, "team-a", "team-b"}
    hooks = [hook for kind in ("Mutating", "Validating") for hook in configuration(manifests, kind)["webhooks"]]
    for hook in hooks:
        assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a", "team-b"]


@pytest.mark.parametrize("minor", [30, 34])
def test_a_new_api_server_gets_everything(minor: int) -> None:
    manifests = overlays.rendered("default")
    assert for_version(manifests, minor) == manifests


@pytest.mark.parametrize("overlay", ["default", Overlay.SINGLE_NAMESPACE])
def test_before_admission_policies_the_webhook_may_not_mark_pods(overlay: str) -> None:
    manifests = overlays.rendered(overlay)
    gone = [one for one in manifests if one not in for_version(manifests, 29)]
    roles = [one for one in gone if one["kind"] in ("Role", "ClusterRole")]
    assert [rule["resources"] for one in roles for rule in one["rules"]] == [["pods"], ["pods/eviction"]]
    rest = [one for one in for_version(manifests, 29) if one["kind"] in ("Role", "ClusterRole")]
    assert names.EVICTIONS_HOOK in str(configuration(manifests, "Validating"))
    assert names.EVICTIONS_HOOK not in str(configuration(for_version(manifests, 29), "Validating"))
    assert not [one for one in rest if "webhook" in one["metadata"]["name"] and "pods" in str(one["rules"])]


def test_before_match_conditions_config_maps_are_not_asked_about() -> None:
    manifests = for_version(overlays.rendered("default"), 27)
    hooks = configuration(manifests, "Mutating")["webhooks"]
    assert [hook["rules"][0]["resources"] for hook in hooks] == [["pods"]] * 2
    assert not any("matchConditions" in hook for hook in hooks)
    assert of_kind(manifests, "PodDisruptionBudget") == of_kind(overlays.rendered("default"), "PodDisruptionBudget")


def test_before_eviction_of_unhealthy_pods() -> None:
    for budget in of_kind(for_version(overlays.rendered("default"), 25), "PodDisruptionBudget"):
        assert budget["spec"].keys() == {"maxUnavailable", "selector"}


def test_only_one_overlay_has_the_placeholder() -> None:
    for overlay in ("default", Overlay.CERT_MANAGER, Overlay.PROMETHEUS):
        assert "your-namespace" not in str(overlays.rendered(overlay))


def configuration(manifests: list[Manifest], kind: str) -> Any:
    [one] = of_kind(manifests, f"{kind}WebhookConfiguration")
    return one
