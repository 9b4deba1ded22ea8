"""The watch of the HPAs of jobs, and of pods of other jobs that wait for nodes."""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling import Autoscaling, autoscaler
from mpijob_elastic.capabilities.autoscaling.autoscaler import Autoscaler
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALERS, Scaling
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.policy import least_workers
from mpijob_elastic.observe.watching import ByJob, JobKey, Watching


class AutoscalerWatch:
    """The watch of HPAs that scale jobs, and the view of jobs whose pods wait for nodes."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._found: ByJob[Autoscaler] = watching.by_job(AUTOSCALERS, autoscaler.read)

    def seen(self, key: JobKey, view: JobView) -> Autoscaling | None:
        """Return what scales a job; None if nothing does and the job asks for nothing."""
        asked, found = view.facts.of(Scaling), tuple(self._found.of(key).values())
        if not (found or asked):
            return None
        others = tuple(self._others_wait(view.facts)) if asked and asked.fill else None
        return Autoscaling(
            autoscalers=found if self._found.known else None,
            others_wait=others,
            minor=self._watching.server.minor,
        )

    def _others_wait(self, job: JobFacts) -> Iterator[float]:
        """Yield the creation time of each worker of other jobs that could run in place of ours.

        The other job needs the worker, and no node takes it.
        """
        for other, unplaced in self._watching.unplaced():
            is_itself = (
                other.metadata.name == job.metadata.name
                and other.metadata.namespace == job.metadata.namespace
            )
            if is_itself or other.place != job.place or other.finished:
                continue
            least = least_workers(other.policy, other.replicas, elastic=other.elastic)
            for name, pod in unplaced.items():
                index = names.worker_index(name, job=other.metadata.name)
                is_its_own = pod.metadata.job_uid == other.metadata.uid
                if is_its_own and index is not None and index < least:
                    yield pod.created_at
