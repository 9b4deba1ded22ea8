"""Check that mpijob-elastic is installed and a controller is at work, for commands that need it.

One read of the Lease answers for a cluster where all is well. Other objects are read only where the
Lease is missing. Nothing is said where this user may not read the Lease, because then nobody knows.
"""

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import dependencies
from mpijob_elastic.kube.lease import LeaseObject
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model import phrases
from mpijob_elastic.model.wire import seconds
from mpijob_elastic.observe import registration

# Seconds without a renewal after which nobody leads. A leader renews the Lease every 2 s; the rest
# is for clocks that differ, because a command does not wait for a second look.
SILENT = 60.0


@dataclass(frozen=True, kw_only=True)
class AtWork:
    """Who carries out changes in a cluster."""

    #: False only where neither the Lease nor the webhook of mpijob-elastic exists.
    installed: bool = True
    #: Why nobody carries out changes, in a sentence without a period; "" if somebody does, or if
    #: nobody knows.
    trouble: str = ""


async def check(client: ApiReader, *, now: float) -> AtWork:
    """Return who carries out changes at time `now`, in seconds since the epoch."""
    lease = await dependencies.lease(client, names.NAMESPACE)
    if lease is None:
        return AtWork()
    if lease.metadata.name:
        return AtWork(trouble=_silence(lease, now=now))
    registered = await registration.read(client)
    if registered is None:
        return AtWork()  # it may be installed in another namespace
    if not registered:
        return AtWork(
            installed=False,
            trouble="mpijob-elastic is not installed in this cluster, so nobody carries out "
            "changes of the size",
        )
    home = registration.home(registered)
    there = await dependencies.lease(client, home)
    if there is None:
        return AtWork()
    return AtWork(trouble=_silence(there, now=now))


def _silence(lease: LeaseObject, *, now: float) -> str:
    waits = "changes of the size wait until one runs"
    if not lease.spec.holder_identity:
        return f"no controller of mpijob-elastic is the leader: {waits}"
    age = now - (seconds(lease.spec.renew_time) or 0.0)
    if age <= SILENT:
        return ""
    ago = phrases.duration(round(age))
    return (
        f"no controller of mpijob-elastic is running (the last leader renewed the Lease {ago} "
        f"ago): {waits}"
    )
