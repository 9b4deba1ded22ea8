"""Adapt the manifests to an image, a namespace, an older API server. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mpijob_elastic.install.objects import Manifest
from webhook.rules.registration import without_match_conditions

# The namespace of the jobs in manifests/single-namespace.yaml.
NAMESPACE_PLACEHOLDER = "your-namespace"
# The first minor versions of Kubernetes 1 with these fields.
MATCH_CONDITIONS_SINCE = 28
EVICTION_OF_UNHEALTHY_SINCE = 26

Change = Callable[[Manifest], Manifest]


def tailored(manifests: Iterable[Manifest], changes: Iterable[Change]) -> list[Manifest]:
    """Return the manifests after every change, in this order."""
    result = list(manifests)
    for change in changes:
        result = [change(manifest) for manifest in result]
    return result


def with_image(image: str) -> Change:
    """Return the change that runs this image in every container."""

    def change(manifest: Manifest) -> Manifest:
        if manifest["kind"] != "Deployment":
            return manifest
        pod = manifest["spec"]["template"]["spec"]
        containers = [{**container, "image": image} for container in pod["containers"]]
        return _with(manifest, ("spec", "template", "spec", "containers"), containers)

    return change


def for_jobs_in(namespace: str) -> Change:
    """Return the change that manages the jobs of this namespace only (overlay single-namespace)."""

    def change(manifest: Manifest) -> Manifest:
        result: Manifest = _replaced(manifest, namespace)
        return result

    return change


def for_version(minor: int) -> Change:
    """Return the change that leaves out what Kubernetes 1.`minor` does not know."""

    def change(manifest: Manifest) -> Manifest:
        if manifest["kind"].endswith("WebhookConfiguration") and minor < MATCH_CONDITIONS_SINCE:
            return without_match_conditions(manifest)
        if manifest["kind"] == "PodDisruptionBudget" and minor < EVICTION_OF_UNHEALTHY_SINCE:
            known = {key: value for key, value in manifest["spec"].items() if key != "unhealthyPodEvictionPolicy"}
            return {**manifest, "spec": known}
        return manifest

    return change


def _with(manifest: Manifest, path: tuple[str, ...], value: object) -> dict[str, Any]:
    key, *rest = path
    return {**manifest, key: _with(manifest[key], tuple(rest), value) if rest else value}


def _replaced(value: Any, namespace: str) -> Any:  # noqa: ANN401 - any part of a manifest
    if isinstance(value, dict):
        return {key: _replaced(part, namespace) for key, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, namespace) for part in value]
    in_argument = f"--namespace={NAMESPACE_PLACEHOLDER}"
    return {NAMESPACE_PLACEHOLDER: namespace, in_argument: f"--namespace={namespace}"}.get(value, value)
