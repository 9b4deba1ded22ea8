"""The writes of QueueUnits, and of the annotation by which KubeQueue holds a job."""

from dataclasses import dataclass

from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND, QUEUE_UNITS, QueueUnit
from mpijob_elastic.decide.actions import Action, Adopt, Annotate, Delete, Noted, PodSet
from mpijob_elastic.kube.resources import MPI_JOBS, Resource


@dataclass(frozen=True, kw_only=True)
class CreateUnit(Action):
    """Ask KubeQueue for the quota of pods, `workers` of them workers."""

    words = "ask KubeQueue for quota with the QueueUnit {self.name}"

    name: str
    pods: tuple[PodSet, ...]
    workers: int

    def about(self) -> tuple[object, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class DeleteUnit(Delete):
    """Give the quota of a QueueUnit back, or ask for it no more."""

    words = "delete the QueueUnit {self.ref.name}"
    rechecked = True
    at_version = False

    resource: Resource = QUEUE_UNITS


@dataclass(frozen=True, kw_only=True)
class AdoptUnit(Adopt):
    """Make pods that replace others the owners of a QueueUnit: quota of a deleted job stays until its pods are gone."""

    words = "make the job and its pods the owners of the QueueUnit {self.ref.name}"

    resource: Resource = QUEUE_UNITS


@dataclass(frozen=True, kw_only=True)
class MarkRunning(Action):
    """Say that the job of a QueueUnit runs."""

    words = "say in the QueueUnit {self.unit.metadata.name} that the job runs"

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class ReleaseJob(Noted):
    """Take KubeQueue's annotation off a job whose QueueUnit says, read live, that it may start."""

    unit: QueueUnit


@dataclass(frozen=True, kw_only=True)
class HoldJob(Noted, Annotate):
    """Put KubeQueue's annotation back on a job whose quota is wanted back."""

    key: str = KUBEQUEUE_SUSPEND
    resource: Resource = MPI_JOBS
    text: str = "true"
