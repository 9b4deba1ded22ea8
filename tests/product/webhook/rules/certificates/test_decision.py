"""The next step, as a table, and what each step leaves behind."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.product.webhook.certificates.material import DAY, HOST, NOON, POLICY, authority, healthy, leaf
from webhook.rules.certificates import decision
from webhook.rules.certificates.content import Content
from webhook.rules.certificates.decision import KEEP, Action, Policy, Step

GOOD = healthy()
assert GOOD.authority is not None
ROTATING = replace(GOOD, following=authority())
RETIRED = replace(GOOD, retired=(authority().certificate,))
RENEWED_LATE = replace(GOOD, leaf=leaf(GOOD.authority, now=NOON + 239 * DAY))

TABLE: dict[str, tuple[Content, timedelta, bool, Action, str]] = {
    "an empty Secret": (Content(), 0 * DAY, False, Action.BEGIN, "the CA is absent or unreadable"),
    "a healthy one": (GOOD, 0 * DAY, False, Action.KEEP, ""),
    "a certificate before its last third": (GOOD, 4 * DAY, False, Action.KEEP, ""),
    "a certificate in its last third": (GOOD, 4.1 * DAY, False, Action.RENEW, "the certificate is in its last third"),
    "an expired certificate": (GOOD, 6 * DAY, False, Action.RENEW, "is expired at 2026-06-07T12:00:00Z"),
    "a certificate lost": (replace(GOOD, leaf=None), 0 * DAY, False, Action.RENEW, "absent or unreadable"),
    "a certificate of another CA": (
        replace(GOOD, leaf=healthy().leaf), 0 * DAY, False, Action.RENEW, "the certificate is not signed by the CA",
    ),
    "a certificate of before the clock went back": (
        GOOD, -1 * DAY, False, Action.BEGIN, "the CA is not valid before 2026-06-01T11:55:00Z",
    ),
    "a CA that is none": (replace(GOOD, authority=GOOD.leaf), 0 * DAY, False, Action.BEGIN, "the CA is not a CA"),
    "a CA in its last third": (RENEWED_LATE, 240.1 * DAY, False, Action.PREPARE, "the CA is in its last third"),
    "a next CA that is not trusted yet": (ROTATING, 0 * DAY, False, Action.KEEP, ""),
    "a next CA that is trusted": (ROTATING, 0 * DAY, True, Action.PROMOTE, "the next CA is trusted"),
    "a renewal while a next CA waits": (ROTATING, 4.1 * DAY, False, Action.RENEW, "in its last third"),
    "a CA lost while the next one waits": (
        replace(ROTATING, authority=None), 0 * DAY, False, Action.PROMOTE, "the CA is absent or unreadable",
    ),
    "everything expired": (ROTATING, 400 * DAY, True, Action.BEGIN, "the CA is expired at 2027-05-27T12:00:00Z"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "later", "promotable", "action", "reason"), TABLE.values(), ids=TABLE.keys())
def test_next_step(content: Content, later: timedelta, promotable: bool, action: Action, reason: str) -> None:
    step = decision.next_step(content, POLICY, promotable=promotable, now=NOON + later)
    assert step.action is action
    assert reason in step.reason


def test_a_name_that_is_missing_is_added_one_too_many_is_left() -> None:
    more = Policy(hosts=frozenset({HOST, "127.0.0.1"}), lifetimes=POLICY.lifetimes)
    step = decision.next_step(GOOD, more, promotable=False, now=NOON)
    assert step == Step(action=Action.RENEW, reason="the certificate is not for 127.0.0.1")
    wide = decision.carry_out(step, GOOD, more, seen=(), now=NOON)
    assert decision.next_step(wide, more, promotable=False, now=NOON) == KEEP
    assert decision.next_step(wide, POLICY, promotable=False, now=NOON) == KEEP


def test_a_replica_may_be_early() -> None:
    early = Policy(hosts=POLICY.hosts, lifetimes=POLICY.lifetimes, early=0.03)
    at = NOON + 4 * DAY - timedelta(hours=4)
    assert decision.next_step(GOOD, POLICY, promotable=False, now=at) == KEEP
    assert decision.next_step(GOOD, early, promotable=False, now=at).action is Action.RENEW


def test_at_the_end_of_a_ca_that_cannot_be_replaced_a_certificate_is_not_renewed_without_end() -> None:
    stuck = replace(ROTATING, leaf=leaf(ROTATING.authority, now=NOON + 358 * DAY)) if ROTATING.authority else ROTATING
    for day in (358, 359, 359.9):
        assert decision.next_step(stuck, POLICY, promotable=False, now=NOON + day * DAY) == KEEP


def carried_out(action: Action, content: Content, *, forget: bool = False, seen: tuple[Content, ...] = ()) -> Content:
    step = Step(action=action, forget=forget)
    trusted = tuple(certificate for one in seen for certificate in one.trusted)
    return decision.carry_out(step, content, POLICY, seen=trusted, now=NOON)


def test_begin_goes_on_trusting_all_that_was_trusted() -> None:
    after = carried_out(Action.BEGIN, replace(RETIRED, authority=None), seen=(GOOD,))
    assert after.authority.signed(after.leaf.certificate)
    assert after.retired == (*RETIRED.retired, *GOOD.trusted)


def test_prepare_changes_nothing_but_the_trust() -> None:
    after = carried_out(Action.PREPARE, RETIRED)
    assert replace(after, following=None) == RETIRED
    assert set(after.trusted) > set(RETIRED.trusted)


def test_promote_signs_anew_and_retires_the_old() -> None:
    after = carried_out(Action.PROMOTE, ROTATING)
    assert (after.authority, after.following) == (ROTATING.following, None)
    assert after.authority.signed(after.leaf.certificate)
    assert set(after.trusted) == set(ROTATING.trusted)


def test_renew_forgets_the_retired_only_when_nothing_of_theirs_can_be_in_use() -> None:
    assert carried_out(Action.RENEW, RETIRED).retired == RETIRED.retired
    assert carried_out(Action.RENEW, RETIRED, forget=True).retired == ()
    due = decision.next_step(RETIRED, POLICY, promotable=False, now=NOON + 5 * DAY)
    lost = decision.next_step(replace(RETIRED, leaf=None), POLICY, promotable=False, now=NOON + 5 * DAY)
    assert (due.forget, lost.forget) == (True, False)
