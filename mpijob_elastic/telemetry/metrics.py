"""All Prometheus metrics of the controller.

Names follow https://prometheus.io/docs/practices/naming/; docs/metrics.md lists them for users.
"""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The metrics of a controller, registered at `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._scale = Histogram(
            "mpijob_elastic_scale_seconds",
            "Time from seeing a new size until the phase: role, published, settled.",
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
            "Deleted workers, by reason: drained, timeout, idle, unused, unscheduled, failed, finished.",
            ["outcome"],
            registry=registry,
        )
        self._probes = Counter(
            "mpijob_elastic_drain_probes_total",
            "Probes of draining workers by exec, by result: idle, busy, error.",
            ["outcome"],
            registry=registry,
        )
        self._watches = Counter(
            "mpijob_elastic_rank_probes_total",
            "Probes of published workers by exec, by result: idle, busy, error.",
            ["outcome"],
            registry=registry,
        )
        self._ended_execs = Counter(
            "mpijob_elastic_ended_execs_total",
            "Attempts to end a frozen `kubectl exec` of a launcher: ended, gone (it had ended by itself), error.",
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
            "Duration of a reconciliation of a job, writes included.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._failures = Counter(
            "mpijob_elastic_reconcile_failures_total", "Failed reconciliations, which are repeated.", registry=registry
        )
        self._events = Counter(
            "mpijob_elastic_events_total",
            "Events for users, by outcome: sent, failed, dropped.",
            ["outcome"],
            registry=registry,
        )
        self._queue_depth = Gauge(
            "mpijob_elastic_queue_depth", "Jobs that wait for a reconciliation.", registry=registry
        )
        self._queue_age = Gauge(
            "mpijob_elastic_queue_oldest_seconds", "Waiting time of the first job in the queue.", registry=registry
        )
        self._cache_age = Gauge(
            "mpijob_elastic_cache_age_seconds",
            "Time since the last sign of life of a watch.",
            ["resource"],
            registry=registry,
        )
        self._leader = Gauge("mpijob_elastic_leader", "1 while this process is the leader.", registry=registry)

    def scale_phase(self, phase: str, seconds: float) -> None:
        """Record that a change of the size reached a phase."""
        self._scale.labels(phase).observe(seconds)

    def published(self, namespace: str, job: str, hosts: int) -> None:
        """Set the number of hosts in a job's host list."""
        self._hosts.labels(namespace, job).set(hosts)

    def forget_job(self, namespace: str, job: str) -> None:
        """End the series of a job that is gone."""
        self._hosts.remove(namespace, job)

    def deleted(self, outcome: str) -> None:
        """Count a deleted worker."""
        self._drains.labels(outcome).inc()

    def probed(self, outcome: str) -> None:
        """Count a probe of a draining worker."""
        self._probes.labels(outcome).inc()

    def watched(self, outcome: str) -> None:
        """Count a probe of a published worker."""
        self._watches.labels(outcome).inc()

    def ended_exec(self, outcome: str) -> None:
        """Count an attempt to end a frozen exec."""
        self._ended_execs.labels(outcome).inc()

    def wrote(self, verb: str, resource: str, outcome: str) -> None:
        """Count a write that was answered."""
        self._writes.labels(verb, resource, outcome).inc()

    def reconciled(self, seconds: float) -> None:
        """Record the duration of a reconciliation."""
        self._reconciles.observe(seconds)

    def failed(self) -> None:
        """Count a failed reconciliation."""
        self._failures.inc()

    def event(self, outcome: str) -> None:
        """Count an Event that was sent, failed or dropped."""
        self._events.labels(outcome).inc()

    def gauges(self, *, depth: int, oldest: float, cache_ages: Mapping[str, float], leader: bool) -> None:
        """Set the values that are read for a scrape."""
        self._queue_depth.set(depth)
        self._queue_age.set(oldest)
        self._leader.set(leader)
        for resource, age in cache_ages.items():
            self._cache_age.labels(resource).set(age)
