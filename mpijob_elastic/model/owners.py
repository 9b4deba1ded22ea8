"""Whom an object belongs to: the MPIJob that controls it."""

from __future__ import annotations

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS


class Owned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Who an object is and which MPIJob controls it: all that stays of an object's metadata in a cache.

    job, job_uid: "" where no MPIJob controls it. api_version: of the controlling reference.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    job: str = ""
    job_uid: str = ""
    api_version: str = ""


def owned(metadata: ObjectMeta) -> Owned:
    """The metadata with its owner looked up."""
    owner = metadata.controller
    is_job = owner is not None and owner.kind == MPI_JOBS.kind and owner.api_version.startswith(MPI_JOBS.group + "/")
    return Owned(
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        job=owner.name if owner and is_job else "",
        job_uid=owner.uid if owner and is_job else "",
        api_version=owner.api_version if owner and is_job else "",
    )
