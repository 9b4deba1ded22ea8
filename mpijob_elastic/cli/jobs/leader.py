"""The Lease of the controllers: whether one of them is at work."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

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
# Seconds for which a command looks again at a Lease that seems to have no leader: another
# controller takes over a Lease that was released, or the clock of this machine is wrong.
AGAIN = 3.0
# Seconds between two of these looks.
_PAUSE = 0.5
_LEASE = msgspec.json.Decoder(LeaseObject)


async def lease(client: ApiReader, namespace: str) -> LeaseObject | None:
    """Return the controllers' Lease in the namespace.

    A Lease that does not exist comes without a name. None if the Lease cannot be read.
    """
    with suppress(errors.KubeError):
        return await read_lease(client, namespace)
    return None


async def read_lease(client: ApiReader, namespace: str) -> LeaseObject:
    """Return the same. Raises `errors.KubeError` if the Lease cannot be read."""
    found = await client.find(LEASES.path(namespace, names.LEASE))
    return _LEASE.decode(found) if found else LeaseObject(metadata=ObjectMeta())


def no_lease(namespace: str) -> str:
    """Return what `controller_trouble` says of a namespace without a Lease."""
    return f"mpijob-elastic is not installed in namespace {namespace} (no Lease {names.LEASE})"


async def is_renewed(
    read: Callable[[], Awaitable[LeaseObject | None]], first: LeaseObject, *, within: float
) -> bool:
    """Return True once a holder has written a Lease anew, or the Lease cannot be read any more.

    within: the seconds for which the Lease is looked at.
    """
    pause = min(_PAUSE, within)
    looks = round(within / pause) if pause else 1
    for _ in range(looks):
        await asyncio.sleep(pause)
        again = await read()
        if again is None or _is_held_anew(first, again):
            return True
    return False


def _is_held_anew(first: LeaseObject, again: LeaseObject) -> bool:
    if not again.spec.holder_identity:
        return False
    return again.metadata.resource_version != first.metadata.resource_version


async def controller_trouble(
    read: Callable[[], Awaitable[LeaseObject | None]], *, namespace: str, now: float
) -> str:
    """Return the reason why no controller is at work, "" if a controller is or if nobody knows.

    A Lease that looks old is read again, because the clock of this machine may be wrong, and so is
    one without a holder, because another controller takes it over. read: returns the Lease.
    """
    first = await read()
    if first is None:
        return ""
    if first.metadata.name == "":
        return no_lease(namespace)
    if not first.spec.holder_identity:
        taken = await is_renewed(read, first, within=AGAIN)
        return "" if taken else f"{NO_HOLDER} (the Lease has no holder)"
    age = now - (seconds(first.spec.renew_time) or 0.0)
    if 0.0 <= age < RENEWED_WITHIN:
        return ""
    if await is_renewed(read, first, within=RENEWED_WITHIN):
        return ""
    return (
        f"{NOBODY} (the last leader renewed the Lease "
        f"{phrases.duration(round(max(RENEWED_WITHIN, age)))} ago)"
    )
