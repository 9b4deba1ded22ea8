"""The view of a job, made from the facts of its objects; pure.

Only objects that this MPIJob controls (by uid) take part. A foreign pod with the operator's labels, or an object of a
deleted job of the same name, is never seen (safety rule 5).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from mpijob_elastic import names
from mpijob_elastic.model import containers, hosts, kubexec, memory_text
from mpijob_elastic.model.execs import Held
from mpijob_elastic.model.gang import PodGroup
from mpijob_elastic.model.job import Config, ConfigFacts, JobView, Role
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.kube_queue import HELD, KubeQueue, QueueUnit
from mpijob_elastic.model.memory import pod_key
from mpijob_elastic.model.pod import Launcher, PodFacts, Probe, Worker
from mpijob_elastic.model.queue import Queue, Workload, named
from mpijob_elastic.observe import operators

F = TypeVar("F", ConfigFacts, Role, PodGroup)
# Returns what exec has shown of a pod (`Worker.key`) since an occasion (`Config.occasion`).
Probes = Callable[[str, str], Probe]
# Returns what exec has shown of a launcher, by its uid.
Holds = Callable[[str], Held]


def never_asked(_pod: str, _occasion: str) -> Probe:
    """Return an empty probe: only the controller knows what its own execs have shown."""
    return Probe()


def never_looked(_uid: str) -> Held:
    """Return empty findings for a reader that does not look into launchers."""
    return Held()


def each(
    jobs: Iterable[JobFacts],
    *,
    pods: Iterable[PodFacts],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] = (),
) -> list[JobView]:
    """Return the view of each listed job, in the given order; the other objects are of all jobs."""
    pods_of: dict[tuple[str, str], list[PodFacts]] = defaultdict(list)
    for pod in pods:
        pods_of[pod.metadata.namespace, pod.metadata.job].append(pod)
    configs_by_name = {(config.metadata.namespace, config.metadata.name): config for config in configs}
    roles_by_name = {(role.metadata.namespace, role.metadata.name): role for role in roles}
    return [
        view(
            job,
            pods=pods_of[job.metadata.namespace, job.metadata.name],
            config=configs_by_name.get((job.metadata.namespace, names.config_map(job.metadata.name))),
            role=roles_by_name.get((job.metadata.namespace, names.launcher(job.metadata.name))),
        )
        for job in jobs
    ]


def view(
    job: JobFacts,
    *,
    pods: Iterable[PodFacts],
    config: ConfigFacts | None,
    role: Role | None = None,
    probes: Probes = never_asked,
    holds: Holds = never_looked,
    gang: PodGroup | None = None,
    keeps_selector: bool = False,
) -> JobView:
    """Return the job's view. pods: marked by their nodes (see `nodes`). gang: the PodGroup of the job's name, if any.

    keeps_selector: the MPIJob definition keeps a selector (see `definition`).
    """
    mine = [pod for pod in pods if pod.metadata.job_uid == job.metadata.uid]
    config, role, gang = _owned(config, job), _owned(role, job), _owned(gang, job)
    seen = _config(config) if config else None
    workers = _workers(job, mine, seen, probes)
    foreign, foreign_at = operators.marks(job, pods=mine, config=seen, owner=config.metadata if config else None)
    return JobView(
        facts=job,
        replicas=job.replicas if job.size_known else 1 + max((worker.index for worker in workers), default=-1),
        suspended_by=job.suspended_by,
        foreign=foreign,
        foreign_at=foreign_at,
        selector_due=keeps_selector and job.lacks_selector,
        workers=workers,
        former=_former(workers, seen, probes),
        launcher=_launcher(job, mine, holds),
        config=seen,
        role=role if role and role.exec_rule >= 0 else None,
        pod_group=gang,
    )


def queue(job: JobFacts, found: Iterable[Workload], *, all_known: Iterable[Workload]) -> Queue:
    """Return what Kueue says of a job. found: Workloads that may be its own; all_known: those whose names may help."""
    mine = (one for one in found if one.metadata.job_uid == job.metadata.uid or _is_sent(one, job))
    return Queue(
        name=job.queue,
        priority_class=job.priority_class,
        workloads={one.metadata.name: one for one in named(mine, all_known)},
        prebuilt=bool(job.prebuilt),
        elsewhere=job.elsewhere,
    )


def kube_queue(job: JobFacts, found: Iterable[QueueUnit]) -> KubeQueue | None:
    """Return what KubeQueue says of a job, None if it has nothing to do with it; found: QueueUnits that are about it.

    The unit of an earlier job of the name goes by itself.
    """
    units = list(found)
    if not units and job.suspended_by != HELD:
        return None
    mine = (one for one in units if one.metadata.job_uid == job.metadata.uid)
    rivals = [f"QueueUnit {one.metadata.name}" for one in units if not one.metadata.job_uid]
    of_kueue = [f"queue {job.queue} of Kueue"] if job.queue else []
    return KubeQueue(unit=next(mine, None), rivals=(*sorted(rivals), *of_kueue))


def _is_sent(found: Workload, job: JobFacts) -> bool:
    """Tell whether MultiKueue made a Workload for this job, and nobody owns it yet."""
    return not found.metadata.job_uid and found.metadata.name == job.prebuilt


def _owned(fact: F | None, job: JobFacts) -> F | None:
    return fact if fact and fact.metadata.job_uid == job.metadata.uid else None


def _workers(job: JobFacts, pods: list[PodFacts], config: Config | None, probes: Probes) -> tuple[Worker, ...]:
    found = []
    named = kubexec.container(config.facts.kubexec) if config else None
    for pod in pods:
        index = names.worker_index(pod.metadata.name, job=job.metadata.name)
        if pod.role == names.ROLE_WORKER and index is not None:
            of_ranks = containers.of_ranks(
                named, pod.containers, mounting=pod.mounting, default=pod.default_container, main=job.main_container
            )
            worker = Worker(facts=pod, index=index, containers=of_ranks)
            when = config.occasion(worker.name) if config else ""
            found.append(replace(worker, probe=probes(worker.key, when)) if when else worker)
    return tuple(sorted(found, key=lambda worker: worker.index))


def _former(workers: Iterable[Worker], config: Config | None, probes: Probes) -> Mapping[str, Probe]:
    if config is None or config.memory is None:
        return {}
    left = {pod: pod_key(pod, left.pod) for pod, left in config.memory.left.items() if left.pod}
    if not left:
        return {}
    there = {worker.key for worker in workers}
    return {pod: probes(key, config.occasion(pod)) for pod, key in left.items() if key not in there}


def _launcher(job: JobFacts, pods: list[PodFacts], holds: Holds) -> Launcher | None:
    wanted = names.launcher(job.metadata.name)
    pod = next((pod for pod in pods if pod.role == names.ROLE_LAUNCHER and pod.metadata.name == wanted), None)
    if pod is None:
        return None
    return Launcher(
        facts=pod,
        container=containers.of_driver(pod.containers, mounting=pod.mounting),
        ended_at=None if job.retries and pod.phase == "Failed" else pod.ended_at,
        held=holds(pod.metadata.uid),
    )


def _config(config: ConfigFacts) -> Config:
    found = Config(
        facts=config,
        published=hosts.parse_script(config.script) if config.script is not None else None,
        memory=memory_text.parse(config.memory),
    )
    # Whom somebody else's list names, in our form, need not exist: then it is no better than garbage.
    job = config.metadata.job
    strangers = not found.signed and any(names.worker_index(pod, job=job) is None for pod in found.host_of)
    return replace(found, published=None) if strangers else found
