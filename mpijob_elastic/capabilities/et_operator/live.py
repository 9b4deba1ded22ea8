"""The watch of ScaleIns and ScaleOuts, and the answer to those for jobs that do not exist."""

from dataclasses import dataclass

from mpijob_elastic.act.capability_writes import LiveWrites
from mpijob_elastic.capabilities.et_operator import EtOperator, facts, wishes
from mpijob_elastic.capabilities.et_operator.facts import FAILED, TRAINING_JOBS, ScaleRequest
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import JobKey, Watching

# The option of the controller that turns it on.
OPTION = "et-operator"


class RequestWatch:
    """The watch of the requests.

    Where et-operator's own jobs are served, et-operator carries the requests out, and we stand
    aside.
    """

    def __init__(self, watching: Watching) -> None:
        self._found = [watching.by_job(resource, read) for resource, read in facts.READ.items()]
        self._others = watching.by_job(TRAINING_JOBS, facts.read_training_job)

    def seen(self, key: JobKey, view: JobView) -> EtOperator | None:
        """Return the requests of a job; None if it has none, or if they are et-operator's."""
        known = self._others.known is False and all(found.known for found in self._found)
        return (
            EtOperator.of(view, [one for found in self._found for one in found.of(key).values()])
            if known
            else None
        )


@dataclass(kw_only=True, eq=False)
class Requests(LiveWrites):
    """Answers the requests for jobs that do not exist."""

    async def jobless(self, namespace: str, name: str) -> None:
        """Say in the requests for a job that it does not exist, after a live look for the job.

        The requests are those of the watch, so one request costs nothing but its own answer. If it
        is not known yet whose requests these are, the job is looked at again once it is.
        """
        if self.seen.is_served(TRAINING_JOBS) is not False:
            return
        found = (self.seen.of_job(resource, namespace, name) for resource in facts.READ)
        waiting = [
            one for of_kind in found for one in of_kind if one.is_open and not one.metadata.job_uid
        ]
        if not waiting or await self.client.find(MPI_JOBS.path(namespace, name)):
            return
        for request in waiting:
            await self._fail(request, f"there is no MPIJob {namespace}/{name}")

    async def _fail(self, request: ScaleRequest, why: str) -> None:
        action = wishes.say(request, FAILED, why, now=self.now())
        ref = request.metadata
        answer = await self.leader_writer.patch_object(
            action.resource,
            namespace=ref.namespace,
            name=ref.name,
            subresource=action.subresource,
            body=action.body(),
        )
        self.seen.see(action.resource, answer)
        for note in action.notes:
            self.events.emit_on(*action.told_on, note)
