"""The webhook: the time that it adds to requests through the API server, and the CPU time that it needs for them."""

from collections.abc import Mapping, Sequence
from functools import partial

from bench import admission, admission_overhead, namespaces, targets
from bench.admission_overhead import Added, Ground, Pattern
from bench.figures import Figure, measured
from bench.parts.context import Findings, Setting, lab
from bench.processes import MIB, usage
from lab import registration
from lab.install import install_into
from lab.pod_access import pods_work
from lab.replicas import Webhook
from mpijob_elastic import names


async def run(setting: Setting) -> Findings:
    """Measure everything `repeat` times. Raises LabError."""
    added: dict[Pattern, list[Added]] = {pattern: [] for pattern in admission_overhead.PATTERNS}
    async with lab(setting) as (cluster, client):
        installed = install_into(cluster)
        registration.unregister(cluster)
        where = namespaces.create(cluster, "webhook")
        with Webhook.start(cluster, installed, as_in_pod=pods_work()) as webhook:
            pods = await admission.pods(client, where)
            await admission.make_evictable(client, where, pods[names.ROLE_WORKER])
            pid = webhook.process.pid
            ground = Ground(
                cluster=cluster,
                installed=installed,
                pid=pid,
                client=client,
                namespace=where,
                pods=pods,
            )
            for turn in range(setting.repeat):
                for pattern, found in added.items():
                    setting.say(f"{pattern}, {turn + 1} of {setting.repeat}")
                    found.append(await admission_overhead.run(ground, pattern))
            peak = usage(pid).peak / MIB
    memory = Figure(
        topic="Webhook", group="all the time", name="memory at most", unit="MiB", ours=(peak,)
    )
    return Findings(figures=[*_added_figures(added), memory])


def _added_figures(found: Mapping[Pattern, Sequence[Added]]) -> list[Figure]:
    rows = []
    for pattern, rounds in found.items():
        figure = partial(measured, ("Admission", str(pattern)), ours=rounds)
        judged = targets.ADDED if pattern.callers == 1 or pattern.interval else None
        rows += [
            figure("without the webhook, p50", "ms", lambda added: added.p50_without),
            figure("without the webhook, p99", "ms", lambda added: added.p99_without),
            figure("added by the webhook, p50", "ms", lambda added: added.p50),
            figure("added by the webhook, p99", "ms", lambda added: added.p99, target=judged),
            figure(
                "a second of its CPU time",
                "1/s",
                lambda added: added.a_cpu_second,
                target=targets.REVIEWS,
            ),
        ]
    return rows
