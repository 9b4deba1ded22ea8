"""A day of a job in a queue of Kueue with four GPUs: rivals come and go, it is suspended, and preempted as a whole."""

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_PRIORITY_CLASS, LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource
from tests.campaign import day as days
from tests.campaign.day import Steps
from tests.campaign.sequence_place import listed
from tests.campaign.sequence_rules import Lags, Version
from tests.lab.history import History, most_requested
from tests.lab.job import Job, State
from tests.peers.queued_jobs import ONE_GPU, QUICK
from tests.peers.queues import queue_of_four

GPU, QUOTA = "nvidia.com/gpu", 4
# A guest of the same priority takes what the job does not need to go on; a second takes all while
# the job is suspended; a chief of a higher priority takes all.
GUEST, SECOND, CHIEF = "guest", "second", "chief"


@dataclass(frozen=True, kw_only=True)
class QueuedDay(days.Day):
    """The day. trains: how many workers of each job train once Kueue has decided."""

    WATCHED = (
        resources.MPI_JOBS,
        resources.PODS,
        resources.CONFIG_MAPS,
        resources.ROLES,
        WORKLOADS,
    )
    CUT_FROM = ("create", "a guest comes", "suspended", "a chief comes")
    KINDS: ClassVar[tuple[Resource, ...]] = (*days.KINDS, WORKLOADS)

    trains: dict[str, int] = field(default_factory=dict)

    def morning(self) -> Steps:
        comes, goes = partial(partial, _come, self), partial(partial, _delete, self)
        return {
            "create": partial(_create, self),
            "3→4": partial(_scale, self, 4),
            "a guest comes": comes(GUEST, 2, leaves=2),
            "the guest ends": partial(_finish, self),
            "suspended": partial(_suspend, self),
            "a second takes all": comes(SECOND, QUOTA, leaves=0),
            "resumed": partial(_resume, self),
            "the second is deleted": goes(SECOND),
            "a chief comes": comes(CHIEF, QUOTA, leaves=0),
            "the chief is deleted": goes(CHIEF),
            "4→3": partial(_scale, self, 3),
            "a worker fails": partial(_fail_worker, self),
        }

    def evening(self) -> Steps:
        return {"the job ends": partial(_end, self)}

    async def begin(self) -> None:
        await asyncio.to_thread(queue_of_four, self.cluster, self.job.namespace)

    async def end(self) -> None:
        """Kueue lets go of a queue whose quota nobody has."""
        for kind, name in (("localqueue", "team"), ("clusterqueue", self.job.namespace)):
            arguments = ("delete", kind, name, "--namespace", self.job.namespace, "--timeout=60s")
            await asyncio.to_thread(self.cluster.kubectl, *arguments)

    def rival(self, name: str) -> Job:
        """Return another job of the queue."""
        return replace(self.job, name=name)

    def jobs(self) -> Iterable[Job]:
        return map(self.rival, (self.job.name, GUEST, SECOND, CHIEF))

    def counts(self, name: str) -> bool:
        """What is left of the rivals depends on whether they have started."""
        return f" {self.job.name}" in name

    async def is_whole(self, state: State) -> str:
        wrong = []
        for name, trains in self.trains.items():
            job = self.rival(name)
            found = state if name == self.job.name else await job.state()
            wrong += [f"{one} of {name}" for one in _unlike(job, found, trains)]
        return ", ".join(wrong)

    def broken(self, *, deleted: AbstractSet[str], lags: Lags) -> list[str]:
        most = most_requested(GPU, _history(self.versions))
        mine = _history(_while_it_trains(self.versions, self.job.name, deleted))
        return [
            *([f"pods that may run ask for {most} GPUs of {QUOTA}"] if most > QUOTA else []),
            *(
                f"rule 2: {pod} is deleted while it is published"
                for pod in mine.deleted_while_published()
            ),
            *(
                f"rule 4: {before!r} becomes {after!r} in one write"
                for before, after in mine.mixed_changes()
            ),
        ]


