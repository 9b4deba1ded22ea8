"""One sync of one job: from what the caches show to what is done, in order.

The steps are made one by one, so that each looks at the caches after the step before was done, as the operator does. A
pod just created is Pending and an object just created is the job's own, so no step needs what another answered.
"""

from collections.abc import Callable, Generator, Iterator
from typing import Any

from msgspec.structs import replace

from lab.operator import pods, shared, status
from lab.operator.job import WORKER, MPIJob
from lab.operator.kinds import (
    CONFIG_MAPS,
    POD_GROUPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)
from lab.operator.pods import PodOptions
from lab.operator.steps import Create, Delete, Fail, Send, Step, WriteStatus
from lab.operator.wire import Dependent, PodStatus, ReplicaStatus

Look = Callable[[Resource, str], Dependent | None]
"""The object of that kind and name in the job's namespace, as the caches show it."""

PENDING = PodStatus()


def plan(job: MPIJob, *, look: Look, options: PodOptions, now: str) -> Iterator[Step]:
    """Make the steps of one sync, up to the first Fail; `now` is RFC 3339."""
    for step in _steps(job, look, options, now):
        yield step
        if isinstance(step, Fail):
            return


def _steps(job: MPIJob, look: Look, options: PodOptions, now: str) -> Iterator[Step]:
    if job.being_deleted:
        return
    if flaw := job.fatal_flaw():
        yield Fail(message=f"{flaw}; mpi-operator v0.2.3 crashes here")
    job = job.with_defaults()
    if status.is_true(job.status, "Succeeded") and job.cleans_up:
        yield from _clean_up(job, look)
        yield from _delete_pod_group(job, look, options)
        job = replace(job, status=status.with_replicas(job.status, WORKER, ReplicaStatus()))
    if _is_over(job):
        if status.is_true(job.status, "Failed") and job.cleans_up:
            yield from _clean_up(job, look)
        yield WriteStatus(status=job.status)
    else:
        yield from _run(job, look, options, now)


def _is_over(job: MPIJob) -> bool:
    if status.is_true(job.status, "Failed"):
        return not status.is_evicted(job.status) and job.status.completion_time is not None
    return status.is_true(job.status, "Succeeded")


def _run(job: MPIJob, look: Look, options: PodOptions, now: str) -> Iterator[Step]:
    launcher = look(PODS, job.launcher)
    yield from _conflict(job, launcher)
    if launcher and launcher.status.phase == "Failed" and status.is_true(job.status, "Failed"):
        yield Delete(resource=PODS, name=job.launcher)
    job = replace(job, status=replace(job.status, start_time=job.status.start_time or now))
    launcher_status = launcher.status if launcher else PENDING
    if launcher_status.phase in {"Succeeded", "Failed"}:
        workers = []
    else:
        yield from _ensure_shared(job, look, options)
        workers = yield from _ensure_workers(job, look, options)
        if launcher is None:
            yield from _create_launcher(job, options)
    new, events = status.observed(job, launcher=launcher_status, workers=workers, now=now)
    yield from (Send(event=event) for event in events)
    if new != job.status:
        yield WriteStatus(status=new)


def _ensure_shared(job: MPIJob, look: Look, options: PodOptions) -> Iterator[Step]:
    yield from _ensure(job, look, CONFIG_MAPS, job.config, shared.config_map)
    yield from _ensure(job, look, SERVICE_ACCOUNTS, job.launcher, shared.service_account)
    yield from _ensure(job, look, ROLES, job.launcher, shared.role)
    yield from _ensure(job, look, ROLE_BINDINGS, job.launcher, shared.role_binding)
    if options.gang_scheduler:
        yield from _ensure(job, look, POD_GROUPS, job.name, shared.pod_group)


def _ensure(
    job: MPIJob, look: Look, resource: Resource, name: str, build: Callable[[MPIJob], dict[str, Any]]
) -> Iterator[Step]:
    # An object that exists is never updated.
    existing = look(resource, name)
    if existing is None:
        yield Create(resource=resource, name=name, body=build(job))
    yield from _conflict(job, existing)


def _ensure_workers(job: MPIJob, look: Look, options: PodOptions) -> Generator[Step, None, list[PodStatus]]:
    # Pods of higher index, left over from a larger size, are not looked at.
    statuses = []
    for name in job.workers:
        existing = look(PODS, name)
        if existing is None:
            body = pods.worker(job, name=name, options=options)
            yield Create(resource=PODS, name=name, body=body, complaint="worker pod created failed")
        yield from _conflict(job, existing)
        statuses.append(existing.status if existing else PENDING)
    return statuses


def _create_launcher(job: MPIJob, options: PodOptions) -> Iterator[Step]:
    if pods.template_restart_policy(job):
        message = "Restart policy in pod template will be overwritten by restart policy in replica spec"
        yield Send(event=status.Event(type="Warning", reason="SettedPodTemplateRestartPolicy", message=message))
    body = pods.launcher(job, options=options)
    yield Create(resource=PODS, name=job.launcher, body=body, complaint="launcher pod created failed")


def _clean_up(job: MPIJob, look: Look) -> Iterator[Step]:
    for name in job.workers:
        if existing := look(PODS, name):
            yield from _conflict(job, existing)
            yield Delete(resource=PODS, name=name)


def _delete_pod_group(job: MPIJob, look: Look, options: PodOptions) -> Iterator[Step]:
    if options.gang_scheduler and (existing := look(POD_GROUPS, job.name)):
        yield from _conflict(job, existing)
        yield Delete(resource=POD_GROUPS, name=job.name, may_be_gone=False)


def _conflict(job: MPIJob, existing: Dependent | None) -> Iterator[Step]:
    if existing is None or (existing.owner and existing.owner.uid == job.uid):
        return
    # The kind is empty, because the operator reads it from objects whose kind decoding has removed.
    message = f'Resource "{existing.metadata.name}" of Kind "" already exists and is not managed by MPIJob'
    yield Send(event=status.Event(type="Warning", reason="ErrResourceExists", message=message))
    yield Fail(message=message)
