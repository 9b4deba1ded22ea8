"""The Grafana dashboard of the component `prometheus`, which `make manifests` writes beside it.

Labels are those that the component's PodMonitor makes: a controller is `pod`, a job `exported_namespace` and
`exported_job`.
"""

from pathlib import Path

from lab import grafana
from lab.grafana import Choice, Panel, Query

DASHBOARD = Path(__file__).parents[1] / "config" / "components" / "prometheus" / "dashboard.json"

# The jobs that are chosen at the top of the dashboard.
_JOBS = 'exported_namespace=~"$namespace",exported_job=~"$job"'
_OF_JOB = "exported_namespace, exported_job"


def _workers(metric: str) -> str:
    # Until a scrape sees that the leader has changed, two controllers show the job.
    return f"max by ({_OF_JOB}) ({metric}{{{_JOBS}}})"


def _quantiles(metric: str, *, by: str = "") -> tuple[Query, ...]:
    """Return the median and the 95th percentile of an hour, because most clusters see few changes."""
    sums = f"sum by (le{', ' * bool(by)}{by}) (increase({metric}_bucket[1h]))"
    name = f"{{{{{by}}}}}, " if by else ""
    return (
        Query(promql=f"histogram_quantile(0.5, {sums})", legend=f"{name}median"),
        Query(promql=f"histogram_quantile(0.95, {sums})", legend=f"{name}95th percentile"),
    )


def _rate(metric: str, *by: str) -> Query:
    promql = f"sum by ({', '.join(by)}) (rate({metric}[$__rate_interval]))"
    return Query(promql=promql, legend=" ".join(f"{{{{{label}}}}}" for label in by))


_CHOICES = (
    Choice(name="namespace", of="label_values(mpijob_elastic_desired_workers, exported_namespace)"),
    Choice(
        name="job",
        of='label_values(mpijob_elastic_desired_workers{exported_namespace=~"$namespace"}, exported_job)',
    ),
)
ROWS: dict[str, tuple[Panel, ...]] = {
    "Jobs": (
        Panel(
            title="Workers",
            about="Of the chosen jobs. Published workers are in discover_hosts.sh, so Horovod may use them.",
            queries=(
                Query(promql=f"sum({_workers('mpijob_elastic_desired_workers')})", legend="asked"),
                Query(promql=f"sum({_workers('mpijob_elastic_ready_workers')})", legend="ready"),
                Query(promql=f"sum({_workers('mpijob_elastic_published_hosts')})", legend="published"),
                Query(promql=f"sum({_workers('mpijob_elastic_draining_workers')})", legend="draining"),
            ),
        ),
        Panel(
            title="Workers that are missing",
            about="Asked but not published, in the ten jobs that lack most. `mpijob-elastic explain JOB` says why.",
            queries=(
                Query(
                    promql=(
                        f"topk(10, {_workers('mpijob_elastic_desired_workers')}"
                        f" - {_workers('mpijob_elastic_published_hosts')})"
                    ),
                    legend="{{exported_namespace}}/{{exported_job}}",
                ),
            ),
        ),
        Panel(
            title="Time from an edit",
            about="For edits of the last hour. role: the launcher may exec; published: the list is complete; settled: "
            "surplus workers are gone.",
            queries=_quantiles("mpijob_elastic_scale_seconds", by="phase"),
            unit="s",
        ),
        Panel(
            title="Deleted workers",
            about="By reason. drained: its ranks had ended; timeout: they were cut; failed: it was replaced.",
            queries=(
                Query(
                    promql="sum by (outcome) (increase(mpijob_elastic_deleted_workers_total[$__rate_interval]))",
                    legend="{{outcome}}",
                ),
            ),
            bars=True,
        ),
        Panel(
            title="Lost ranks",
            about="Workers that left discover_hosts.sh unasked, and frozen kubectl execs of launchers that were ended.",
            queries=(
                Query(
                    promql="sum(increase(mpijob_elastic_lost_workers_total[$__rate_interval]))",
                    legend="lost workers",
                ),
                Query(
                    promql='sum(increase(mpijob_elastic_ended_execs_total{outcome="ended"}[$__rate_interval]))',
                    legend="ended execs",
                ),
            ),
            bars=True,
        ),
        Panel(
            title="Probes of workers",
            about="Looks into leaving workers for ranks that still run. Errors mean that exec is refused, or that the "
            "image has no /bin/sh.",
            queries=(_rate("mpijob_elastic_drain_probes_total", "outcome"),),
            unit="ops",
        ),
    ),
    "Controller": (
        Panel(
            title="Leader",
            about="1 on the controller that leads. With no leader no size changes, and jobs go on.",
            queries=(Query(promql="max by (pod) (mpijob_elastic_leader)", legend="{{pod}}"),),
        ),
        Panel(
            title="Queue",
            about="Jobs that wait for the controller, and how many seconds the first has waited.",
            queries=(
                Query(promql="max(mpijob_elastic_queue_depth)", legend="jobs"),
                Query(promql="max(mpijob_elastic_queue_oldest_seconds)", legend="seconds"),
            ),
        ),
        Panel(
            title="Writes to the API server",
            about="A few conflicts are harmless; Forbidden and Invalid are not.",
            queries=(_rate("mpijob_elastic_api_writes_total", "verb", "resource", "outcome"),),
            unit="ops",
        ),
        Panel(
            title="Reconciliation of a job",
            about="Duration, writes included, in the last hour.",
            queries=_quantiles("mpijob_elastic_reconcile_seconds"),
            unit="s",
        ),
        Panel(
            title="Failed reconciliations",
            about="Each is repeated with growing pauses.",
            queries=(
                Query(promql="sum(rate(mpijob_elastic_reconcile_failures_total[$__rate_interval]))", legend="failed"),
            ),
            unit="ops",
        ),
        Panel(
            title="Age of watches",
            about="Time since the last sign of life of each watch. Up to 75 s is healthy.",
            queries=(Query(promql="max by (resource) (mpijob_elastic_cache_age_seconds)", legend="{{resource}}"),),
            unit="s",
        ),
    ),
    "Webhook": (
        Panel(
            title="Duration of a review",
            about="In the last hour. The API server waits 2 s at most, and goes on without an answer.",
            queries=_quantiles("mpijob_elastic_webhook_review_seconds"),
            unit="s",
        ),
        Panel(
            title="Reviews",
            about="unreadable and error were let through as they were.",
            queries=(_rate("mpijob_elastic_webhook_reviews_total", "kind", "outcome"),),
            unit="ops",
        ),
        Panel(
            title="Certificate",
            about="Time until the first served certificate expires. It is renewed long before.",
            queries=(
                Query(
                    promql="min(mpijob_elastic_webhook_certificate_expiry_timestamp_seconds > 0) - time()",
                    legend="expires in",
                ),
            ),
            unit="s",
            number=True,
        ),
    ),
}


def text() -> str:
    """Return the dashboard's JSON."""
    return grafana.dashboard(
        uid="mpijob-elastic",
        title="MPIJobs, elastic",
        about="Jobs, controller and webhook of mpijob-elastic. docs/metrics.md explains each metric.",
        choices=_CHOICES,
        rows=ROWS,
    )


def write() -> None:
    """Write the file that the component ships."""
    DASHBOARD.write_text(text())