def _unlike(job: Job, state: State, trains: int) -> list[str]:
    pods = job.workers(*range(trains))
    free = [name for name, pod in state.workers.items() if not pod["spec"].get("schedulingGates")]
    wanted = {
        "the workers": sorted(state.workers) == sorted(job.workers(*range(state.replicas))),
        "the gates": sorted(free) == pods,
        "the hosts": listed(state) == pods,
        "the phases": all(state.workers[name]["status"].get("phase") != "Failed" for name in free),
        "the launcher": state.launcher_runs == (trains > 0),
    }
    return [what for what, holds in wanted.items() if not holds]


def _history(versions: Iterable[Version]) -> History:
    found = History()
    for one in versions:
        if one.kind == "Pod":
            found.pods.append(one.content)
        if one.kind == "ConfigMap":
            found.configs.append(one.content)
        if one.deleted:
            found.gone.add(one.number)
    return found


def _while_it_trains(versions: list[Version], job: str, deleted: AbstractSet[str]) -> list[Version]:
    """Return the host lists, and the pods that we deleted though they had not failed, until the job ended."""
    launcher = [one for one in versions if (one.kind, one.name) == ("Pod", names.launcher(job))]
    ends = [one.number for one in launcher if one.content["status"].get("phase") == "Succeeded"]
    failed = {
        _uid(one) for one in versions if one.content.get("status", {}).get("phase") == "Failed"
    }
    ours = {*deleted} - failed
    return [
        one
        for one in versions
        if one.number < min(ends, default=one.number + 1)
        and (one.name == names.config_map(job) or (one.kind == "Pod" and _uid(one) in ours))
    ]


def _uid(version: Version) -> str:
    uid: str = version.content["metadata"]["uid"]
    return uid


async def _make(
    job: Job, replicas: int, *, annotations: dict[str, str] | None = None, priority: str = ""
) -> None:
    labels = {LABEL_QUEUE: "team"} | ({LABEL_PRIORITY_CLASS: priority} if priority else {})
    await job.create(
        replicas=replicas, worker_spec=ONE_GPU, annotations=annotations, job_labels=labels
    )


async def _create(day: QueuedDay) -> None:
    day.trains[day.job.name] = 3
    await _make(day.job, 3, annotations=QUICK)


async def _scale(day: QueuedDay, replicas: int) -> None:
    day.trains[day.job.name] = replicas
    await day.job.scale(replicas)


async def _come(day: QueuedDay, name: str, replicas: int, *, leaves: int) -> None:
    day.trains.update({name: replicas, day.job.name: leaves})
    await _make(day.rival(name), replicas, priority="high" if name == CHIEF else "")


async def _delete(day: QueuedDay, name: str) -> None:
    day.trains.pop(name)
    day.trains[day.job.name] = QUOTA
    await day.rival(name).delete()


async def _finish(day: QueuedDay) -> None:
    """The guest ends; where it has not started, its user gives up."""
    guest = day.rival(GUEST)
    if not (await guest.state()).launcher_runs:
        return await _delete(day, GUEST)
    day.trains.pop(GUEST)
    day.trains[day.job.name] = QUOTA
    return await guest.set_status(names.launcher(GUEST), {"phase": "Succeeded"})


async def _suspend(day: QueuedDay) -> None:
    day.trains[day.job.name] = 0
    await day.job.annotate(suspend="true")


async def _resume(day: QueuedDay) -> None:
    """It waits, because the second has all."""
    await day.job.annotate(suspend=None)


async def _fail_worker(day: QueuedDay) -> None:
    await day.job.set_status(day.job.workers(2)[0], {"phase": "Failed", "reason": "Error"})


async def _end(day: QueuedDay) -> None:
    """End the training in the middle of a drain."""
    await day.job.scale(2)
    await day.job.set_status(names.launcher(day.job.name), {"phase": "Succeeded"})
