"""Adapt the manifests to an image, a namespace, an older API server. Pure."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install.objects import Manifest

# The namespace of the jobs in manifests/single-namespace.yaml.
NAMESPACE_PLACEHOLDER = "your-namespace"
# The first minor version of Kubernetes 1 with these.
ADMISSION_POLICIES_SINCE = 30
# The Roles by which the webhook marks pods that are evicted, harmless only where a policy limits what it writes.
RIGHTS_TO_EVICT = "mpijob-elastic-evictions"


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
    if minor >= ADMISSION_POLICIES_SINCE:
        return list(manifests)
    kept = (manifest for manifest in manifests if manifest["metadata"]["name"] != RIGHTS_TO_EVICT)
    return [_without_evictions(manifest) if "webhooks" in manifest else manifest for manifest in kept]


def _without_evictions(configuration: Manifest) -> Manifest:
    hooks = [hook for hook in configuration["webhooks"] if hook["name"] != names.EVICTIONS_HOOK]
    return {**configuration, "webhooks": hooks}


def _replaced(value: Any, namespaces: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(part, namespaces) for key, part in value.items()}
    if value == [NAMESPACE_PLACEHOLDER]:
        return list(namespaces)
    if isinstance(value, list):
        return [_replaced(part, namespaces) for part in value]
    return " ".join(namespaces) if value == NAMESPACE_PLACEHOLDER else value
