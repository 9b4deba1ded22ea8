"""What each alert of the overlay `prometheus` fires on, and what it must not fire on.

Series are in promtool's notation: `1+0x9` is ten samples of 1, `_x9` nine missing samples. Samples
are 30 s apart.
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
UNREADABLE = f'mpijob_elastic_unreadable_objects{{{CONTROLLER},resource="mpijobs"}}'
OF_WEBHOOK = f'mpijob_elastic_webhook_unreadable_objects{{{OURS},pod="webhook-a"}}'
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
    UNREADABLE: f"0+0{HOURS}",
    OF_WEBHOOK: f"0+0{HOURS}",
    QUEUE: f"0+0{HOURS}",
    writes("ok"): f"0+10{HOURS}",
    writes("Conflict"): f"0+1{HOURS}",
    FAILURES: f"0+0{HOURS}",
    deleted("drained"): f"0+3{HOURS}",
    deleted("timeout"): f"0+0{HOURS}",
}


@dataclass(frozen=True)
class Case:
    """Health but for `series`. At that minute the alert fires, or nothing does where `alert` is "".

    shown: what replaces the template pieces in the alert's texts, in their order.
    """

    name: str
    minute: int
    series: Mapping[str, str]
    alert: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    shown: tuple[str, ...] = ()


FIRES = (
    Case("nobody leads", 11, {LEADER: f"1+0x9 0+0{HOURS}"}, "NoLeader", shown=("0",)),
    Case(
        "no controller is there",
        11,
        {LEADER: "1+0x9 stale", STANDBY: "0+0x9 stale", AGE: "75+0x9 stale"},
        "NoLeader",
        shown=("0",),
    ),
    Case("two lead", 11, {STANDBY: f"0+0x9 1+0{HOURS}"}, "NoLeader", shown=("2",)),
    Case("no webhook answers", 11, dict.fromkeys(WEBHOOKS, f"1+0x9 0+0{HOURS}"), "WebhookDown"),
    Case("no webhook is there", 11, dict.fromkeys(WEBHOOKS, "1+0x9 stale"), "WebhookDown"),
    Case(
        "the certificate has 23 hours left", 16, {EXPIRY: f"82800+0{HOURS}"}, "CertificateExpires"
    ),
    Case("reviews end with errors", 12, {reviews("error"): f"0+1{HOURS}"}, "WebhookFails"),
    Case(
        "objects are unreadable, from the first on",
        22,
        {reviews("unreadable"): f"_x20 1+1{HOURS}"},
        "WebhookFails",
    ),
    Case(
        "a review in ten takes two seconds",
        12,
        {seconds("0.005"): f"0+36{HOURS}", seconds("1.0"): f"0+36{HOURS}"},
        "WebhookSlow",
        shown=("1.9s",),
    ),
    Case(
        "the controller is restarted before the watch comes back",
        17,
        {AGE: "0+30x11 0+30x11 0+30x11"},
        "CacheStale",
        labels={"resource": "pods"},
        shown=("pods", "5m 30s"),
    ),
    Case("a job cannot be read", 21, {UNREADABLE: f"0+0x9 1+0{HOURS}"}, "ObjectsUnreadable"),
    Case(
        "the webhook cannot read a job", 21, {OF_WEBHOOK: f"0+0x9 1+0{HOURS}"}, "ObjectsUnreadable"
    ),
    Case("jobs wait", 6, {QUEUE: f"60+15{HOURS}"}, "QueueStuck", shown=("4m 0s",)),
    Case(
        "writes are forbidden, which is tried once a minute",
        25,
        {writes("Forbidden"): "_x9 " + " ".join(f"{count} {count}" for count in range(1, 60))},
        "WritesRefused",
        labels={"resource": "configmaps"},
        shown=("configmaps",),
    ),
    Case("jobs fail four times a minute", 26, {FAILURES: f"0+2{HOURS}"}, "JobsFail", shown=("60",)),
    Case(
        "a worker is deleted with its ranks",
        6,
        {deleted("timeout"): f"0+0x9 1+0{HOURS}"},
        "DrainsTimeOut",
    ),
)
QUIET = (
    Case("health", 150, {}),
    Case("the leader is replaced", 8, {LEADER: f"1+0x9 0+0{HOURS}", STANDBY: f"0+0x15 1+0{HOURS}"}),
    Case("one webhook of two is there", 60, {WEBHOOKS[0]: f"1+0x9 0+0{HOURS}"}),
    Case("the webhooks are restarted", 8, dict.fromkeys(WEBHOOKS, f"1+0x9 0+0x7 1+0{HOURS}")),
    Case("the certificate is renewed in time", 150, {EXPIRY: f"259200+0x59 1036800+0{HOURS}"}),
    Case("a webhook has no certificate yet", 20, {EXPIRY: f"0+0{HOURS}"}),
    Case("one review failed", 14, {reviews("error"): f"0+0x9 1+0{HOURS}"}),
    Case("nobody creates anything", 60, {seconds(most): f"9+0{HOURS}" for most in ("1.0", "+Inf")}),
    Case("a watch is replaced", 4, {AGE: f"0+30x3 0+30x3 0+0{HOURS}"}),
    Case("the watch came back", 17, {AGE: f"0+30x11 5+0{HOURS}"}),
    Case("a job could not be read and was mended", 21, {UNREADABLE: f"0+0x9 1+0x19 0+0{HOURS}"}),
    Case("a burst of jobs", 8, {QUEUE: f"0+0x9 200+0x5 0+0{HOURS}"}),
    Case("a write was forbidden once", 19, {writes("Forbidden"): f"0+0x9 1+0{HOURS}"}),
    Case("conflicts are repeated", 150, {FAILURES: f"0+0.5{HOURS}"}),
    Case("ranks were cut more than an hour ago", 70, {deleted("timeout"): f"0+0x9 1+0{HOURS}"}),
)
