"""The writes of Workloads."""

from dataclasses import dataclass

from mpijob_elastic.capabilities.kueue.api import WORKLOADS
from mpijob_elastic.capabilities.kueue.facts import Workload
from mpijob_elastic.decide.actions import Action, Adopt, Delete, PodSet
from mpijob_elastic.kube.resources import Resource


@dataclass(frozen=True, kw_only=True)
class CreateWorkload(Action):
    """Ask a queue of Kueue for the quota of pods, with a priority or that of a class."""

    words = "ask queue {self.queue} for quota with the Workload {self.name}"

    name: str
    queue: str
    pods: tuple[PodSet, ...]
    priority: int = 0
    priority_class: str = ""

    def about(self) -> tuple[object, ...]:
        return (self.name,)


@dataclass(frozen=True, kw_only=True)
class _OfWorkload(Action):
    workload: Workload

    def about(self) -> tuple[object, ...]:
        return (self.workload.metadata.name,)


class MarkReady(_OfWorkload):
    """Say that the pods of a Workload run, which Kueue may wait for."""

    words = "tell Kueue that the pods of {self.workload.metadata.name} run"


class ClearWorkload(_OfWorkload):
    """Give preempted quota back: nothing runs any more for which it was meant. The Workload queues again."""

    words = "tell Kueue that the quota of {self.workload.metadata.name} is free"
    rechecked = True


class FinishWorkload(_OfWorkload):
    """Say that a job has finished: its quota is free."""

    words = "tell Kueue that {self.workload.metadata.name} has finished"
    rechecked = True


@dataclass(frozen=True, kw_only=True)
class DeleteWorkload(Delete):
    """Ask for the quota no more."""

    words = "delete the Workload {self.ref.name}"
    rechecked = True
    at_version = False

    resource: Resource = WORKLOADS


@dataclass(frozen=True, kw_only=True)
class AdoptWorkload(Adopt):
    """Make the job the owner of a Workload that MultiKueue has made for it, or pods that came since then as well."""

    words = "make the job and its pods the owners of the Workload {self.ref.name}"

    resource: Resource = WORKLOADS
