"""The looks of a plan: probes of workers and looks into the launcher. They change nothing."""

from collections.abc import Iterable

from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.decide.actions import Look, ProbeWorkers
from mpijob_elastic.model.job import JobView


class Looks:
    """Begins looks; their answers wake the job."""

    def __init__(self, prober: Prober, execs: Execs) -> None:
        self.prober = prober
        self.execs = execs

    def begin(self, view: JobView, looks: Iterable[Look]) -> None:
        """Begin these looks, and forget earlier looks into pods that are gone."""
        self.prober.tidy(view)
        for look in looks:
            if isinstance(look, ProbeWorkers):
                self.prober.begin(view, look)
            else:
                self.execs.begin(view, look)

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""
        self.prober.forget(namespace, name)
        self.execs.forget(namespace, name)

    async def close(self) -> None:
        """Stop every look that is under way."""
        await self.prober.close()
        await self.execs.close()
