"""Who wrote without the Lease: a wrong write must show, and a right write must not."""

import pytest

from bench.audit import Write
from mpijob_elastic import names
from tests.campaign.lease_holders import holder, strays, taken_at


def claim(who: str, *times: float, released: bool = False) -> Write:
    return _write(
        who,
        times[0],
        times[-1],
        "leases",
        names.LEASE,
        holder="" if released else f"identity-{who}",
    )


def act(who: str, *times: float) -> Write:
    return _write(who, times[0], times[-1], "configmaps", "train-config")


def _write(
    who: str, received: float, at: float, resource: str, name: str, holder: str | None = None
) -> Write:
    return Write(
        received=received,
        at=at,
        verb="patch",
        resource=resource,
        subresource="",
        namespace="n",
        name=name,
        user=names.CONTROLLER_USER,
        agent="controller",
        credential=who,
        holder=holder,
    )


@pytest.mark.parametrize(
    "writes",
    [
        [claim("a", 1), act("a", 2), claim("a", 3), act("a", 4), claim("b", 20), act("b", 21)],
        [claim("a", 1), claim("b", 20, 22), act("a", 19, 21)],
        [claim("a", 1), claim("b", 20, 22), act("b", 21, 23)],
        [claim("a", 1), act("b", 21, 21.5), claim("b", 20, 22)],
        [claim("a", 1), claim("b", 20), act("b", 21), act("a", 2, 30)],
    ],
    ids=[
        "each in turn",
        "sent before",
        "the answer to the claim is late",
        "answered first",
        "a slow write",
    ],
)
def test_writes_of_holders(writes: list[Write]) -> None:
    assert strays(writes) == []


@pytest.mark.parametrize(
    "writes",
    [
        [act("a", 1), claim("a", 2)],
        [claim("a", 1), act("b", 2)],
        [claim("a", 1), claim("b", 20), act("a", 21)],
        [claim("a", 1), claim("a", 2, released=True), act("a", 3)],
        [claim("a", 1), claim("b", 20), act("a", 21), claim("a", 40)],
    ],
    ids=["nobody holds", "never held", "woke up", "released", "held again later"],
)
def test_writes_without_the_lease(writes: list[Write]) -> None:
    assert strays(writes) == [write for write in writes if write.holder is None]


def test_a_takeover_is_the_first_claim_of_another() -> None:
    writes = [claim("a", 1), claim("a", 9), claim("b", 24.5, 25), claim("b", 27)]
    assert (
        holder(writes[:2]),
        taken_at(writes, before="a", since=8.0),
        taken_at(writes, before="b", since=26.0),
    ) == (
        "a",
        25,
        None,
    )
