"""The reference day of one job, as a user, a node and its ranks bring it about; whatever else happens is a fault."""

import asyncio
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from lab.nodes import KIND_LABEL
from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs.facts import VOLCANO_POD_GROUPS
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.campaign import day as days
from tests.campaign.day import Steps
from tests.campaign.sequence_place import holds_place, unlike
from tests.campaign.sequence_rules import Lags, broken
from tests.lab.job import HOLD, Object, State
from tests.lab.pools import make_nodes, on_pool, remove_nodes
from tests.lab.ranks import start_rank

AGENDA_SIZE = 3  # workers at the end of the morning
DRAIN_TIMEOUT = "8s"
SCALE_TIMEOUT = "4s"


@dataclass(frozen=True, kw_only=True)
class Day(days.Day):
    """A day of a job, and what was done to it.

    pool: name of the day's own two nodes but for `-0` and `-1`. going: those that go. busy: uids of
    pods whose ranks never leave. collected: uids of pods that go with their node.
    """

    WATCHED = (
        resources.MPI_JOBS,
        resources.PODS,
        resources.CONFIG_MAPS,
        resources.ROLES,
        resources.NODES,
        VOLCANO_POD_GROUPS,
    )
    CUT_FROM = ("create", "3→1", "a node is going")
    KINDS: ClassVar[tuple[Resource, ...]] = (*days.KINDS, VOLCANO_POD_GROUPS)

    going: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    collected: set[str] = field(default_factory=set)

    def morning(self) -> Steps:
        size = partial(partial, _scale, self)
        return {
            "create": partial(_create, self),
            "2→3": size(3),
            "3→1": size(1),
            "certain sizes": partial(self.job.annotate, sizes="1,3"),
            "1→3": size(3),
            "any size": partial(self.job.annotate, sizes=None),
            "a worker is parked": partial(self.job.annotate, parked="1"),
            "it is back": partial(self.job.annotate, parked=None),
            "a worker fails": partial(_fail_worker, self),
            "a node is going": partial(_announce, self),
            "the node is gone": partial(_remove_node, self),
            "a size that cannot be reached": partial(_ask_too_much, self),
            "it is taken back": partial(_ask_less, self),
            "a drain timeout": partial(_keep_busy, self),
            "its worker comes back": size(AGENDA_SIZE),
        }

    def evening(self) -> Steps:
        return {"the job ends": partial(_end, self)}

    async def begin(self) -> None:
        await make_nodes(self.job.client, self.pool, taint(self.pool))

    async def end(self) -> None:
        await remove_nodes(self.job.client, self.pool)

    async def is_whole(self, state: State) -> str:
        running = {name: pod for name, pod in state.workers.items() if not holds_place(pod)}
        lame = [name for name, pod in running.items() if pod["status"].get("phase") != "Running"]
        moving = [
            name for name, pod in state.workers.items() if pod["spec"].get("nodeName") in self.going
        ]
        return unlike(self.job, state) or ", ".join([*lame, *moving])

    def broken(self, *, deleted: AbstractSet[str], lags: Lags) -> list[str]:
        return broken(
            self.versions,
            job=self.job.name,
            edits=set(),
            # A deletion at which the controller was killed counts as done, and the garbage
            # collector deletes too.
            deleted={*deleted} - self.collected,
            busy=self.busy,
            going=self.going,
            lags=lags,
        )


async def _create(day: Day) -> None:
    await day.job.create(
        replicas=2,
        annotations={names.DRAIN_TIMEOUT: DRAIN_TIMEOUT, names.MIN_REPLICAS: "1"},
        worker_spec={**on_pool(day.pool), "tolerations": [taint(day.pool)]},
    )


async def _scale(day: Day, replicas: int) -> None:
    await day.job.scale(replicas)


async def _fail_worker(day: Day) -> None:
    await day.job.set_status(day.job.workers(2)[0], {"phase": "Failed", "reason": "Error"})


async def _announce(day: Day) -> None:
    """A node says that it goes, as a spot node does."""
    state = await day.job.state()
    going = state.workers[day.job.workers(1)[0]]["spec"]["nodeName"]
    day.going.add(going)
    body = {
        "spec": {
            "taints": [taint(day.pool), {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]
        }
    }
    await day.job.client.patch_object(
        resources.NODES.path(None, going), body=body, content_type=MERGE_PATCH
    )


async def _remove_node(day: Day) -> None:
    pods = (await day.job.state()).workers.values()
    day.collected.update(
        pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") in day.going
    )
    for going in day.going:
        await day.job.client.delete_object(resources.NODES.path(None, going))


async def _ask_too_much(day: Day) -> None:
    """Ask for a worker that no node can start, so that the size is taken back."""
    await day.job.annotate(scale_timeout=SCALE_TIMEOUT)
    await day.job.patch(_held("yes", replicas=AGENDA_SIZE + 1))


async def _ask_less(day: Day) -> None:
    await day.job.annotate(scale_timeout=None)
    await day.job.patch(_held(None, replicas=AGENDA_SIZE))
    for name, pod in (await day.job.state()).workers.items():
        if HOLD in pod["metadata"].get("annotations", {}):
            await day.job.annotate_pod(name, {HOLD: None})


async def _keep_busy(day: Day) -> None:
    """Ask for fewer workers while a rank stays in one of them beyond the drain-timeout."""
    [pod] = day.job.workers(2)
    await asyncio.to_thread(start_rank, day.cluster, day.job, pod)
    day.busy.add((await day.job.state()).workers[pod]["metadata"]["uid"])
    await day.job.scale(AGENDA_SIZE - 1)


async def _end(day: Day) -> None:
    """End the training in the middle of a drain."""
    await day.job.scale(1)
    await day.job.set_status(names.launcher(day.job.name), {"phase": "Succeeded"})


def taint(pool: str) -> Object:
    """Return a taint that keeps other days' pods away: launchers may be anywhere."""
    return {"key": KIND_LABEL, "value": pool, "effect": "NoSchedule"}


def _held(value: str | None, *, replicas: int) -> Object:
    template = {"metadata": {"annotations": {HOLD: value}}}
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas, "template": template}}}}
