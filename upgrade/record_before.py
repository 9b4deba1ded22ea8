"""Writing down what stands before the first change; once there is a record, it is the true one for ever."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any

from mpijob_elastic import __version__, names
from mpijob_elastic.install import inventory
from mpijob_elastic.install.objects import Identity, Manifest, identity
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import NAMESPACES
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import store
from upgrade.record import Record
from upgrade.refusal import Refused

# What our programs make for themselves in our namespace.
SECRETS = (names.CERTIFICATE_SECRET,)


async def keep(client: ApiWriter, applier: Applier, wanted: Iterable[Manifest], crd: Mapping[str, Any]) -> str:
    """Make sure that there is a record; what happened, in words. Raises `Refused` and `errors.KubeError`."""
    if await store.is_namespace_ending(client):
        raise Refused(
            f"namespace {names.NAMESPACE} is still ending, and a record in it would go with it; "
            "run the same command again when it is gone"
        )
    if kept := await store.read(client):
        await store.set_phase(client, store.Phase.APPLYING)
        return f"the state of {kept.record.taken_at} is recorded already and stays the one to go back to"
    await store.ensure_namespace(client)
    try:
        await store.write(client, await _take(client, applier, wanted, crd))
    except errors.AlreadyExists:
        return "somebody else has recorded the state before the upgrade just now; it stays the one to go back to"
    return f"the state before is recorded in Secret {names.NAMESPACE}/{store.NAME}"


async def _take(client: ApiWriter, applier: Applier, wanted: Iterable[Manifest], crd: Mapping[str, Any]) -> Record:
    known = {inventory.key(identity(one)) for one in inventory.manifests()}
    found = {one.identity for one in await inventory.find(client, applier.server, known)}
    served = {identity(one) for one in wanted if applier.server.serves(one)}
    return Record(
        taken_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        version=__version__,
        crd=dict(crd),
        objects=tuple([live for one in sorted(found | served) if (live := await _before(applier, one)) is not None]),
        secrets=tuple([name for name in SECRETS if await store.has_secret(client, name)]),
    )


async def _before(applier: Applier, one: Identity) -> dict[str, Any] | None:
    live = await applier.read(one)
    if live and one.kind == NAMESPACES.kind and store.CREATED in live["metadata"].get("annotations", {}):
        return None  # made a moment ago, to keep the record in
    # A list leaves out what it is a list of.
    return {**live, "apiVersion": one.api_version, "kind": one.kind} if live else None
