"""The webhook's metrics; the values of every label are bounded, whatever a caller sends."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from mpijob_elastic.capabilities import admission
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from webhook.rules import review
from webhook.rules.size import SCALES

_KINDS = admission.KINDS | {PODS.kind, CONFIG_MAPS.kind, MPI_JOBS.kind, SCALES.kind}
_OPERATIONS = frozenset({review.CREATE, review.UPDATE})
_OTHER = "other"
# Seconds; the target is a p99 of 10 ms, the API server gives up after timeoutSeconds (2).
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)


class Metrics:
    """The metrics of one server, in their own registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        gauge = partial(Gauge, registry=registry)
        self._reviews = Counter(
            "mpijob_elastic_webhook_reviews",
            "Answered requests; outcome: patched, unchanged, warned, rejected, postponed, unreadable, or why there was "
            "no verdict",
            ["kind", "operation", "outcome"],
            registry=registry,
        )
        self.seconds = Histogram(
            "mpijob_elastic_webhook_review_seconds",
            "From the request's headers to its answer",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.expiry = gauge(
            "mpijob_elastic_webhook_certificate_expiry_timestamp_seconds",
            "When the served certificate expires, in seconds since the epoch; 0 before there is one",
        )
        self.unreadable = gauge(
            "mpijob_elastic_webhook_unreadable_objects", "MPIJobs that are ignored because they cannot be read"
        )

    def review(self, *, kind: str, operation: str, outcome: str) -> None:
        """Count an answer; kind and operation may be anything that a caller sent."""
        self._reviews.labels(
            kind=kind if kind in _KINDS else _OTHER,
            operation=operation if operation in _OPERATIONS else _OTHER,
            outcome=outcome,
        ).inc()

    def render(self) -> bytes:
        """Return the text for Prometheus."""
        return generate_latest(self._registry)
