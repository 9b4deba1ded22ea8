"""Certificates for tests: made by the program itself, with lifetimes that read well."""

from datetime import UTC, datetime, timedelta

from webhook.certificates import pairs
from webhook.certificates.decision import CertificatePolicy, Content
from webhook.certificates.messages import Lifetimes
from webhook.certificates.pairs import Pair

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LIFETIMES = Lifetimes(authority=timedelta(days=360), leaf=timedelta(days=6))
HOST = "mpijob-elastic-webhook.mpijob-elastic.svc"
POLICY = CertificatePolicy(hosts=frozenset({HOST}), lifetimes=LIFETIMES)


def authority(*, now: datetime = NOON) -> Pair:
    return pairs.authority(now=now, lifetimes=LIFETIMES)


def leaf(signer: Pair, *, now: datetime = NOON, hosts: frozenset[str] = POLICY.hosts) -> Pair:
    return pairs.leaf(signer, hosts, now=now, lifetimes=LIFETIMES)


def healthy(*, now: datetime = NOON) -> Content:
    """Return what the first start leaves."""
    signer = authority(now=now)
    return Content(authority=signer, leaf=leaf(signer, now=now))
