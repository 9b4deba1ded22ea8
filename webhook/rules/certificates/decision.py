"""The next step for the Secret: a pure function of its content, the trusted CAs, and the time.

One step at a time; the caller writes the step's content and asks again, until there is nothing left to do. The steps
in the life of a CA: BEGIN (nothing usable there: a CA and a certificate at once), RENEW (a new certificate, weekly),
PREPARE (a next CA, trusted only), PROMOTE (it signs from now on).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509

from webhook.rules.certificates import pairs
from webhook.rules.certificates.content import MOST_RETIRED, Content
from webhook.rules.certificates.pairs import Lifetimes, Pair


class Action(Enum):
    """The kinds of steps."""

    KEEP = "keep"
    BEGIN = "begin"
    RENEW = "renew"
    PREPARE = "prepare"
    PROMOTE = "promote"


@dataclass(frozen=True, kw_only=True)
class Step:
    """An action and its reason. forget: no certificate of a retired CA can be in use any more."""

    action: Action
    reason: str = ""
    forget: bool = False


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The wanted certificates.

    hosts: DNS names and addresses to serve. early: share of a lifetime, little above 0, by which this replica renews
    before the last third begins; replicas have different shares, so that they rarely renew at once.
    """

    hosts: frozenset[str]
    lifetimes: Lifetimes
    early: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Since when the API server trusts each CA, as the bundles seen so far show it.

    Each API server follows the configurations by a watch, so it trusts a new CA only after a moment. `carries`
    therefore requires that a CA has been in every bundle for a while, without a gap.
    since: when each CA was first seen in all of them, in seconds of a monotonic clock. asked: there is a bundle;
    without any, the API server does not call us, and there is nothing to wait for.
    """

    asked: bool = True
    since: Mapping[x509.Certificate, float] = field(default_factory=dict)

    def seen(self, bundles: Collection[Collection[x509.Certificate]], *, at: float) -> Trust:
        """Return the trust after a look at every caBundle."""
        if not bundles:
            return Trust(asked=False)
        everywhere = frozenset.intersection(*(frozenset(bundle) for bundle in bundles))
        return Trust(since={authority: self.since.get(authority, at) for authority in everywhere})

    def carries(self, certificate: x509.Certificate, *, at: float, settled: float) -> bool:
        """Return True if the API server trusts that CA's certificates; `settled` in seconds."""
        if not self.asked:
            return True
        since = self.since.get(certificate)
        return since is not None and at - since >= settled


KEEP = Step(action=Action.KEEP)


def next_step(content: Content, policy: Policy, *, promotable: bool, now: datetime) -> Step:
    """Return the next step; `promotable`: the API server already trusts the next CA in the Secret."""
    following = content.following if _authority_fault(content.following, now) == "" else None
    if fault := _authority_fault(content.authority, now):
        action = Action.PROMOTE if following else Action.BEGIN
        return Step(action=action, reason=f"the CA is {fault}")
    assert content.authority is not None
    if following and promotable:
        return Step(action=Action.PROMOTE, reason="the next CA is trusted")
    if fault := _leaf_fault(content.leaf, content.authority, policy, now):
        return Step(action=Action.RENEW, reason=f"the certificate is {fault}")
    if _leaf_due(content, policy, now):
        return Step(action=Action.RENEW, reason="the certificate is in its last third", forget=True)
    if following is None and _due(content.authority.certificate, policy.lifetimes.authority, policy, now):
        return Step(action=Action.PREPARE, reason="the CA is in its last third")
    return KEEP


def carry_out(
    step: Step, content: Content, policy: Policy, *, seen: tuple[x509.Certificate, ...], now: datetime
) -> Content:
    """Return the content after the step. `seen`: the CAs in the bundles, the only record after a loss."""
    match step.action:
        case Action.BEGIN:
            return _signing(content, pairs.authority(now=now, lifetimes=policy.lifetimes), policy, seen=seen, now=now)
        case Action.PROMOTE:
            assert content.following is not None
            return _signing(content, content.following, policy, seen=(), now=now)
        case Action.PREPARE:
            return replace(content, following=pairs.authority(now=now, lifetimes=policy.lifetimes))
        case Action.RENEW:
            assert content.authority is not None
            leaf = pairs.leaf(content.authority, policy.hosts, now=now, lifetimes=policy.lifetimes)
            return replace(content, leaf=leaf, retired=() if step.forget else content.retired)
    return content


def _signing(
    content: Content, signer: Pair, policy: Policy, *, seen: tuple[x509.Certificate, ...], now: datetime
) -> Content:
    """Let `signer` take over; every CA that was trusted stays trusted."""
    before = dict.fromkeys([*content.trusted, *seen])
    before.pop(signer.certificate, None)
    leaf = pairs.leaf(signer, policy.hosts, now=now, lifetimes=policy.lifetimes)
    return Content(authority=signer, leaf=leaf, retired=tuple(before)[:MOST_RETIRED])


def _authority_fault(pair: Pair | None, now: datetime) -> str:
    if pair is None:
        return "absent or unreadable"
    return pairs.fault(pair.certificate, now=now) if pairs.is_authority(pair.certificate) else "not a CA"


def _leaf_fault(leaf: Pair | None, authority: Pair, policy: Policy, now: datetime) -> str:
    if leaf is None:
        return "absent or unreadable"
    if not authority.signed(leaf.certificate):
        return "not signed by the CA"
    if missing := policy.hosts - pairs.names_of(leaf.certificate):
        return f"not for {', '.join(sorted(missing))}"
    return pairs.fault(leaf.certificate, now=now)


def _leaf_due(content: Content, policy: Policy, now: datetime) -> bool:
    assert content.authority is not None
    assert content.leaf is not None
    # Near the end of its CA a certificate is cut short, and a new one would live no longer.
    until = min(now + policy.lifetimes.leaf, content.authority.certificate.not_valid_after_utc)
    longer = until > content.leaf.certificate.not_valid_after_utc
    return longer and _due(content.leaf.certificate, policy.lifetimes.leaf, policy, now)


def _due(certificate: x509.Certificate, lifetime: timedelta, policy: Policy, now: datetime) -> bool:
    return certificate.not_valid_after_utc - now < lifetime * (1 / 3 + policy.early)
