"""Namespaces that an upgrade creates, marks with the purpose, and deletes again."""

import contextlib
from collections.abc import Mapping

from mpijob_elastic import names
from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter

CREATED = f"{names.PREFIX}created-by-upgrade"
# Values of that annotation: our own namespace, created to keep the record in, and that of the canary.
FOR_RECORD = "true"
FOR_CANARY = "canary"


async def find(client: ApiReader, name: str) -> ObjectMeta | None:
    """Return the namespace's metadata, None if there is none. Raises `errors.KubeError`."""
    raw = await client.find(NAMESPACES.path(name=name))
    return None if raw is None else wire.read_stub(raw).metadata


async def created(client: ApiReader, name: str, purpose: str) -> bool:
    """Return True if the namespace exists and was created for this purpose. Raises `errors.KubeError`."""
    found = await find(client, name)
    return found is not None and found.annotations.get(CREATED) == purpose


async def ensure(client: ApiWriter, name: str, purpose: str, *, labels: Mapping[str, str]) -> None:
    """Create the namespace unless it exists. Raises `errors.KubeError`."""
    metadata = {"name": name, "labels": labels, "annotations": {CREATED: purpose}}
    if await find(client, name) is None:
        with contextlib.suppress(errors.AlreadyExists):  # somebody else was faster
            await client.create_object(
                NAMESPACES.path(), body={"apiVersion": "v1", "kind": NAMESPACES.kind, "metadata": metadata}
            )


async def delete(client: ApiWriter, name: str) -> None:
    """Delete the namespace, if it is still there. Raises `errors.KubeError`."""
    with contextlib.suppress(errors.NotFound):
        await client.delete_object(NAMESPACES.path(name=name))
