"""Owners: the MPIJob that controls an object."""

from __future__ import annotations

import msgspec

from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS


class Owned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An object's identity and the MPIJob that controls it: all that a cache keeps of the metadata.

    job, job_uid: "" if no MPIJob controls it. api_version: of the controlling reference.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    job: str = ""
    job_uid: str = ""
    api_version: str = ""


def owned(metadata: ObjectMeta) -> Owned:
    """Return the metadata with its owner."""
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
