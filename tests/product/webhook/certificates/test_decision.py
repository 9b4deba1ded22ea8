"""The next step, as a table, and what each step leaves behind."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.product.webhook.certificates.material import (
    DAY,
    HOST,
    NOON,
    POLICY,
    authority,
    healthy,
    leaf,
)
from webhook.certificates import decision, pairs
from webhook.certificates.decision import CertificatePolicy, Content, RotationAction, RotationStep
from webhook.certificates.pairs import Pair

GOOD = healthy()
assert GOOD.authority is not None
RETIRED = replace(GOOD, retired=(authority().certificate,))
# A new CA, and the last certificate of the one before.
ROTATING = replace(GOOD, authority=authority(), retired=GOOD.trusted)
OLD = replace(GOOD, leaf=leaf(GOOD.authority, now=NOON + 239 * DAY))

TABLE: dict[str, tuple[Content, timedelta, RotationAction | None, str]] = {
    "an empty Secret": (Content(), 0 * DAY, RotationAction.BEGIN, "the CA is absent or unreadable"),
    "a healthy one": (GOOD, 0 * DAY, None, ""),
    "a certificate before its last third": (GOOD, 4 * DAY, None, ""),
    "a certificate in its last third": (GOOD, 4.1 * DAY, RotationAction.RENEW, "the certificate is in its last third"),
    "an expired certificate": (GOOD, 6 * DAY, RotationAction.RENEW, "is expired at 2026-06-07T12:00:00Z"),
    "a certificate lost": (replace(GOOD, leaf=None), 0 * DAY, RotationAction.RENEW, "absent or unreadable"),
    "a certificate of another CA": (
        replace(GOOD, leaf=healthy().leaf), 0 * DAY, RotationAction.RENEW, "the certificate is not signed by the CA",
    ),
    "a certificate of before the clock went back": (
        GOOD, -1 * DAY, RotationAction.BEGIN, "the CA is not valid before 2026-06-01T11:55:00Z",
    ),
    "a CA that is none": (replace(GOOD, authority=GOOD.leaf), 0 * DAY, RotationAction.BEGIN, "the CA is not a CA"),
    "a CA in its last third, its certificate before that": (OLD, 240.1 * DAY, None, ""),
    "a CA and its certificate in their last thirds": (OLD, 243.1 * DAY, RotationAction.RENEW, "in its last third"),
    "a new CA that has signed nothing": (ROTATING, 0 * DAY, None, ""),
    "a new CA, the certificate in its last third": (ROTATING, 4.1 * DAY, RotationAction.RENEW, "in its last third"),
    "a new CA, the one before forgotten": (
        replace(ROTATING, retired=()), 0 * DAY, RotationAction.RENEW, "the certificate is not signed by the CA",
    ),
    "everything expired": (ROTATING, 400 * DAY, RotationAction.BEGIN, "the CA is expired at 2027-05-27T12:00:00Z"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "later", "action", "reason"), TABLE.values(), ids=TABLE.keys())
def test_next_step(
    content: Content, later: timedelta, action: RotationAction | None, reason: str
) -> None:
    step = decision.next_step(content, POLICY, now=NOON + later)
    assert (step and step.action) is action
    assert step is None or reason in step.reason


def test_a_name_that_is_missing_is_added_one_too_many_is_left() -> None:
    more = CertificatePolicy(hosts=frozenset({HOST, "127.0.0.1"}), lifetimes=POLICY.lifetimes)
    step = decision.next_step(GOOD, more, now=NOON)
    assert step == RotationStep(
        action=RotationAction.RENEW, reason="the certificate is not for 127.0.0.1"
    )
    wide = decision.carry_out(step, GOOD, more, seen=(), now=NOON)
    assert decision.next_step(wide, more, now=NOON) is None
    assert decision.next_step(wide, POLICY, now=NOON) is None


def test_a_replica_may_be_early() -> None:
    early = CertificatePolicy(hosts=POLICY.hosts, lifetimes=POLICY.lifetimes, early=0.03)
    at = NOON + 4 * DAY - timedelta(hours=4)
    assert decision.next_step(GOOD, POLICY, now=at) is None
    assert decision.next_step(GOOD, early, now=at).action is RotationAction.RENEW


def carried_out(
    action: RotationAction,
    content: Content,
    *,
    now: datetime = NOON,
    forget: bool = False,
    seen: tuple[Content, ...] = (),
) -> Content:
    step = RotationStep(action=action, forget=forget)
    trusted = tuple(certificate for one in seen for certificate in one.trusted)
    return decision.carry_out(step, content, POLICY, seen=trusted, now=now)


def signs(authority: Pair | None, leaf: Pair | None) -> bool:
    assert authority is not None
    assert leaf is not None
    return pairs.signed(leaf.certificate, by=authority.certificate)


def test_begin_goes_on_trusting_all_that_was_trusted() -> None:
    after = carried_out(RotationAction.BEGIN, replace(RETIRED, authority=None), seen=(GOOD,))
    assert signs(after.authority, after.leaf)
    assert after.retired == (*RETIRED.retired, *GOOD.trusted)


def test_renew_leaves_a_young_ca_as_it_is() -> None:
    after = carried_out(RotationAction.RENEW, ROTATING)
    assert replace(after, leaf=ROTATING.leaf) == ROTATING
    assert signs(ROTATING.authority, after.leaf)


def test_an_old_ca_signs_once_more_and_is_retired() -> None:
    after = carried_out(RotationAction.RENEW, RETIRED, now=NOON + 241 * DAY)
    assert signs(GOOD.authority, after.leaf)
    assert after.authority not in (GOOD.authority, None)
    assert after.retired == (*GOOD.trusted, *RETIRED.retired)
    assert decision.next_step(after, POLICY, now=NOON + 241 * DAY) is None


@pytest.mark.parametrize(("day", "steps"), [(354, 1), (358, 1), (358.1, 2), (359.9, 2)])
def test_an_old_ca_that_can_sign_no_lasting_certificate_gives_way_at_once(
    day: float, steps: int
) -> None:
    content, now, taken = GOOD, NOON + day * DAY, 0
    while step := decision.next_step(content, POLICY, now=now):
        content, taken = decision.carry_out(step, content, POLICY, seen=(), now=now), taken + 1
    assert (taken, content.retired) == (steps, GOOD.trusted)


def test_renew_forgets_the_retired_only_when_nothing_of_theirs_can_be_in_use() -> None:
    assert carried_out(RotationAction.RENEW, RETIRED).retired == RETIRED.retired
    assert carried_out(RotationAction.RENEW, RETIRED, forget=True).retired == ()
    late = NOON + 5 * DAY
    steps = [
        decision.next_step(one, POLICY, now=late)
        for one in (RETIRED, replace(RETIRED, leaf=None), ROTATING)
    ]
    assert [step.forget for step in steps] == [True, False, False]
