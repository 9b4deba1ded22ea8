"""The owner of the objects that we create for a job."""

from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, Resource


def controller(job: Identity) -> dict[str, object]:
    """Return the reference by which an MPIJob controls an object.

    blockOwnerDeletion would take the right to change finalizers of MPIJobs where OwnerReferencesPermissionEnforcement
    is on, as on OpenShift.
    """
    return {**owner(MPI_JOBS, job), "controller": True}


def owner(resource: Resource, ref: Identity) -> dict[str, object]:
    """Return the reference to an owner among others."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": ref.name, "uid": ref.uid}
