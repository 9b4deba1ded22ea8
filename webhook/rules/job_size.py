"""What must be known of a job to judge a size for it; kept of every MPIJob, as a review of a scale holds none of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model import horovodrun, policy
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy


class Identity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All that stays of the metadata."""

    namespace: str
    name: str
    uid: str
    resource_version: str


@dataclass(frozen=True, kw_only=True)
class JobSize:
    """One job. launch: what its launcher's command says, None where that cannot be read.

    started: the operator has written conditions, so its pods are there or on their way.
    started_at: when the operator saw it first, as it wrote it. deadline: seconds the launcher may run, None for ever.
    """

    metadata: Identity
    replicas: int
    slots: int
    policy: Policy
    elastic: bool
    launch: Launch | None
    started: bool
    started_at: str | None
    deadline: int | None
    finished: bool
    deleting: bool


_decoder = msgspec.json.Decoder(MPIJob)


def read(raw: bytes) -> JobSize:
    """The job in a MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    return of(_decoder.decode(raw))


def of(job: MPIJob) -> JobSize:
    """The same of a decoded one."""
    asked, _ = policy.parse(job.metadata.annotations)
    return JobSize(
        metadata=_identity(job.metadata),
        replicas=job.replicas,
        slots=job.slots,
        policy=asked,
        elastic=policy.is_elastic(asked, job.launcher_texts()),
        launch=next((launch for words in job.launcher_commands() if (launch := horovodrun.parse(words))), None),
        started=bool(job.status and job.status.conditions),
        started_at=job.status.start_time if job.status else None,
        deadline=job.launcher_deadline,
        finished=job.finished,
        deleting=job.metadata.deleting,
    )


def _identity(metadata: ObjectMeta) -> Identity:
    return Identity(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )
