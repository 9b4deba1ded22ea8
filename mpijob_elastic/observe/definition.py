"""Read now and then from the MPIJob definition if it keeps the workers' selector of the subresource scale.

The selector is useful only if that subresource reads it, and stays only if no schema prunes it.
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-pruning
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Never

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS
from mpijob_elastic.observe.caches import Caches

log = logging.getLogger(__name__)

# Seconds between two reads: a definition changes with an upgrade, and a minute is soon enough then.
EVERY = 60.0
SELECTOR = ("status", "replicaStatuses", "Worker", "selector")
_PATH = CUSTOM_RESOURCE_DEFINITIONS.path(name=f"{MPI_JOBS.plural}.{MPI_JOBS.group}")


async def follow(client: ApiReader, caches: Caches) -> Never:
    """Read at once and then every minute, until cancelled; a failed read changes nothing."""
    while True:
        try:
            caches.see_definition(keeps_selector=keeps_selector(await client.get(_PATH)))
        except (errors.KubeError, msgspec.DecodeError) as error:
            log.warning("the MPIJob definition cannot be read, so selectors are left to the webhook: %s", error)
        await asyncio.sleep(EVERY)


def keeps_selector(raw: bytes) -> bool:
    """Return True if this CustomResourceDefinition keeps it. Raises msgspec.DecodeError if it is no JSON object."""
    spec = msgspec.json.decode(raw, type=dict[str, Any]).get("spec", {})
    version: dict[str, Any] = next(
        (found for found in spec.get("versions", ()) if found["name"] == MPI_JOBS.version), {}
    )
    scale = version.get("subresources", {}).get("scale", {})
    if scale.get("labelSelectorPath") != "." + ".".join(SELECTOR):
        return False
    return bool(spec.get("preserveUnknownFields")) or _keeps(version.get("schema", {}).get("openAPIV3Schema", {}))


def _keeps(schema: Mapping[str, Any]) -> bool:
    for name in SELECTOR:
        child = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if not isinstance(child, Mapping):
            return bool(child or schema.get("x-kubernetes-preserve-unknown-fields"))
        schema = child
    return True
