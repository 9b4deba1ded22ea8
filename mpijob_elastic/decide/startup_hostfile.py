"""Which workers a launcher that has not started waits for: as many as the job begins with, those that run first.

[operator] kubectl-delivery waits until every pod of the hostfile that it read at its start has been seen Running, so
the hostfile is what decides when the launcher starts. It read a longer one? Then it is created anew (see launchers).
That many are min-replicas, or what horovodrun needs for its -np: it gives up after HOROVOD_ELASTIC_TIMEOUT without
them, while kubectl-delivery waits without a limit.
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import disruption
from mpijob_elastic.model import policy
from mpijob_elastic.model.job import Config, JobView


def awaited(view: JobView, config: Config) -> tuple[str, ...]:
    """Names of the workers for the hostfile, in numeric order.

    Whoever is named already and runs stays named, so that workers which come up one after the other change nothing.
    """
    wanted = view.wanted_names
    least = policy.startup_workers(view.policy, np_workers=view.np_workers)
    if least is None or least >= len(wanted):
        return wanted
    named = {line.split(" ")[0] for line in config.hostfile.splitlines()}
    going = disruption.going(view)
    running = {worker.name for worker in view.workers if worker.ready and worker.name not in going}
    count = max(least, sum(pod in named and pod in running for pod in wanted))
    best = sorted(wanted, key=lambda pod: (pod not in running, pod not in named))[:count]
    return tuple(sorted(best, key=lambda pod: names.worker_index(pod, job=view.name) or 0))
