"""The content of the Secret, and the next step for it; pure.

A step depends on the content, the trusted CAs, and the time. Steps are taken one at a time: the
caller writes the content of a step and asks again, until there is nothing left to do. The steps in
the life of a CA are BEGIN (there is no usable CA: make a CA and a certificate at once) and RENEW (a
new certificate, every two months). The RENEW in the last third of a CA's life is its last: a new CA
takes its place, which signs the certificate after that.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509

from mpijob_elastic import names
from webhook.certificates import pairs
from webhook.certificates.messages import Lifetimes
from webhook.certificates.pairs import Pair

# A CA is retired once in months, or after the Secret was lost; more than a few mean that something
# is stuck.
MOST_RETIRED = 6


@dataclass(frozen=True, kw_only=True)
class Content:
    """The parts of the Secret."""

    #: The CA that signs the next certificate (ca.crt, ca.key).
    authority: Pair | None = None
    #: The served pair (tls.crt, tls.key).
    leaf: Pair | None = None
    #: CAs that no longer sign but may have certificates in use, the served certificate included
    #: (retired-ca.crt).
    retired: tuple[x509.Certificate, ...] = ()

    @classmethod
    def parse(cls, data: Mapping[str, bytes]) -> Content:
        """Return the content of the Secret's `data`; an unreadable part counts as absent."""
        return cls(
            authority=pairs.parse(data.get("ca.crt"), data.get("ca.key")),
            leaf=pairs.parse(data.get("tls.crt"), data.get("tls.key")),
            retired=pairs.parse_bundle(data.get("retired-ca.crt", b""))[:MOST_RETIRED],
        )

    def render(self) -> dict[str, bytes | None]:
        """Return the Secret's `data`; None removes a key."""
        authority, leaf = self.authority, self.leaf
        return {
            "ca.crt": authority.certificate_pem if authority else None,
            "ca.key": authority.key_pem if authority else None,
            "tls.crt": leaf.certificate_pem if leaf else None,
            "tls.key": leaf.key_pem if leaf else None,
            "retired-ca.crt": pairs.bundle(self.retired) or None,
        }

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """Every CA that the API server should trust, in a fixed order, each once."""
        current = [self.authority.certificate] if self.authority else []
        return tuple(dict.fromkeys([*filter(pairs.is_authority, current), *self.retired]))

    @property
    def secret_path(self) -> str:
        """The path at which the API server asks about evictions, "" without a CA.

        It changes with the CA.
        """
        if self.authority is None:
            return ""
        digest = hmac.new(self.authority.key_pem, names.EVICTIONS_HOOK.encode(), "sha256")
        return names.PATH_EVICT + digest.hexdigest()


class RotationAction(Enum):
    """The kinds of steps."""

    BEGIN = "begin"
    RENEW = "renew"


@dataclass(frozen=True, kw_only=True)
class RotationStep:
    """An action and its reason."""

    action: RotationAction
    reason: str = ""
    #: No certificate of a retired CA can be in use any more.
    forget: bool = False


@dataclass(frozen=True, kw_only=True)
class CertificatePolicy:
    """The wanted certificates."""

    #: The DNS names and addresses to serve.
    hosts: frozenset[str]
    lifetimes: Lifetimes
    #: The share of a lifetime, little above 0, by which this replica renews before the last third
    #: begins. Replicas have different shares, so that they rarely renew at once.
    early: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trust:
    """Since when the API server trusts each CA, as the bundles seen so far show it.

    Each API server follows the configurations by a watch, so it trusts a new CA only after a
    moment. `carries` therefore requires that a CA has been in every bundle for a while, without a
    gap.
    """

    #: There is a bundle; without any, the API server does not call us, and there is nothing to wait
    #: for.
    asked: bool = True
    #: When each CA was first seen in all bundles, in seconds of a monotonic clock.
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


def next_step(content: Content, policy: CertificatePolicy, *, now: datetime) -> RotationStep | None:
    """Return the next step, None if there is nothing left to do."""
    if fault := _authority_fault(content.authority, now):
        return RotationStep(action=RotationAction.BEGIN, reason=f"the CA is {fault}")
    if fault := _leaf_fault(content, policy, now):
        return RotationStep(action=RotationAction.RENEW, reason=f"the certificate is {fault}")
    assert content.authority is not None
    assert content.leaf is not None
    if _due(content.leaf.certificate, policy.lifetimes.leaf, policy, now):
        forget = pairs.signed(content.leaf.certificate, by=content.authority.certificate)
        return RotationStep(
            action=RotationAction.RENEW,
            reason="the certificate is in its last third",
            forget=forget,
        )
    return None


def lull(content: Content, policy: CertificatePolicy) -> tuple[datetime, datetime]:
    """Return from when until when a content without a next step has none, unless it changes.

    The end does not belong to it. `content` has a CA and a certificate.
    """
    assert content.authority is not None
    assert content.leaf is not None
    both = (content.authority.certificate, content.leaf.certificate)
    begins = max(one.not_valid_before_utc for one in both)
    leaf = content.leaf.certificate.not_valid_after_utc
    last_third = leaf - policy.lifetimes.leaf * (1 / 3 + policy.early)
    return begins, min(last_third, *(one.not_valid_after_utc for one in both))


def carry_out(
    step: RotationStep,
    content: Content,
    policy: CertificatePolicy,
    *,
    seen: tuple[x509.Certificate, ...],
    now: datetime,
) -> Content:
    """Return the content after the step.

    `seen`: the CAs in the bundles, the only record after a loss.
    """
    if step.action is RotationAction.BEGIN:
        signer = pairs.authority(now=now, lifetimes=policy.lifetimes)
        retired = tuple(dict.fromkeys([*content.trusted, *seen]))
    else:
        assert content.authority is not None
        signer, retired = content.authority, () if step.forget else content.retired
    leaf, authority = pairs.leaf(signer, policy.hosts, now=now, lifetimes=policy.lifetimes), signer
    if _due(signer.certificate, policy.lifetimes.authority, policy, now):
        retired = (signer.certificate, *retired)
        authority = pairs.authority(now=now, lifetimes=policy.lifetimes)
    return Content(authority=authority, leaf=leaf, retired=retired[:MOST_RETIRED])


def _authority_fault(pair: Pair | None, now: datetime) -> str:
    if pair is None:
        return "absent or unreadable"
    return (
        pairs.fault(pair.certificate, now=now)
        if pairs.is_authority(pair.certificate)
        else "not a CA"
    )


def _leaf_fault(content: Content, policy: CertificatePolicy, now: datetime) -> str:
    leaf = content.leaf
    if leaf is None:
        return "absent or unreadable"
    if not any(pairs.signed(leaf.certificate, by=authority) for authority in content.trusted):
        return "not signed by the CA"
    if missing := policy.hosts - pairs.names_of(leaf.certificate):
        return f"not for {', '.join(sorted(missing))}"
    return pairs.fault(leaf.certificate, now=now)


def _due(
    certificate: x509.Certificate, lifetime: timedelta, policy: CertificatePolicy, now: datetime
) -> bool:
    return certificate.not_valid_after_utc - now < lifetime * (1 / 3 + policy.early)
