"""What must be known of a job to judge a size for it; kept of every MPIJob, as a review of a scale holds none of it."""

from __future__ import annotations

from collections.abc import Callable
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
class Sized:
    """One job. launch: what its launcher's command says, None where that cannot be read.

    started: the operator has written conditions, so its pods are there or on their way.
    """

    metadata: Identity
    replicas: int
    slots: int
    policy: Policy
    elastic: bool
    launch: Launch | None
    started: bool
    finished: bool
    deleting: bool


# The job of that namespace and name as last seen; None where it is not known (yet).
Known = Callable[[str, str], Sized | None]

_decoder = msgspec.json.Decoder(MPIJob)


def nobody(_namespace: str, _name: str) -> None:
    """Where no jobs are kept."""


def read(raw: bytes) -> Sized:
    """The job in a MPIJob's JSON. Raises msgspec.DecodeError where it is none."""
    return of(_decoder.decode(raw))


def of(job: MPIJob) -> Sized:
    """The same of a decoded one."""
    asked, _ = policy.parse(job.metadata.annotations)
    return Sized(
        metadata=_identity(job.metadata),
        replicas=job.replicas,
        slots=job.slots,
        policy=asked,
        elastic=policy.is_elastic(asked, job.launcher_texts()),
        launch=next((launch for words in job.launcher_commands() if (launch := horovodrun.parse(words))), None),
        started=bool(job.status and job.status.conditions),
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
