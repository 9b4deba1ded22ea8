"""One job at one moment, as a user may read it: the controller's view and some facts for people."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue import live as kube_queue
from mpijob_elastic.capabilities.kube_queue.facts import ENQUEUED, QueueUnit
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue import facts as queue
from mpijob_elastic.capabilities.kueue import live as kueue
from mpijob_elastic.capabilities.kueue.facts import Asked, Workload
from mpijob_elastic.cli.jobs.shown_facts import SeenJob, SeenPod
from mpijob_elastic.decide import derive
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.job import ConfigFacts, JobView, Role
from mpijob_elastic.observe import views


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """pods: by name. role_readable: this user may read Roles."""

    view: JobView
    job: SeenJob
    pods: Mapping[str, SeenPod]
    role_readable: bool


def snapshots(
    *,
    jobs: Iterable[SeenJob],
    pods: Collection[SeenPod],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] | None,
    workloads: Collection[Workload] | None = None,
    units: Iterable[QueueUnit] = (),
) -> list[Snapshot]:
    """Return each job with its objects, sorted by namespace and name.

    roles, workloads: None where this user may not read them, or where they are not needed. units: none there either.
    """
    pods_of: dict[tuple[str, str], dict[str, SeenPod]] = defaultdict(dict)
    for pod in pods:
        pods_of[pod.metadata.namespace, pod.metadata.job][pod.metadata.name] = pod
    ordered = sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    facts = [pod.facts for pod in pods]
    found = views.each([job.facts for job in ordered], pods=facts, configs=configs, roles=roles or ())
    units_of: dict[tuple[str, str], list[QueueUnit]] = defaultdict(list)
    for unit in units:
        units_of[unit.metadata.namespace, unit.metadata.job].append(unit)
    return [
        Snapshot(
            view=view,
            job=_named(job, view),
            pods=pods_of[view.namespace, view.name],
            role_readable=roles is not None,
        )
        for job, view in zip(ordered, _queued(ordered, found, workloads, units_of), strict=True)
    ]


def _queued(
    jobs: Iterable[SeenJob],
    found: Iterable[JobView],
    workloads: Collection[Workload] | None,
    units_of: Mapping[tuple[str, str], list[QueueUnit]],
) -> Iterator[JobView]:
    """Yield the views with what Kueue and KubeQueue say of their jobs; without `workloads` nobody knows of Kueue."""
    places = queue.places(workloads or ())
    of_job: dict[str, list[Workload]] = defaultdict(list)
    for one in workloads or ():
        of_job[one.metadata.job_uid].append(one)
    for job, view in zip(jobs, found, strict=True):
        seen: list[Known] = []
        if workloads is not None and (job.facts.of(Asked) or Asked()).queue:
            mine = kueue.queue(job.facts, of_job[view.ref.uid], all_known=workloads)
            seen.append(Kueue(replace(mine, places=places)))
        if units := units_of.get((view.namespace, view.name)):
            seen += [queued] if (queued := kube_queue.of(job.facts, units)) else []
        yield capabilities.told(view, seen=seen)


def _named(job: SeenJob, view: JobView) -> SeenJob:
    """Return the job, called queued while nothing of it may run: the operator does not know that."""
    state = derive(view, now=time.time())
    held, asked = view.of(KubeQueue), view.of(Kueue)
    if held and (unit := held.waiting(state)):
        return msgspec.structs.replace(job, state=unit.phase or ENQUEUED)
    base = asked.queue.base(view.name) if asked and asked.queue else None
    is_queued = base and base.waits and all(pod.facts.gates for pod in view.pods) and not state.wishes.stop
    return msgspec.structs.replace(job, state="Queued") if is_queued else job
