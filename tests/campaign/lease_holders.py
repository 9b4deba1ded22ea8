"""Failovers: who held the Lease when, and who wrote without it, from the API server's audit log.

One clock gives all times. A write takes effect at an unknown moment between its arrival and its
answer, and so does a claim of the Lease, so a write is allowed if its writer may have held the
Lease at any moment of it.
"""

from collections.abc import Iterable, Sequence

from bench.audit import Write
from mpijob_elastic import names


def claims(writes: Iterable[Write]) -> list[Write]:
    """Return the writes of the controllers' Lease, in the given order."""
    return [write for write in writes if (write.resource, write.name) == ("leases", names.LEASE)]


def acts(writes: Iterable[Write]) -> list[Write]:
    """Return what controllers wrote under the Lease, in the given order."""
    return [
        write
        for write in writes
        if write.user == names.CONTROLLER_USER and write.resource != "leases"
    ]


def strays(writes: Sequence[Write]) -> list[Write]:
    """Return the acts of a process that surely did not hold the Lease.

    Writes are in the order of their answers.
    """
    held, found, following = "", [], claims(writes)
    for act in sorted(acts(writes), key=lambda act: act.received):
        while following and following[0].at <= act.received:
            claim = following.pop(0)
            held = claim.credential if claim.holder else ""
        meanwhile = {
            claim.credential for claim in following if claim.received <= act.at and claim.holder
        }
        if act.credential not in {held, *meanwhile}:
            found.append(act)
    return found


def holder(writes: Iterable[Write]) -> str:
    """Return the credential that holds the Lease after these writes, "" if none does."""
    last = claims(writes)[-1:]
    return last[0].credential if last and last[0].holder else ""


def taken_at(writes: Iterable[Write], *, before: str, since: float) -> float | None:
    """Return when another credential than `before` first got the Lease after `since`, None if none did yet."""
    others = (
        claim.at
        for claim in claims(writes)
        if claim.holder and claim.credential != before and claim.at > since
    )
    return next(others, None)
