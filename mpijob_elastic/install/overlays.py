"""The rendered manifests in this package, combined, and adapted to what is installed where.

They are adapted to an image, to namespaces, and to an older API server.

`manifests/default.yaml` is `kubectl kustomize config/overlays/default`. The other files hold what
an overlay adds or changes, as whole objects, and what it removes; a test compares every combination
with kustomize.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from enum import StrEnum
from importlib import resources
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install.objects import Manifest, by_identity, identity
from mpijob_elastic.kube import kubectl_yaml

DEFAULT = "default"
# The namespace of the jobs in manifests/single-namespace.yaml.
NAMESPACE_PLACEHOLDER = "your-namespace"
# The first minor version of Kubernetes 1 that has admission policies.
ADMISSION_POLICIES_SINCE = 30
# The Roles by which the webhook marks pods that are evicted. They are harmless only where a policy
# limits what the webhook writes.
RIGHTS_TO_EVICT = "mpijob-elastic-evictions"
# The RoleBinding of the overlay user-roles by which a group reads the controllers' Lease, and the
# group that it has without a choice: everybody whom the API server knows.
LEASE_READERS = "mpijob-elastic-status"
EVERYBODY = "system:authenticated"
# The webhook's option for an installation that leaves the labels of pods as they are.
LEAVES_LABELS = "--no-template-labels"


class Overlay(StrEnum):
    """An overlay that can be added to the default."""

    CERT_MANAGER = "cert-manager"
    SINGLE_NAMESPACE = "single-namespace"
    PROMETHEUS = "prometheus"
    ET_OPERATOR = "et-operator"
    USER_ROLES = "user-roles"


# The files with differences, and the overlays that make them. With two overlays, some objects are
# as with neither of the two alone.
DIFFERENCES: Mapping[str, tuple[Overlay, ...]] = {
    **{overlay.value: (overlay,) for overlay in Overlay},
    "cert-manager+single-namespace": (Overlay.CERT_MANAGER, Overlay.SINGLE_NAMESPACE),
    "et-operator+single-namespace": (Overlay.SINGLE_NAMESPACE, Overlay.ET_OPERATOR),
}


def combined(overlays: Collection[Overlay]) -> list[Manifest]:
    """Return the manifests of the default with these overlays."""
    result = by_identity(_read(DEFAULT))
    for manifest in [
        one
        for name, needed in DIFFERENCES.items()
        if {*needed} <= {*overlays}
        for one in _read(name)
    ]:
        if manifest.get("$patch") == "delete":
            result.pop(identity(manifest), None)  # another overlay may have removed it
        else:
            result[identity(manifest)] = manifest
    return list(result.values())


def rendered(name: str) -> list[Manifest]:
    """Return the manifests of the default, or of the default with one overlay."""
    return combined([] if name == DEFAULT else [Overlay(name)])


def _read(name: str) -> list[Manifest]:
    text = (
        resources.files("mpijob_elastic.install").joinpath("manifests", f"{name}.yaml").read_text()
    )
    return kubectl_yaml.read_all(text)


def with_image(manifests: Iterable[Manifest], image: str) -> list[Manifest]:
    """Return the manifests with this image in every container."""
    changed = deepcopy(list(manifests))
    for manifest in changed:
        if manifest["kind"] == "Deployment":
            for container in manifest["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
    return changed


def without_template_labels(manifests: Iterable[Manifest]) -> list[Manifest]:
    """Return the manifests of a webhook that does not put labels of pod templates back.

    They are those of the component no-template-labels.
    """
    changed = deepcopy(list(manifests))
    for manifest in changed:
        if (manifest["kind"], manifest["metadata"]["name"]) == ("Deployment", names.WEBHOOK):
            [webhook] = manifest["spec"]["template"]["spec"]["containers"]
            webhook["args"].append(LEAVES_LABELS)
    return changed


def with_lease_readers(manifests: Iterable[Manifest], group: str) -> list[Manifest]:
    """Return the manifests where this group reads the controllers' Lease; nobody does for ""."""
    changed = []
    for manifest in manifests:
        if (manifest["kind"], manifest["metadata"]["name"]) != ("RoleBinding", LEASE_READERS):
            changed.append(manifest)
        elif group:
            [subject] = manifest["subjects"]
            changed.append({**manifest, "subjects": [{**subject, "name": group}]})
    return changed


def for_jobs_in(manifests: Iterable[Manifest], namespaces: Sequence[str]) -> list[Manifest]:
    """Return the manifests that manage only the jobs of these namespaces.

    They are those of the overlay single-namespace.
    """
    changed = []
    for manifest in manifests:
        is_inside = manifest["metadata"].get("namespace") == NAMESPACE_PLACEHOLDER
        changed += [
            _replaced(manifest, some)
            for some in (([one] for one in namespaces) if is_inside else [namespaces])
        ]
    return changed


def for_version(manifests: Iterable[Manifest], minor: int) -> list[Manifest]:
    """Return the manifests without what Kubernetes 1.`minor` does not know."""
    if minor >= ADMISSION_POLICIES_SINCE:
        return list(manifests)
    kept = (manifest for manifest in manifests if manifest["metadata"]["name"] != RIGHTS_TO_EVICT)
    return [
        _without_evictions(manifest) if "webhooks" in manifest else manifest for manifest in kept
    ]


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
