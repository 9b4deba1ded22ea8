"""What the webhook and the process that rotates its certificates tell one another: lines of JSON.

Nothing here imports the library of certificates, so the webhook can do without it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from mpijob_elastic.telemetry import LogFormat, LogLevel


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """The lifetimes of certificates.

    A CA lives more than three times as long as a leaf. So the last leaf that the CA signs is not
    due at once, and the CA's successor is trusted before the successor signs.
    """

    authority: timedelta = timedelta(days=365)
    leaf: timedelta = timedelta(days=90)
    #: How far in the past certificates begin, for peers with slow clocks.
    backdate: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times in seconds."""

    #: Between two looks.
    look_every: float = 10.0
    #: How long bundles must have carried a CA before it counts as trusted.
    settled: float = 5.0


@dataclass(frozen=True, kw_only=True)
class ServedPair:
    """A certificate as it is served, its key, and when it is valid: seconds since the epoch."""

    #: PEM, the leaf first.
    certificates: bytes
    key: bytes = field(repr=False)
    not_before: float
    not_after: float

    @property
    def until(self) -> str:
        """The end of its time, in words for a log."""
        return str(datetime.fromtimestamp(self.not_after, UTC))


@dataclass(frozen=True, kw_only=True)
class Rest:
    """That there is nothing to do: for what was read, and when, in seconds since the epoch."""

    #: The resourceVersions of the Secret and the configurations, "" for one that is missing.
    versions: Sequence[str]
    since: float
    until: float


@dataclass(frozen=True, kw_only=True)
class Order:
    """The first and only line to the process."""

    namespace: str
    hosts: Sequence[str]
    lifetimes: Lifetimes
    timing: Timing
    #: See `CertificatePolicy.early`.
    early: float
    kubeconfig: str | None = None
    context: str | None = None
    log_format: LogFormat = "json"
    log_level: LogLevel = "info"
    #: What is served now. A new certificate replaces it only once the API server trusts that.
    served: ServedPair | None = None


@dataclass(frozen=True, kw_only=True)
class RotationNews:
    """A line of the process."""

    #: What is to be served from now on.
    served: ServedPair | None = None
    #: See `Content.secret_path`.
    secret_path: str = ""
    #: The last line has it.
    rest: Rest | None = None


def line(message: Order | RotationNews) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


def read_order(text: bytes) -> Order:
    """Return the order in a line. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=Order)


def read_news(text: bytes) -> RotationNews:
    """Return the news in a line. Raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=RotationNews)
