"""The writes of HPAs, and of the size of a job."""

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.api import AUTOSCALERS, SPEC_DIGEST, autoscaler_name
from mpijob_elastic.capabilities.autoscaling.facts import Spec
from mpijob_elastic.decide.actions import (
    Create,
    Delete,
    Noted,
    Object,
    Operations,
    Patch,
    SetSize,
    put,
    test,
)
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.owners import controller


@dataclass(frozen=True, kw_only=True)
class _OfAutoscaler(Noted):
    """A write of the HPA of a job. The answer must hold its digest: the API server adds defaults to its spec."""

    resource: Resource = AUTOSCALERS
    spec: Spec

    def kept(self) -> Object:
        return {"metadata": {"annotations": {SPEC_DIGEST: autoscale.digest(self.spec)}}}


@dataclass(frozen=True, kw_only=True)
class MakeAutoscaler(_OfAutoscaler, Create):
    """Create the HPA of a job, controlled by it."""

    job: Identity

    def content(self) -> Object:
        metadata = {
            "name": autoscaler_name(self.job.name),
            "labels": {names.LABEL_MANAGED_BY: names.PROGRAM},
            "ownerReferences": [controller(self.job)],
            **self.kept()["metadata"],
        }
        return {"metadata": metadata, "spec": self.spec}


@dataclass(frozen=True, kw_only=True)
class ChangeAutoscaler(_OfAutoscaler, Patch):
    """Change the HPA of a job, whose status its controller writes all the time."""

    at_version = False

    def change(self) -> Object:
        return {**self.kept(), "spec": self.spec}


@dataclass(frozen=True, kw_only=True)
class DeleteAutoscaler(Noted, Delete):
    """Delete the HPA of a job."""

    at_version = False

    resource: Resource = AUTOSCALERS


@dataclass(frozen=True, kw_only=True)
class _Resize(SetSize):
    resource: Resource = MPI_JOBS

    def change(self) -> Operations:
        path = "/spec/mpiReplicaSpecs/Worker/replicas"
        return (test("/metadata/uid", self.ref.uid), test(path, self.before), put(path, self.after))


class RollBack(_Resize):
    """Set the size of the job back, from `before` to `after`: with Fill the only write to its spec."""


class Fill(_Resize):
    """Set the size of a job that takes what lies idle, within its bounds."""
