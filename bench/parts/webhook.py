"""The webhook: the time that it adds to requests through the API server, and the CPU time that it needs for them."""

from collections.abc import Mapping, Sequence

from bench import admission, admission_overhead, namespaces, targets
from bench.admission_overhead import Added, Ground, Pattern
from bench.figures import Figure, Target
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB, usage
from lab import registration
from lab.install import install_into
from lab.replicas import Webhook
from mpijob_elastic import names


async def run(setting: Setting) -> Findings:
    """Measure everything `repeat` times. Raises LabError."""
    added: dict[Pattern, list[Added]] = {pattern: [] for pattern in admission_overhead.PATTERNS}
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        registration.unregister(cluster)
        where = namespaces.create(cluster, "webhook")
        with Webhook.start(cluster, installed) as webhook:
            pods = await admission.pods(client, where)
            await admission.make_evictable(client, where, pods[names.ROLE_WORKER])
            pid = webhook.process.pid
            ground = Ground(cluster=cluster, installed=installed, pid=pid, client=client, namespace=where, pods=pods)
            for turn in range(setting.repeat):
                for pattern, found in added.items():
                    setting.say(f"{pattern}, {turn + 1} of {setting.repeat}")
                    found.append(await admission_overhead.run(ground, pattern))
            peak = usage(pid).peak / MIB
    memory = Figure(topic="Webhook", group="all the time", name="memory at most", unit="MiB", ours=(peak,))
    return Findings(figures=[*_added_figures(added), memory])


def _added_figures(found: Mapping[Pattern, Sequence[Added]]) -> list[Figure]:
    def figure(
        pattern: Pattern, name: str, samples: Sequence[float], target: Target | None = None, unit: str = "ms"
    ) -> Figure:
        return Figure(topic="Admission", group=str(pattern), name=name, unit=unit, ours=tuple(samples), target=target)

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
            figure(
                pattern, "a second of its CPU time", [added.a_cpu_second for added in rounds], targets.REVIEWS, "1/s"
            ),
        )
    ]
