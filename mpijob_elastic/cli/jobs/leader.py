"""The Lease of the controllers: whether one of them is at work."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.lease import LeaseObject
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import LEASES
from mpijob_elastic.model import phrases
from mpijob_elastic.model.json_parts import seconds

NO_HOLDER = "no controller of mpijob-elastic is the leader"
NOBODY = "no controller of mpijob-elastic is running"
# Seconds. A leader renews the Lease every 2 s, and at the latest after 10 s.
RENEWED_WITHIN = 10.0
_LEASE = msgspec.json.Decoder(LeaseObject)


async def lease(client: ApiReader, namespace: str) -> LeaseObject | None:
    """Return the controllers' Lease in the namespace.

    A Lease that does not exist comes without a name. None if the Lease cannot be read.
    """
    try:
        return _LEASE.decode(await client.get(LEASES.path(namespace, names.LEASE)))
    except errors.NotFound:
        return LeaseObject(metadata=ObjectMeta())
    except errors.KubeError:
        return None


def no_lease(namespace: str) -> str:
    """Return what `controller_trouble` says of a namespace without a Lease."""
    return f"mpijob-elastic is not installed in namespace {namespace} (no Lease {names.LEASE})"


async def is_renewed(
    read: Callable[[], Awaitable[LeaseObject | None]], first: LeaseObject, *, within: float
) -> bool:
    """Return True if a Lease has changed after so many seconds, or cannot be read then."""
    await asyncio.sleep(within)
    again = await read()
    return again is None or again.metadata.resource_version != first.metadata.resource_version


async def controller_trouble(
    read: Callable[[], Awaitable[LeaseObject | None]], *, namespace: str, now: float
) -> str:
    """Return the reason why no controller is at work, "" if a controller is or if nobody knows.

    A Lease that looks old is read once more, because the clock of this machine may be wrong.
    read: returns the Lease.
    """
    first = await read()
    if first is None:
        return ""
    if first.metadata.name == "":
        return no_lease(namespace)
    if not first.spec.holder_identity:
        return f"{NO_HOLDER} (the Lease has no holder)"
    age = now - (seconds(first.spec.renew_time) or 0.0)
    if 0.0 <= age < RENEWED_WITHIN:
        return ""
    if await is_renewed(read, first, within=RENEWED_WITHIN):
        return ""
    return (
        f"{NOBODY} (the last leader renewed the Lease "
        f"{phrases.duration(round(max(RENEWED_WITHIN, age)))} ago)"
    )
