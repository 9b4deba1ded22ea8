"""All Prometheus metrics of the controller.

Names follow https://prometheus.io/docs/practices/naming/; docs/metrics.md lists them for users.
"""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_PHASES = ("role", "published", "settled")
_DELETED = (
    "drained",
    "timeout",
    "idle",
    "unused",
    "unscheduled",
    "failed",
    "lost",
    "finished",
    "suspended",
)
_PROBED = {"draining": ("idle", "busy", "error", "told"), "published": ("idle", "busy", "error")}
_ENDED = ("ended", "gone", "error")
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The metrics of a controller, registered at `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        histogram = partial(Histogram, registry=registry, buckets=_SECONDS)
        self.scale = histogram(
            "mpijob_elastic_scale_seconds",
            f"Time from seeing a new size until the phase: {', '.join(_PHASES)}.",
            ["phase"],
        )
        of_job = partial(gauge, labelnames=["namespace", "job"])
        self.desired_workers = of_job(
            "mpijob_elastic_desired_workers", "Workers that an elastic job asks for."
        )
        self.ready_workers = of_job(
            "mpijob_elastic_ready_workers", "Ready workers of an elastic job."
        )
        self.published_hosts = of_job(
            "mpijob_elastic_published_hosts", "Hosts in discover_hosts.sh of an elastic job."
        )
        self.draining_workers = of_job(
            "mpijob_elastic_draining_workers", "Draining workers of an elastic job."
        )
        self.queued_workers = of_job(
            "mpijob_elastic_queued_workers", "Workers of an elastic job that wait for quota."
        )
        self.of_jobs = (
            self.desired_workers,
            self.ready_workers,
            self.published_hosts,
            self.draining_workers,
            self.queued_workers,
        )
        self.lost_workers = counter(
            "mpijob_elastic_lost_workers_total",
            "Published workers whose rank died, or that were not Ready or gone.",
        )
        self.deleted_workers = counter(
            "mpijob_elastic_deleted_workers_total",
            f"Deleted workers, by reason: {', '.join(_DELETED)}.",
            ["outcome"],
        )
        self.probes = counter(
            "mpijob_elastic_probes_total",
            "Probes of draining and of published workers by exec, "
            f"by result: {', '.join(_PROBED['draining'])}.",
            ["of", "outcome"],
        )
        self.gpu_seconds = counter(
            "mpijob_elastic_gpu_seconds_total",
            "GPU-seconds of the workers of elastic jobs, by what they were spent on.",
            ["bucket"],
        )
        self.worker_seconds = counter(
            "mpijob_elastic_worker_seconds_total",
            "The same of workers that ask for no GPU: each counts as one.",
            ["bucket"],
        )
        self.ended_execs = counter(
            "mpijob_elastic_ended_execs_total",
            "Attempts to end a frozen `kubectl exec` of a launcher: "
            "ended, gone (it had ended by itself), error.",
            ["outcome"],
        )
        self.writes = counter(
            "mpijob_elastic_api_writes_total",
            "Writes to the API server, by verb, resource and outcome (ok, or the kind of error).",
            ["verb", "resource", "outcome"],
        )
        self.reconcile_seconds = histogram(
            "mpijob_elastic_reconcile_seconds",
            "Duration of a reconciliation of a job, writes included.",
        )
        self.reconcile_failures = counter(
            "mpijob_elastic_reconcile_failures_total", "Failed reconciliations, which are repeated."
        )
        self.queue_depth = gauge(
            "mpijob_elastic_queue_depth", "Jobs that wait for a reconciliation."
        )
        self.queue_age = gauge(
            "mpijob_elastic_queue_oldest_seconds", "Waiting time of the first job in the queue."
        )
        self.cache_age = gauge(
            "mpijob_elastic_cache_age_seconds",
            "Time since the last sign of life of a watch.",
            ["resource"],
        )
        self.unreadable = gauge(
            "mpijob_elastic_unreadable_objects",
            "Objects that are ignored because they cannot be read.",
            ["resource"],
        )
        self.leader = gauge("mpijob_elastic_leader", "1 while this process is the leader.")
        # Each series begins with 0: Prometheus sees no increase in a series that begins with 1.
        for metric, values in (
            (self.scale, _PHASES),
            (self.deleted_workers, _DELETED),
            (self.ended_execs, _ENDED),
        ):
            for value in values:
                metric.labels(value)
        for of, outcomes in _PROBED.items():
            for outcome in outcomes:
                self.probes.labels(of, outcome)
