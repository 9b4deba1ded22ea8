"""What each alert of the overlay `prometheus` fires on, and what it must not fire on.

Series are in promtool's notation: `1+0x9` is ten samples of 1, `_x9` nine missing samples. Samples are 30 s apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

OURS = 'namespace="mpijob-elastic"'
HOURS = "x360"  # three hours of samples
CONTROLLER = f'{OURS},pod="controller-a"'
LEADER = f"mpijob_elastic_leader{{{CONTROLLER}}}"
STANDBY = f'mpijob_elastic_leader{{{OURS},pod="controller-b"}}'
WEBHOOKS = [f'up{{{OURS},container="webhook",pod="webhook-{name}"}}' for name in "ab"]
EXPIRY = f"mpijob_elastic_webhook_certificate_expiry_timestamp_seconds{{{OURS}}}"
AGE = f'mpijob_elastic_cache_age_seconds{{{CONTROLLER},resource="pods"}}'
QUEUE = f"mpijob_elastic_queue_oldest_seconds{{{CONTROLLER}}}"
FAILURES = f"mpijob_elastic_reconcile_failures_total{{{CONTROLLER}}}"


def reviews(outcome: str) -> str:
    return f'mpijob_elastic_webhook_reviews_total{{{OURS},kind="Pod",operation="CREATE",outcome="{outcome}"}}'


def seconds(most: str) -> str:
    return f'mpijob_elastic_webhook_review_seconds_bucket{{{OURS},le="{most}"}}'


def writes(outcome: str) -> str:
    return f'mpijob_elastic_api_writes_total{{{CONTROLLER},verb="patch",resource="configmaps",outcome="{outcome}"}}'


def deleted(outcome: str) -> str:
    return f'mpijob_elastic_deleted_workers_total{{{CONTROLLER},outcome="{outcome}"}}'


HEALTH = {
    LEADER: f"1+0{HOURS}",
    STANDBY: f"0+0{HOURS}",
    **dict.fromkeys(WEBHOOKS, f"1+0{HOURS}"),
    EXPIRY: f"600000+0{HOURS}",
    reviews("patched"): f"0+40{HOURS}",
    reviews("error"): f"0+0{HOURS}",
    seconds("0.005"): f"0+40{HOURS}",
    seconds("1.0"): f"0+40{HOURS}",
    seconds("2.0"): f"0+40{HOURS}",
    seconds("+Inf"): f"0+40{HOURS}",
    AGE: f"75+0{HOURS}",
    QUEUE: f"0+0{HOURS}",
    writes("ok"): f"0+10{HOURS}",
    writes("Conflict"): f"0+1{HOURS}",
    FAILURES: f"0+0{HOURS}",
    deleted("drained"): f"0+3{HOURS}",
    deleted("timeout"): f"0+0{HOURS}",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """Health but for `series`. At that minute the alert fires, or nothing does where `alert` is None.

    shown: what replaces the template pieces in the alert's texts, in their order.
    """

    name: str
    series: Mapping[str, str]
    minute: int
    alert: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()


FIRES = (
    Case(
        name="nobody leads",
        series={LEADER: f"1+0x9 0+0{HOURS}"},
        minute=11,
        alert="MPIJobElasticNoLeader",
        shown=("0",),
    ),
    Case(
        name="no controller is there",
        series={LEADER: "1+0x9 stale", STANDBY: "0+0x9 stale", AGE: "75+0x9 stale"},
        minute=11,
        alert="MPIJobElasticNoLeader",
        shown=("0",),
    ),
    Case(
        name="two lead",
        series={STANDBY: f"0+0x9 1+0{HOURS}"},
        minute=11,
        alert="MPIJobElasticNoLeader",
        shown=("2",),
    ),
    Case(
        name="no webhook answers",
        series=dict.fromkeys(WEBHOOKS, f"1+0x9 0+0{HOURS}"),
        minute=11,
        alert="MPIJobElasticWebhookDown",
    ),
    Case(
        name="no webhook is there",
        series=dict.fromkeys(WEBHOOKS, "1+0x9 stale"),
        minute=11,
        alert="MPIJobElasticWebhookDown",
    ),
    Case(
        name="the certificate has 23 hours left",
        series={EXPIRY: f"82800+0{HOURS}"},
        minute=16,
        alert="MPIJobElasticCertificateExpires",
    ),
    Case(
        name="reviews end with errors",
        series={reviews("error"): f"0+1{HOURS}"},
        minute=12,
        alert="MPIJobElasticWebhookFails",
    ),
    Case(
        name="objects are unreadable, from the first on",
        series={reviews("unreadable"): f"_x20 1+1{HOURS}"},
        minute=22,
        alert="MPIJobElasticWebhookFails",
    ),
    Case(
        name="a review in ten takes two seconds",
        series={seconds("0.005"): f"0+36{HOURS}", seconds("1.0"): f"0+36{HOURS}"},
        minute=12,
        alert="MPIJobElasticWebhookSlow",
        shown=("1.9s",),
    ),
    Case(
        name="the controller is restarted before the watch comes back",
        series={AGE: "0+30x11 0+30x11 0+30x11"},
        minute=17,
        alert="MPIJobElasticCacheStale",
        labels={"resource": "pods"},
        shown=("pods", "5m 30s"),
    ),
    Case(
        name="jobs wait",
        series={QUEUE: f"60+15{HOURS}"},
        minute=6,
        alert="MPIJobElasticQueueStuck",
        shown=("4m 0s",),
    ),
    Case(
        name="writes are forbidden, which is tried once a minute",
        series={writes("Forbidden"): "_x9 " + " ".join(f"{count} {count}" for count in range(1, 60))},
        minute=25,
        alert="MPIJobElasticWritesRefused",
        labels={"resource": "configmaps"},
        shown=("configmaps",),
    ),
    Case(
        name="jobs fail four times a minute",
        series={FAILURES: f"0+2{HOURS}"},
        minute=26,
        alert="MPIJobElasticJobsFail",
        shown=("60",),
    ),
    Case(
        name="a worker is deleted with its ranks",
        series={deleted("timeout"): f"0+0x9 1+0{HOURS}"},
        minute=6,
        alert="MPIJobElasticDrainsTimeOut",
    ),
)
QUIET = (
    Case(name="health", series={}, minute=150),
    Case(name="the leader is replaced", series={LEADER: f"1+0x9 0+0{HOURS}", STANDBY: f"0+0x15 1+0{HOURS}"}, minute=8),
    Case(name="one webhook of two is there", series={WEBHOOKS[0]: f"1+0x9 0+0{HOURS}"}, minute=60),
    Case(name="the webhooks are restarted", series=dict.fromkeys(WEBHOOKS, f"1+0x9 0+0x7 1+0{HOURS}"), minute=8),
    Case(name="the certificate is renewed in time", series={EXPIRY: f"259200+0x59 1036800+0{HOURS}"}, minute=150),
    Case(name="a webhook has no certificate yet", series={EXPIRY: f"0+0{HOURS}"}, minute=20),
    Case(name="one review failed", series={reviews("error"): f"0+0x9 1+0{HOURS}"}, minute=14),
    Case(name="nobody creates anything", series={seconds(most): f"9+0{HOURS}" for most in ("1.0", "+Inf")}, minute=60),
    Case(name="a watch is replaced", series={AGE: f"0+30x3 0+30x3 0+0{HOURS}"}, minute=4),
    Case(name="the watch came back", series={AGE: f"0+30x11 5+0{HOURS}"}, minute=17),
    Case(name="a burst of jobs", series={QUEUE: f"0+0x9 200+0x5 0+0{HOURS}"}, minute=8),
    Case(name="a write was forbidden once", series={writes("Forbidden"): f"0+0x9 1+0{HOURS}"}, minute=19),
    Case(name="conflicts are repeated", series={FAILURES: f"0+0.5{HOURS}"}, minute=150),
    Case(name="ranks were cut more than an hour ago", series={deleted("timeout"): f"0+0x9 1+0{HOURS}"}, minute=70),
)
