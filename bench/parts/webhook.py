"""The webhook: reviews sent straight to it, and the time that it adds to requests through the API server."""

from collections.abc import Mapping, Sequence

from bench import admission, admission_overhead, namespaces, reviews, targets
from bench.admission_overhead import Added, Ground, Pattern
from bench.figures import Figure, Target
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB, usage
from bench.reviews import Rate
from lab import registration
from lab.install import install_into
from lab.replicas import Webhook
from mpijob_elastic import names


async def run(setting: Setting) -> Findings:
    """Measure everything `repeat` times. Raises LabError."""
    added: dict[Pattern, list[Added]] = {pattern: [] for pattern in admission_overhead.PATTERNS}
    rates: dict[int, list[Rate]] = {many: [] for many in reviews.CONNECTIONS}
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        registration.unregister(cluster)
        where = namespaces.create(cluster, "webhook")
        with Webhook.start(cluster, installed) as webhook:
            pods = await admission.pods(client, where)
            review = admission.review_of(await admission.try_create(client, where, pods[names.ROLE_LAUNCHER]), where)
            await admission.make_evictable(client, where, pods[names.ROLE_WORKER])
            ground = Ground(cluster=cluster, installed=installed, client=client, namespace=where, pods=pods)
            for turn in range(setting.repeat):
                for pattern, found in added.items():
                    setting.say(f"{pattern}, {turn + 1} of {setting.repeat}")
                    found.append(await admission_overhead.run(ground, pattern))
            for turn in range(setting.repeat):
                for many, measured in rates.items():
                    setting.say(f"reviews over {many} connections, {turn + 1} of {setting.repeat}")
                    pid, port = webhook.process.pid, installed.webhook_port
                    measured.append(await reviews.run(pid, port, connections=many, review=review))
            peak, size = usage(webhook.process.pid).peak / MIB, len(review)
    memory = Figure(topic="Webhook", group="all the time", name="memory at most", unit="MiB", ours=(peak,))
    return Findings(
        figures=[*_added_figures(added), *_rate_figures(rates), memory],
        notes=[f"A review of a launcher pod has {size:,} bytes."],
    )


def _added_figures(found: Mapping[Pattern, Sequence[Added]]) -> list[Figure]:
    def figure(pattern: Pattern, name: str, samples: Sequence[float], target: Target | None = None) -> Figure:
        return Figure(topic="Admission", group=str(pattern), name=name, unit="ms", ours=tuple(samples), target=target)

    return [
        row
        for pattern, rounds in found.items()
        for row in (
            figure(pattern, "without the webhook, p50", [added.p50_without for added in rounds]),
            figure(pattern, "without the webhook, p99", [added.p99_without for added in rounds]),
            figure(pattern, "added by the webhook, p50", [added.p50 for added in rounds]),
            figure(
                pattern,
                "added by the webhook, p99",
                [added.p99 for added in rounds],
                targets.ADDED if pattern.callers == 1 or pattern.interval else None,
            ),
        )
    ]


def _rate_figures(found: Mapping[int, Sequence[Rate]]) -> list[Figure]:
    def figure(connections: int, name: str, unit: str, samples: Sequence[float]) -> Figure:
        target = targets.REVIEWS if name == "a second of its CPU time" else None
        group = f"reviews, {connections} connections"
        return Figure(topic="Webhook", group=group, name=name, unit=unit, ours=tuple(samples), target=target)

    return [
        row
        for connections, rates in found.items()
        for row in (
            figure(connections, "a second of its CPU time", "1/s", [rate.a_cpu_second for rate in rates]),
            figure(connections, "a second", "1/s", [rate.a_second for rate in rates]),
            figure(connections, "took, p50", "ms", [rate.p50 for rate in rates]),
            figure(connections, "took, p99", "ms", [rate.p99 for rate in rates]),
        )
    ]
