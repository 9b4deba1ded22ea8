"""Adapt the manifests to an image, a namespace, an older API server. Pure."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, VALIDATING_WEBHOOKS

# The namespace of the jobs in manifests/single-namespace.yaml.
NAMESPACE_PLACEHOLDER = "your-namespace"
# The first minor versions of Kubernetes 1 with these fields.
MATCH_CONDITIONS_SINCE = 28
EVICTION_OF_UNHEALTHY_SINCE = 26
ADMISSION_POLICIES_SINCE = 30
# The Roles by which the webhook marks pods that are evicted, harmless only where a policy limits what it writes.
RIGHTS_TO_EVICT = "mpijob-elastic-evictions"
# Without conditions, the hooks on these resources would see all ConfigMaps and statuses.
_CONDITIONAL = {CONFIG_MAPS.plural, f"{MPI_JOBS.plural}/status"}


def with_image(manifests: Iterable[Manifest], image: str) -> list[Manifest]:
    """Return the manifests with this image in every container."""
    changed = deepcopy(list(manifests))
    for manifest in changed:
        if manifest["kind"] == "Deployment":
            for container in manifest["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
    return changed


def for_jobs_in(manifests: Iterable[Manifest], namespaces: Sequence[str]) -> list[Manifest]:
    """Return the manifests that manage the jobs of these namespaces only (overlay single-namespace)."""
    changed = []
    for manifest in manifests:
        is_inside = manifest["metadata"].get("namespace") == NAMESPACE_PLACEHOLDER
        changed += [
            _replaced(manifest, some) for some in (([one] for one in namespaces) if is_inside else [namespaces])
        ]
    return changed


def for_version(manifests: Iterable[Manifest], minor: int) -> list[Manifest]:
    """Return the manifests without what Kubernetes 1.`minor` does not know."""
    left_out = RIGHTS_TO_EVICT if minor < ADMISSION_POLICIES_SINCE else ""
    return [_for_version(manifest, minor) for manifest in manifests if manifest["metadata"]["name"] != left_out]


def _for_version(manifest: Manifest, minor: int) -> Manifest:
    if manifest["kind"] == VALIDATING_WEBHOOKS.kind and minor < ADMISSION_POLICIES_SINCE:
        hooks = [hook for hook in manifest["webhooks"] if hook["name"] != names.EVICTIONS_HOOK]
        manifest = {**manifest, "webhooks": hooks}
    if manifest["kind"].endswith("WebhookConfiguration") and minor < MATCH_CONDITIONS_SINCE:
        return _without_match_conditions(manifest)
    if manifest["kind"] == "PodDisruptionBudget" and minor < EVICTION_OF_UNHEALTHY_SINCE:
        known = {key: value for key, value in manifest["spec"].items() if key != "unhealthyPodEvictionPolicy"}
        return {**manifest, "spec": known}
    return manifest


def _without_match_conditions(configuration: Manifest) -> dict[str, Any]:
    """Drop the conditions, and the hooks that need them.

    The controller adds key and selector itself. For pods the labels are narrow enough.
    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions
    """
    hooks = configuration["webhooks"]
    kept = [hook for hook in hooks if not any(_CONDITIONAL & {*rule["resources"]} for rule in hook["rules"])]
    stripped = [{field: value for field, value in hook.items() if field != "matchConditions"} for hook in kept]
    return {**configuration, "webhooks": stripped}


def _replaced(value: Any, namespaces: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(part, namespaces) for key, part in value.items()}
    if value == [NAMESPACE_PLACEHOLDER]:
        return list(namespaces)
    if isinstance(value, list):
        return [_replaced(part, namespaces) for part in value]
    return " ".join(namespaces) if value == NAMESPACE_PLACEHOLDER else value
