"""The rules of who may write what into a Lease, as a table."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mpijob_elastic.kube.lease import LeaseObject, LeaseSpec, Rivals, claim, release
from mpijob_elastic.kube.meta import ObjectMeta

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
INSTALLED = LeaseSpec()
MADE_ANEW = LeaseSpec(renew_time="t")
RELEASED = LeaseSpec(holder_identity="", lease_duration_seconds=1, lease_transitions=3)
OTHERS = LeaseSpec(holder_identity="other", lease_duration_seconds=20, lease_transitions=3)
OURS = LeaseSpec(holder_identity="us", lease_duration_seconds=15, lease_transitions=3)


def lease(spec: LeaseSpec, *, uid: str = "u", version: int = 1) -> LeaseObject:
    return LeaseObject(
        metadata=ObjectMeta(name="l", uid=uid, resource_version=str(version)), spec=spec
    )


@pytest.mark.parametrize(
    ("seen", "free_at"),
    [
        ([(0, lease(INSTALLED))], 0),
        ([(0, lease(RELEASED))], 0),
        ([(0, lease(OURS))], 0),
        ([(0, lease(OTHERS))], 20),
        ([(0, lease(LeaseSpec(holder_identity="other")))], 15),
        ([(0, lease(OTHERS)), (7, lease(OTHERS))], 20),
        ([(0, lease(OTHERS)), (7, lease(OTHERS, version=2))], 27),
        ([(0, lease(OTHERS)), (7, lease(RELEASED, version=2))], 7),
        ([(0, lease(MADE_ANEW))], 15),
        ([(0, lease(OTHERS)), (7, lease(MADE_ANEW, uid="v", version=2))], 22),
        ([(0, lease(OTHERS)), (7, lease(INSTALLED, uid="v", version=2))], 22),
        ([(0, lease(MADE_ANEW)), (7, lease(MADE_ANEW, version=2))], 15),
    ],
)
def test_a_lease_is_free_from_when_nobody_can_hold_it(
    seen: list[tuple[float, LeaseObject]], free_at: float
) -> None:
    rivals = Rivals(identity="us", seconds=15)
    assert [rivals.free_at(found, now) for now, found in seen][-1] == free_at


def test_a_claim_counts_a_change_of_hands_and_a_renewal_does_not() -> None:
    taken = claim(RELEASED, identity="us", seconds=2.5, now=NOON)
    assert taken == LeaseSpec(
        holder_identity="us",
        lease_duration_seconds=3,
        acquire_time="2026-01-02T12:00:00.000000Z",
        renew_time="2026-01-02T12:00:00.000000Z",
        lease_transitions=4,
    )
    renewed = claim(taken, identity="us", seconds=2.5, now=NOON + timedelta(seconds=1))
    assert (renewed.acquire_time, renewed.lease_transitions) == (taken.acquire_time, 4)
    assert renewed.renew_time == "2026-01-02T12:00:01.000000Z"
    assert claim(INSTALLED, identity="us", seconds=15, now=NOON).lease_transitions == 0


def test_a_release_names_nobody_keeps_the_count_and_is_dated_in_utc() -> None:
    released = release(OURS, now=NOON.astimezone(timezone(timedelta(hours=5))))
    assert (
        released.holder_identity,
        released.lease_duration_seconds,
        released.lease_transitions,
    ) == ("", 1, 3)
    assert released.renew_time == "2026-01-02T12:00:00.000000Z"
