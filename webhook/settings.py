"""The webhook's settings, made by the command line from flags and environment."""

from dataclasses import dataclass, field
from pathlib import Path

from mpijob_elastic import names
from webhook.certificates.rotation import Timing
from webhook.rules.certificates.pairs import Lifetimes


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for callers.

    request_bytes: the largest body. An UPDATE review holds two objects of up to 3 MiB
    (https://github.com/kubernetes-sigs/controller-runtime/blob/main/pkg/webhook/admission/http.go).
    small_requests, large_requests: bodies that are read at once, of up to `small_bytes` and above.
    read_seconds: for waiting and reading together, unless the caller asks for less by `?timeout=`.
    idle_seconds: how long a connection may stay without a whole request head. It is above the 90 s after which the API
    server closes idle connections itself, because a connection that we close may just be in use.
    """

    request_bytes: int = 8 * 2**20
    small_bytes: int = 128 * 2**10
    small_requests: int = 128
    large_requests: int = 4
    read_seconds: float = 10.0
    idle_seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of `serve`, as `mpijob-elastic webhook --help` explains them. A port of 0 takes a free port.

    certificate_directory: None: make and rotate certificates; else leave Secret and caBundle alone. drain_seconds: so
    that every node learns that this replica leaves; finish_seconds: for requests in flight after that.
    """

    host: str | None = None
    port: int = 9443
    health_port: int = 8081
    namespace: str = names.NAMESPACE
    service: str = names.WEBHOOK
    extra_sans: frozenset[str] = frozenset()
    certificate_directory: Path | None = None
    watch_jobs: bool = True
    jobs_namespace: str | None = None
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
        return frozenset({f"{self.service}.{self.namespace}.svc", *self.extra_sans})
