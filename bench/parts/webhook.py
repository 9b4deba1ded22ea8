"""The webhook: reviews sent straight to it, and the time that it adds to requests through the API server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench import admission, admission_overhead, namespaces, reviews, targets
from bench.admission_overhead import Added, Ground, Pattern
from bench.figures import Figure
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB, usage
from bench.reviews import Rate
from lab import registration
from lab.install import install_into
from lab.replicas import Webhook
from mpijob_elastic import names


@dataclass(frozen=True, kw_only=True)
class _Gathered:
    added: Mapping[Pattern, list[Added]] = field(
        default_factory=lambda: {pattern: [] for pattern in admission_overhead.PATTERNS}
    )
    rates: Mapping[int, list[Rate]] = field(default_factory=lambda: {many: [] for many in reviews.CONNECTIONS})


async def run(setting: Setting) -> Findings:
    """Measure everything `repeat` times. Raises LabError."""
    gathered = _Gathered()
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        registration.unregister(cluster)
        where = namespaces.create(cluster, "webhook")
        with Webhook.start(cluster, installed) as webhook:
            pods = await admission.pods(client, where)
            review = cluster.state_dir / "review.json"
            review.write_bytes(
                admission.review_of(await admission.try_create(client, where, pods[names.ROLE_LAUNCHER]), where)
            )
            await admission.make_evictable(client, where, pods[names.ROLE_WORKER])
            ground = Ground(cluster=cluster, installed=installed, client=client, namespace=where, pods=pods)
            for turn in range(setting.repeat):
                for pattern, found in gathered.added.items():
                    setting.say(f"{pattern}, {turn + 1} of {setting.repeat}")
                    found.append(await admission_overhead.run(ground, pattern))
            for turn in range(setting.repeat):
                for many, rates in gathered.rates.items():
                    setting.say(f"reviews over {many} connections, {turn + 1} of {setting.repeat}")
                    pid, port = webhook.process.pid, installed.webhook_port
                    rates.append(await reviews.run(pid, port, connections=many, review=review))
            peak, size = usage(webhook.process.pid).peak / MIB, review.stat().st_size
    memory = Figure(topic="Webhook", group="all the time", name="memory at most", unit="MiB", ours=(peak,))
    return Findings(
        figures=[*_added_figures(gathered.added), *_rate_figures(gathered.rates), memory],
        notes=[f"A review of a launcher pod has {size:,} bytes."],
    )


def _added_figures(found: Mapping[Pattern, Sequence[Added]]) -> list[Figure]:
    def figures(pattern: Pattern, rounds: Sequence[Added]) -> list[Figure]:
        group = str(pattern)
        values = {
            "without the webhook, p50": [added.p50_without for added in rounds],
            "without the webhook, p99": [added.p99_without for added in rounds],
            "added by the webhook, p50": [added.p50 for added in rounds],
            "added by the webhook, p99": [added.p99 for added in rounds],
        }
        paced = pattern.callers == 1 or pattern.interval
        judged = {"added by the webhook, p99": targets.ADDED} if paced else {}
        return [
            Figure(topic="Admission", group=group, name=name, unit="ms", ours=tuple(samples), target=judged.get(name))
            for name, samples in values.items()
        ]

    return [figure for pattern, rounds in found.items() for figure in figures(pattern, rounds)]


def _rate_figures(found: Mapping[int, Sequence[Rate]]) -> list[Figure]:
    def figures(connections: int, rates: Sequence[Rate]) -> list[Figure]:
        group = f"reviews, {connections} connections"
        values = {
            ("a second of its CPU time", "1/s"): [rate.a_cpu_second for rate in rates],
            ("a second", "1/s"): [rate.a_second for rate in rates],
            ("took, p50", "ms"): [rate.p50 for rate in rates],
            ("took, p99", "ms"): [rate.p99 for rate in rates],
        }
        judged = {"a second of its CPU time": targets.REVIEWS}
        return [
            Figure(topic="Webhook", group=group, name=name, unit=unit, ours=tuple(samples), target=judged.get(name))
            for (name, unit), samples in values.items()
        ]

    return [figure for connections, rates in found.items() for figure in figures(connections, rates)]
