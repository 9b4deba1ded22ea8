from typing import Any

import pytest

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


def test_the_namespace_of_the_jobs_is_named_everywhere() -> None:
    manifests = for_jobs_in(overlays.rendered("single-namespace"), "team-a")
    text = str(manifests)
    assert "your-namespace" not in text
    assert "--namespace=team-a" in text
    assert {one["metadata"].get("namespace", "") for one in manifests} == {"", "mpijob-elastic", "team-a"}
    hooks = [hook for kind in ("Mutating", "Validating") for hook in configuration(manifests, kind)["webhooks"]]
    for hook in hooks:
        assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a"]


@pytest.mark.parametrize("minor", [28, 34])
def test_a_new_api_server_gets_everything(minor: int) -> None:
    manifests = overlays.rendered("default")
    assert for_version(manifests, minor) == manifests


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
