"""What we keep of a MPIJob: its size, whether it is elastic, whether it has ended."""

from __future__ import annotations

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import horovodrun, policy
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.observe.owners import Owned, owned
from mpijob_elastic.observe.times import seconds


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One MPIJob.

    np_workers: workers that horovodrun waits for at its start (-np). min_np_workers, max_np_workers: below the first
    number training waits, above the second no more ranks start. 0 where the command does not say.
    reported: the operator has written its status. finished: Succeeded, or Failed for good. succeeded_at: when, None
    unless it did. notices: our annotation on it, "" where there is none. lacks_selector: its status counts the workers
    and does not say how to find them.
    """

    metadata: Owned
    replicas: int
    np_workers: int
    min_np_workers: int
    max_np_workers: int
    slots: int
    elastic: bool
    policy: Policy
    problems: tuple[Problem, ...]
    clean_pod_policy: str
    main_container: str | None
    deleting: bool
    reported: bool
    finished: bool
    succeeded_at: float | None
    notices: str
    lacks_selector: bool


_UNREAD = Launch(program="", unread=True)
_decoder = msgspec.json.Decoder(MPIJob)


def read(raw: bytes) -> JobFacts:
    """The facts in a MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    job = _decoder.decode(raw)
    asked, problems = policy.parse(job.metadata.annotations)
    found = [launch for words in job.launcher_commands() if (launch := horovodrun.parse(words))]
    launches = found or [_UNREAD]
    return JobFacts(
        metadata=owned(job.metadata),
        replicas=job.replicas,
        np_workers=_workers(job, max(launch.np or 0 for launch in launches)),
        min_np_workers=_workers(job, max(launch.effective_min_np or 0 for launch in launches)),
        max_np_workers=_workers(job, min((launch.max_np for launch in launches if launch.max_np), default=0)),
        slots=job.slots,
        elastic=policy.is_elastic(asked, job.launcher_texts()),
        policy=asked,
        problems=tuple(problems),
        clean_pod_policy=job.clean_pod_policy,
        main_container=job.spec.main_container if job.spec else None,
        deleting=job.metadata.deleting,
        reported=bool(job.status and job.status.conditions),
        finished=job.finished,
        succeeded_at=_succeeded_at(job),
        notices=job.metadata.annotations.get(names.STATUS, ""),
        lacks_selector=job.lacks_selector,
    )


def is_news(old: JobFacts | None, new: JobFacts | None) -> bool:
    """Whether anything that is kept is otherwise now, beside the resourceVersion: the operator also counts pods."""
    if old is None or new is None:
        return True
    as_before = msgspec.structs.replace(old.metadata, resource_version=new.metadata.resource_version)
    return msgspec.structs.replace(old, metadata=as_before) != new


def _succeeded_at(job: MPIJob) -> float | None:
    completed = job.status.completion_time if job.status else None
    return seconds(completed) if job.condition(names.CONDITION_SUCCEEDED) else None


def _workers(job: MPIJob, slots: int) -> int:
    return -(-slots // job.slots)
