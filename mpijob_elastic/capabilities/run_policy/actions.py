"""The deletion of a finished job."""

from dataclasses import dataclass

from mpijob_elastic.decide.actions import (
    Delete,
    Noted,
)
from mpijob_elastic.kube.resources import MPI_JOBS, Resource


@dataclass(frozen=True, kw_only=True)
class DeleteJob(Noted, Delete):
    """Delete a finished job."""

    resource: Resource = MPI_JOBS
