"""The view of a job, made from the facts of its objects; pure.

Only objects that this MPIJob controls (by uid) take part. A foreign pod with the operator's labels,
or an object of a deleted job of the same name, is never seen (safety rule 5).

[v0.3.0] [training-operator] An operator that is elastic itself (mpi-operator v0.3.0 and later,
v2beta1, training-operator) replaces the whole ConfigMap by its own, so our annotation goes with its
first write, and its discover_hosts.sh has another form than ours (getOrCreateConfigMap and
updateDiscoverHostsInConfigMap in their mpi_job_controller.go). It does so at each change of the
ConfigMap, so as long as our list stays, no such operator is at work. The name of its program alone
is no mark, because v0.2.3 has the same name.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from msgspec import structs

from mpijob_elastic import names
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import Config, ConfigFacts, JobView, Role, parse_script
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.kubexec import HeldExecs
from mpijob_elastic.model.memory import parse_memory, pod_key
from mpijob_elastic.model.pod import (
    Launcher,
    LauncherFacts,
    LauncherPhase,
    PodFacts,
    Probe,
    Worker,
    of_driver,
)
from mpijob_elastic.observe import facts_pod

F = TypeVar("F", ConfigFacts, Role)
# The start of their field managers: client-go sends the program's name (`/opt/mpi-operator.v1` in
# the release's manifests).
_ELASTIC_OPERATORS = ("mpi-operator", "training-operator")
# Returns the findings of execs into a pod (`Worker.key`) since an occasion (`Config.occasion`).
Probes = Callable[[str, str], Probe]
# Returns the findings of execs into a launcher, by its uid.
Holds = Callable[[str], HeldExecs]
# Returns the acknowledgement of the driver in a launcher, by the launcher's uid.
Acknowledged = Callable[[str], Acknowledgement]


class Read(NamedTuple):
    """How JSON is read."""

    #: Reads an MPIJob.
    job: Callable[[bytes], JobFacts]
    #: Reads a pod.
    pod: Callable[[bytes], PodFacts] = facts_pod.read


def never_asked(_pod: str, _occasion: str) -> Probe:
    """Return an empty probe: only the controller knows what its own execs have shown."""
    return Probe()


def never_looked(_uid: str) -> HeldExecs:
    """Return empty findings for a reader that does not look into launchers."""
    return HeldExecs()


def never_acknowledged(_uid: str) -> Acknowledgement:
    """Return an acknowledgement that shows nothing, for the same reader."""
    return Acknowledgement()


def each(
    jobs: Iterable[JobFacts],
    *,
    pods: Iterable[PodFacts],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] = (),
) -> list[JobView]:
    """Return the view of each job, in the given order; the other objects may be of any job."""
    pods_of: dict[tuple[str, str], list[PodFacts]] = defaultdict(list)
    for pod in pods:
        pods_of[pod.metadata.namespace, pod.metadata.job].append(pod)
    configs_by_name = {
        (config.metadata.namespace, config.metadata.name): config for config in configs
    }
    roles_by_name = {(role.metadata.namespace, role.metadata.name): role for role in roles}
    return [
        view(
            job,
            pods=pods_of[job.metadata.namespace, job.metadata.name],
            config=configs_by_name.get(
                (job.metadata.namespace, names.config_map(job.metadata.name))
            ),
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
    acknowledged: Acknowledged = never_acknowledged,
    keeps_selector: bool = False,
) -> JobView:
    """Return the job's view.

    pods: already marked with the disruption of their nodes. keeps_selector: the MPIJob definition
    keeps a selector.
    """
    mine = [pod for pod in pods if pod.metadata.job_uid == job.metadata.uid]
    config, role = _owned(config, job), _owned(role, job)
    seen = _config(config) if config else None
    placeholders, workers = _placed(_workers(job, mine, seen, probes))
    foreign, foreign_at = _foreign(job, mine, seen)
    launcher = _launcher(job, mine, holds, acknowledged)
    return JobView(
        facts=_honest(job, launcher),
        replicas=_replicas(job, workers),
        foreign=foreign,
        foreign_at=foreign_at,
        selector_due=keeps_selector and job.lacks_selector,
        workers=workers,
        placeholders=placeholders,
        former=_former(workers, seen, probes),
        launcher=launcher,
        config=seen,
        role=role if role and role.exec_rule >= 0 else None,
    )


def with_job(view: JobView, job: JobFacts) -> JobView:
    """Return the view with the present MPIJob."""
    return replace(view, facts=_honest(job, view.launcher), replicas=_replicas(job, view.workers))


def _honest(job: JobFacts, launcher: Launcher | None) -> JobFacts:
    """Return the job as its launcher shows it: unfinished while that runs, and elastic if it is.

    Its status alone proves no end, because anybody with the right to edit may write a status. A
    launcher that waits for the end of a suspension has yet to start, so the suspension holds for it
    whatever its template was edited to.
    """
    if launcher is None:
        return job
    if job.finished and not _is_over(launcher):
        job = structs.replace(job, finished=False)
    is_elastic = launcher.elastic or names.GATE_SUSPENDED in launcher.facts.gates
    if job.launcher_elastic is is_elastic:
        return job
    return structs.replace(job, launcher_elastic=is_elastic)


def _replicas(job: JobFacts, workers: Iterable[Worker]) -> int:
    return (
        job.workers if job.size_known else 1 + max((worker.index for worker in workers), default=-1)
    )


def _is_over(launcher: Launcher) -> bool:
    """Tell whether a launcher does not run, and never will because its job has ended."""
    return (
        launcher.phase is LauncherPhase.FINISHED
        or launcher.facts.deleting
        or launcher.facts.held_back
    )


def _owned(fact: F | None, job: JobFacts) -> F | None:
    return fact if fact and fact.metadata.job_uid == job.metadata.uid else None


def _workers(
    job: JobFacts, pods: list[PodFacts], config: Config | None, probes: Probes
) -> tuple[Worker, ...]:
    found = []
    named = kubexec.container(config.facts.kubexec) if config else None
    for pod in pods:
        index = names.worker_index(pod.metadata.name, job=job.metadata.name)
        if pod.role == names.ROLE_WORKER and index is not None:
            own = pod.rank_containers(named, main=job.main_container)
            worker = Worker(facts=pod, index=index, containers=own)
            when = config.occasion(worker.name) if config else ""
            found.append(replace(worker, probe=probes(worker.key, when)) if when else worker)
    return tuple(sorted(found, key=lambda worker: worker.index))


def _placed(workers: tuple[Worker, ...]) -> tuple[tuple[Worker, ...], tuple[Worker, ...]]:
    """Return the placeholders, and the other workers."""
    placeholders = tuple(worker for worker in workers if names.GATE_PARKED in worker.facts.gates)
    if not placeholders:
        return (), workers
    return placeholders, tuple(
        worker for worker in workers if names.GATE_PARKED not in worker.facts.gates
    )


def _former(
    workers: Iterable[Worker], config: Config | None, probes: Probes
) -> Mapping[str, Probe]:
    if config is None or config.memory is None:
        return {}
    left = {pod: pod_key(pod, left.pod) for pod, left in config.memory.left.items() if left.pod}
    if not left:
        return {}
    there = {worker.key for worker in workers}
    return {pod: probes(key, config.occasion(pod)) for pod, key in left.items() if key not in there}


def _launcher(
    job: JobFacts, pods: list[PodFacts], holds: Holds, acknowledged: Acknowledged
) -> Launcher | None:
    wanted = names.launcher(job.metadata.name)
    launchers = (pod for pod in pods if isinstance(pod, LauncherFacts))
    pod = next((pod for pod in launchers if pod.metadata.name == wanted), None)
    if pod is None:
        return None
    is_retried = job.retries and pod.phase == "Failed"
    return Launcher(
        facts=pod,
        container=of_driver(pod.containers, mounting=pod.mounting),
        ended_at=None if is_retried else pod.ended_at,
        held=holds(pod.metadata.uid),
        acknowledged=acknowledged(pod.metadata.uid),
    )


def _config(config: ConfigFacts) -> Config:
    found = Config(
        facts=config,
        published=parse_script(config.script or ""),
        memory=parse_memory(config.memory),
    )
    # Somebody else's list may have our form and name pods that are no workers of this job: then it
    # is no better than garbage.
    job = config.metadata.job
    strangers = not found.signed and any(
        names.worker_index(pod, job=job) is None for pod in found.host_of
    )
    return replace(found, published=None) if strangers else found


def _foreign(job: JobFacts, pods: Collection[PodFacts], config: Config | None) -> tuple[str, float]:
    """Return the mark of another elastic operator on the job, and its last sign of life.

    The mark is in words, "" without any mark. The sign is a time in seconds since the epoch;
    infinite if the mark lasts as long as the objects.
    """
    owned = [*(pod.metadata for pod in pods), *([config.facts.metadata] if config else [])]
    if versions := {one.api_version for one in owned} - {MPI_JOBS.api_version}:
        return f"its objects belong to {', '.join(sorted(versions))}", math.inf
    if any(pod.of_training_operator for pod in pods):
        return "its pods carry labels of training-operator", math.inf
    made_at = max((pod.created_at for pod in pods if pod.foreign), default=None)
    if config and _has_their_list(config, job, has_pods=made_at is not None):
        who = config.facts.writer or "another operator"
        key = names.KEY_DISCOVER_HOSTS
        why = f"its {key} is written by {who}, in the form of an elastic operator"
        return why, max(config.facts.written_at, made_at or 0.0)
    memory = config.memory if config else None
    if made_at is not None and memory is None:
        return "its pods carry labels of an operator newer than v0.2.3", made_at
    return "", math.inf


def _has_their_list(config: Config, job: JobFacts, *, has_pods: bool) -> bool:
    """Tell whether another elastic operator wrote the host list.

    has_pods: pods of the job carry its labels.
    """
    script = config.facts.script
    if script is None or config.signed or not _has_their_form(script, job.metadata.name):
        return False
    if has_pods or config.memory is None:
        return True
    return config.facts.writer.startswith(_ELASTIC_OPERATORS)


def _has_their_form(script: str, job: str) -> bool:
    """Tell whether an elastic operator wrote a script.

    Its scripts have no newline at the end. With GPUs, the launcher is a host, too.
    """
    launcher, worker = re.escape(names.launcher(job)), rf"{re.escape(job)}-worker-[0-9]+"
    slots = "[1-9][0-9]*"
    return bool(
        re.fullmatch(rf"#!/bin/sh(\necho {launcher}:{slots}\n)?(\necho {worker}:{slots})*", script)
    )
