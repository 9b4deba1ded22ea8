"""The webhook's settings, made by the command line from flags and environment."""

from dataclasses import dataclass, field
from pathlib import Path

from mpijob_elastic import names
from webhook.certificates.pairs import Lifetimes, canonical
from webhook.certificates.rotation import Timing


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for callers.

    request_bytes: the largest body. An UPDATE review holds two objects of up to 3 MiB
    (https://github.com/kubernetes-sigs/controller-runtime/blob/main/pkg/webhook/admission/http.go).
    bodies_bytes: of all bodies that are being read.
    read_seconds: for a body, for a TLS handshake, and for a connection's first request head from its first byte. It is
    the longest timeoutSeconds of the webhook configurations: then the API server has given up. `?timeout=` may ask for
    less.
    idle_seconds: how long a connection may stay without a request. It is above the 90 s after which the API server
    closes idle connections itself, because a connection that we close may just be in use. That goes for a connection
    without a first request too: Go opens more than it needs, and keeps them.
    connections: of an address. An API server sends at most 600 requests at once, by its own limits
    (--max-requests-inflight and --max-mutating-requests-inflight), of which few are for us. One more ends the quietest,
    so that an address shared with the API server (a proxy, a node) stays usable.
    all_connections: each takes some 50 KiB. One more ends the quietest of the address that has most.
    """

    request_bytes: int = 8 * 2**20
    bodies_bytes: int = 32 * 2**20
    read_seconds: float = 2.0
    idle_seconds: float = 120.0
    connections: int = 256
    all_connections: int = 1024


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """The settings of `serve`, as `mpijob-elastic webhook --help` explains them. A port of 0 takes a free port.

    certificate_directory: None: make and rotate certificates; else leave Secret and caBundle alone. drain_seconds: so
    that every node learns that this replica leaves; finish_seconds: for requests in flight after that.
    """

    host: str | None = None
    port: int = 9443
    health_port: int = 8081
    namespace: str = names.NAMESPACE
    extra_sans: frozenset[str] = frozenset()
    certificate_directory: Path | None = None
    jobs_namespaces: tuple[str, ...] = ()
    kubeconfig: Path | None = None
    context: str | None = None
    drain_seconds: float = 15.0
    finish_seconds: float = 5.0
    limits: Limits = field(default_factory=Limits)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    timing: Timing = field(default_factory=Timing)

    @property
    def hosts(self) -> frozenset[str]:
        """The names in the certificate: the name that the API server calls, and the extra names."""
        return frozenset({f"{names.WEBHOOK}.{self.namespace}.svc", *map(canonical, self.extra_sans)})
