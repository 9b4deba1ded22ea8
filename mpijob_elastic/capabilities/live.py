"""The optional capabilities of a job: what each watches, and how its own writes are done."""

from collections.abc import Callable, Collection
from functools import partial

from mpijob_elastic import capabilities
from mpijob_elastic.act.capability_writes import CapabilityWriter, LiveWrites, Seen
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.capabilities.autoscaling import live as autoscaling
from mpijob_elastic.capabilities.et_operator import live as et_operator
from mpijob_elastic.capabilities.gangs import live as gangs
from mpijob_elastic.capabilities.kube_queue import live as kube_queue
from mpijob_elastic.capabilities.kueue import live as kueue
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import facts_pod
from mpijob_elastic.observe.views import Read
from mpijob_elastic.observe.watching import JobKey, See, Watching

READ = Read(
    job=capabilities.read,
    pod=partial(facts_pod.read, groups=capabilities.GROUPS, marks=capabilities.POD_MARKS),
)

# Capabilities that an option of the controller turns on; with the option come the rights for them.
_COMPONENTS = (et_operator,)
OPTIONS = tuple(room.OPTION for room in _COMPONENTS)


def seeing(watching: Watching, *, options: Collection[str] = ()) -> See:
    """Register the watches of the capabilities; return the function that adds them to a view."""
    chosen = (room for room in _COMPONENTS if room.OPTION in options)
    watches = [room.Watch(watching) for room in (kube_queue, kueue, gangs, autoscaling, *chosen)]

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
    chosen = (room.Requests for room in _COMPONENTS if room.OPTION in options)
    live: tuple[type[LiveWrites], ...] = (*chosen, kueue.Workloads, kube_queue.QueueUnits)
    return tuple(
        one(client=client, leader_writer=leader_writer, seen=seen, events=events, now=now)
        for one in live
    )
