"""The controller's Prometheus metrics, all of them, by the question each answers.

Names follow https://prometheus.io/docs/practices/naming/; docs/metrics.md lists them for users.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """One set, registered at `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._scale = Histogram(
            "mpijob_elastic_scale_seconds",
            "From seeing a new size until the phase was reached: role, published, settled.",
            ["phase"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._hosts = Gauge(
            "mpijob_elastic_published_hosts",
            "Hosts in discover_hosts.sh of an elastic job.",
            ["namespace", "job"],
            registry=registry,
        )
        self._drains = Counter(
            "mpijob_elastic_deleted_workers_total",
            "Workers deleted, by why that was safe: drained, timeout, idle, unused, unscheduled, failed, finished.",
            ["outcome"],
            registry=registry,
        )
        self._probes = Counter(
            "mpijob_elastic_drain_probes_total",
            "Looks into draining workers by exec, by what they showed: idle, busy, error.",
            ["outcome"],
            registry=registry,
        )
        self._watches = Counter(
            "mpijob_elastic_rank_probes_total",
            "Looks into published workers by exec, by what they showed: idle, busy, error.",
            ["outcome"],
            registry=registry,
        )
        self._ended_execs = Counter(
            "mpijob_elastic_ended_execs_total",
            "Tries to end a frozen `kubectl exec` of a launcher: ended, gone (it had ended by itself), error.",
            ["outcome"],
            registry=registry,
        )
        self._writes = Counter(
            "mpijob_elastic_api_writes_total",
            "Writes to the API server, by verb, resource and outcome (ok or the error's reason).",
            ["verb", "resource", "outcome"],
            registry=registry,
        )
        self._reconciles = Histogram(
            "mpijob_elastic_reconcile_seconds",
            "One look at one job, writes included.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._failures = Counter(
            "mpijob_elastic_reconcile_failures_total", "Looks at a job that failed and are repeated.", registry=registry
        )
        self._events = Counter(
            "mpijob_elastic_events_total",
            "Events for users, by outcome: sent, failed, dropped.",
            ["outcome"],
            registry=registry,
        )
        self._queue_depth = Gauge("mpijob_elastic_queue_depth", "Jobs that wait to be looked at.", registry=registry)
        self._queue_age = Gauge(
            "mpijob_elastic_queue_oldest_seconds", "How long the first of them has waited.", registry=registry
        )
        self._cache_age = Gauge(
            "mpijob_elastic_cache_age_seconds",
            "Since the last sign of life of a watch.",
            ["resource"],
            registry=registry,
        )
        self._leader = Gauge("mpijob_elastic_leader", "1 while this process leads.", registry=registry)

    def scale_phase(self, phase: str, seconds: float) -> None:
        """A phase of a change of size was reached."""
        self._scale.labels(phase).observe(seconds)

    def published(self, namespace: str, job: str, hosts: int) -> None:
        """A job's host list has that many hosts."""
        self._hosts.labels(namespace, job).set(hosts)

    def forget_job(self, namespace: str, job: str) -> None:
        """A job is gone: its series end."""
        self._hosts.remove(namespace, job)

    def deleted(self, outcome: str) -> None:
        """A worker was deleted."""
        self._drains.labels(outcome).inc()

    def probed(self, outcome: str) -> None:
        """A draining worker was looked into."""
        self._probes.labels(outcome).inc()

    def watched(self, outcome: str) -> None:
        """A published worker was looked into."""
        self._watches.labels(outcome).inc()

    def ended_exec(self, outcome: str) -> None:
        """A frozen exec was tried to be ended."""
        self._ended_execs.labels(outcome).inc()

    def wrote(self, verb: str, resource: str, outcome: str) -> None:
        """A write was answered."""
        self._writes.labels(verb, resource, outcome).inc()

    def reconciled(self, seconds: float) -> None:
        """A job was looked at."""
        self._reconciles.observe(seconds)

    def failed(self) -> None:
        """A look at a job failed."""
        self._failures.inc()

    def event(self, outcome: str) -> None:
        """An Event was sent, failed or dropped."""
        self._events.labels(outcome).inc()

    def gauges(self, *, depth: int, oldest: float, cache_ages: Mapping[str, float], leader: bool) -> None:
        """What is read when a scrape comes."""
        self._queue_depth.set(depth)
        self._queue_age.set(oldest)
        self._leader.set(leader)
        for resource, age in cache_ages.items():
            self._cache_age.labels(resource).set(age)
