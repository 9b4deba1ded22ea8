"""The optional capabilities of a job: what each watches, and how its own writes are done."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Protocol

from mpijob_elastic import capabilities
from mpijob_elastic.act.capability_writes import CapabilityWriter, LiveWrites, Seen
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.capabilities.autoscaling import live as autoscaling
from mpijob_elastic.capabilities.et_operator import live as et_operator
from mpijob_elastic.capabilities.gangs import live as gangs
from mpijob_elastic.capabilities.kube_queue import live as kube_queue
from mpijob_elastic.capabilities.kueue import live as kueue
from mpijob_elastic.decide.capability import Capability
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.views import Read
from mpijob_elastic.observe.watching import JobKey, See, Watching

READ = Read(
    job=capabilities.read,
    pod=partial(facts_pod.read, groups=capabilities.GROUPS, marks=capabilities.POD_MARKS),
)


class CapabilityWatch(Protocol):
    """What a capability watches."""

    def seen(self, key: JobKey, view: JobView) -> Capability | None:
        """Return what the capability knows of a job; None if it has nothing to do with the job."""


# What each capability watches.
_WATCHES: tuple[Callable[[Watching], CapabilityWatch], ...] = (
    kube_queue.QueueUnitWatch,
    kueue.WorkloadWatch,
    gangs.PodGroupWatch,
    autoscaling.AutoscalerWatch,
)
# The same of capabilities that an option of the controller turns on; with it come their rights.
_OPTIONAL: tuple[tuple[str, Callable[[Watching], CapabilityWatch]], ...] = (
    (et_operator.OPTION, et_operator.RequestWatch),
)
# The writers for actions that take more than one request, and those that an option turns on.
_WRITERS: tuple[type[LiveWrites], ...] = (kueue.Workloads, kube_queue.QueueUnits)
_OPTIONAL_WRITERS: tuple[tuple[str, type[LiveWrites]], ...] = (
    (et_operator.OPTION, et_operator.Requests),
)
OPTIONS = tuple(option for option, _ in _OPTIONAL)


def seeing(watching: Watching, *, options: Collection[str] = ()) -> See:
    """Register the watches of the capabilities; return the function that adds them to a view."""
    chosen = [watch for option, watch in _OPTIONAL if option in options]
    watches = [watch(watching) for watch in (*_WATCHES, *chosen)]

    def see(key: JobKey, view: JobView) -> JobView:
        return capabilities.told(view, seen=(watch.seen(key, view) for watch in watches))

    return see


def writers(
    client: ApiReader,
    leader_writer: LeaderWriter,
    seen: Seen,
    events: Events,
    now: Callable[[], float],
    *,
    options: Collection[str] = (),
) -> tuple[CapabilityWriter, ...]:
    """Return the writers for those actions of capabilities that take more than one request."""
    chosen = [writer for option, writer in _OPTIONAL_WRITERS if option in options]
    return tuple(
        writer(client=client, leader_writer=leader_writer, seen=seen, events=events, now=now)
        for writer in (*chosen, *_WRITERS)
    )
