"""What the API server knows of the webhook and of MPIJobs.

The webhook works if it is registered and trusted, and a replica is ready. An object of the webhook
that this user may not read counts as correct.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    ENDPOINT_SLICES,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
)

Registration = Mapping[str, Any]

DEFINITION_PATH = CUSTOM_RESOURCE_DEFINITIONS.path(name=f"{MPI_JOBS.plural}.{MPI_JOBS.group}")

_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def read(client: ApiReader) -> Registration | None:
    """Return the webhook's registration; empty if it is absent, None if it cannot be read."""
    try:
        raw = await client.find(MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION))
    except errors.KubeError:
        return None
    return {} if raw is None else _decode(raw)


def home(registered: Registration | None) -> str:
    """Return the namespace of webhook and controller.

    The default namespace if the registration does not show it.
    """
    services = (hook["clientConfig"].get("service") for hook in _hooks(registered))
    return next((str(service["namespace"]) for service in services if service), names.NAMESPACE)


def _hooks(registered: Registration | None) -> Sequence[dict[str, Any]]:
    return (registered or {}).get("webhooks") or ()


async def trouble(client: ApiReader, registered: Registration | None) -> str:
    """Return the reason why the API server cannot call the webhook.

    "" if it can, or if nobody knows.
    """
    if registered is None:
        return ""
    if not registered:
        return (
            "the API server does not call the webhook of mpijob-elastic "
            "(no MutatingWebhookConfiguration)"
        )
    config: dict[str, Any] = next((hook["clientConfig"] for hook in _hooks(registered)), {})
    if not config.get("caBundle"):
        return "the API server cannot trust the webhook (caBundle is empty)"
    service = config.get("service")
    if service and not await _is_ready(client, service["namespace"], service["name"]):
        return "no replica of the webhook is ready"
    return ""


async def _is_ready(client: ApiReader, namespace: str, service: str) -> bool:
    """Return True if the Service has a ready endpoint, or if its endpoints cannot be read."""
    selector = f"kubernetes.io/service-name={service}"
    try:
        slices = await list_objects(
            client, ENDPOINT_SLICES.path(namespace), _decode, selector=selector
        )
    except errors.KubeError:
        return True
    # An absent condition means ready.
    ends = [end for part in slices for end in part.get("endpoints") or ()]
    return any(end.get("conditions", {}).get("ready") is not False for end in ends)


async def is_left_out(client: ApiReader, namespace: str, home: str) -> bool:
    """Return True if the API server does not ask the webhook for objects of a namespace.

    So it is for system namespaces, for that of the webhook itself (`home`), and for a namespace
    with the label that opts out. False if the label cannot be read.
    """
    if namespace in {*names.NOT_FOR_JOBS, home}:
        return True
    try:
        raw = await client.find(NAMESPACES.path(name=namespace))
    except errors.KubeError:
        return False
    labels = _decode(raw)["metadata"].get("labels", {}) if raw else {}
    return bool(labels.get(names.NAMESPACE_OPT_OUT) == "disabled")


def keeps_selector(raw: bytes) -> bool:
    """Return True if this CustomResourceDefinition keeps the selector of workers.

    Its subresource scale must read the selector, and no schema may prune it. Raises
    msgspec.DecodeError if this is no JSON object.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
    """
    spec = msgspec.json.decode(raw, type=dict[str, Any]).get("spec", {})
    versions = {found.get("name"): found for found in spec.get("versions", ())}
    version: dict[str, Any] = versions.get(MPI_JOBS.version, {})
    scale = version.get("subresources", {}).get("scale", {})
    if scale.get("labelSelectorPath") != "." + ".".join(names.SELECTOR_PATH):
        return False
    return bool(spec.get("preserveUnknownFields")) or _keeps(
        version.get("schema", {}).get("openAPIV3Schema", {})
    )


def _keeps(schema: Mapping[str, Any]) -> bool:
    for name in names.SELECTOR_PATH:
        child = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if not isinstance(child, Mapping):
            return bool(child or schema.get("x-kubernetes-preserve-unknown-fields"))
        schema = child
    return True
