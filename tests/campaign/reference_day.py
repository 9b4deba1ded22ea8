"""The reference day of one job, as a user, a node and its ranks bring it about; whatever else happens is a fault.

Each step waits until the job is whole again, but not for ever: users do not wait for a controller that is in trouble.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from lab.cluster import Cluster
from lab.errors import LabError
from lab.nodes import KIND_LABEL
from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs.api import VOLCANO_POD_GROUPS
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.campaign.sequence_place import Look, come_true, listed, unlike
from tests.campaign.sequence_rules import Version
from tests.lab.job import HOLD, Job, Object, State
from tests.lab.pools import on_pool
from tests.lab.ranks import start_rank

AGENDA_SIZE = 3  # workers at the end of `MORNING`
DRAIN_TIMEOUT = "8s"
SCALE_TIMEOUT = "4s"
QUIET = 3.0  # seconds for which nothing may change at the end


@dataclass(frozen=True, kw_only=True)
class Day:
    """A day of a job, and what was done to it.

    pool: name of the day's own two nodes but for `-0` and `-1`. going: those that go. busy: uids of pods whose ranks
    never leave. collected: uids of pods that go with their node. versions: what was written in the namespace; it grows.
    """

    cluster: Cluster
    job: Job
    pool: str
    going: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)
    collected: set[str] = field(default_factory=set)
    versions: list[Version] = field(default_factory=list)

    async def is_whole(self, state: State) -> str:
        """Return what a whole job has and this does not, "" if nothing."""
        lame = [name for name, pod in state.workers.items() if pod["status"].get("phase") != "Running"]
        moving = [name for name, pod in state.workers.items() if pod["spec"].get("nodeName") in self.going]
        return unlike(self.job, state) or ", ".join([*lame, *moving])

    async def has_ended(self, state: State) -> str:
        """Return what a job that has ended has and this does not, "" if nothing."""
        return "" if "Succeeded" in state.conditions and not state.workers else f"{state.conditions} {[*state.workers]}"


Take = Callable[[Day], Awaitable[None]]


async def _create(day: Day) -> None:
    await day.job.create(
        replicas=2,
        annotations={names.DRAIN_TIMEOUT: DRAIN_TIMEOUT, names.MIN_REPLICAS: "1"},
        worker_spec={**on_pool(day.pool), "tolerations": [taint(day.pool)]},
    )


def _size(replicas: int) -> Take:
    async def scale(day: Day) -> None:
        await day.job.scale(replicas)

    return scale


async def _fail_worker(day: Day) -> None:
    await day.job.set_status(day.job.workers(2)[0], {"phase": "Failed", "reason": "Error"})


async def _announce(day: Day) -> None:
    """A node says that it goes, as a spot node does."""
    state = await day.job.state()
    going = state.workers[day.job.workers(1)[0]]["spec"]["nodeName"]
    day.going.add(going)
    body = {"spec": {"taints": [taint(day.pool), {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}
    await day.job.client.patch_object(resources.NODES.path(None, going), body=body, content_type=MERGE_PATCH)


async def _remove_node(day: Day) -> None:
    pods = (await day.job.state()).workers.values()
    day.collected.update(pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName") in day.going)
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


MORNING: Mapping[str, Take] = {
    "create": _create,
    "2→3": _size(3),
    "3→1": _size(1),
    "1→3": _size(3),
    "a worker fails": _fail_worker,
    "a node is going": _announce,
    "the node is gone": _remove_node,
    "a size that cannot be reached": _ask_too_much,
    "it is taken back": _ask_less,
    "a drain timeout": _keep_busy,
    "its worker comes back": _size(AGENDA_SIZE),
}
EVENING: Mapping[str, Take] = {"the job ends": _end}


async def play(
    day: Day, steps: Mapping[str, Take], until: Look, *, patience: float, before: Callable[[str], None]
) -> None:
    """Take the steps, one when the job is as it should be after the one before, or after `patience` seconds.

    before: called with the name of each step.
    """
    for name, take in steps.items():
        before(name)
        with contextlib.suppress(errors.ApiError, LabError, KeyError):  # what it acts on may not be there
            await take(day)
        await come_true(day.job, until, day.versions, quiet=0.0, patience=patience)


_KINDS = (
    resources.MPI_JOBS,
    resources.PODS,
    resources.CONFIG_MAPS,
    resources.ROLES,
    VOLCANO_POD_GROUPS,
    resources.Resource(plural="serviceaccounts", kind="ServiceAccount"),
    resources.Resource(group="rbac.authorization.k8s.io", plural="rolebindings", kind="RoleBinding"),
)


async def ending(day: Day) -> dict[str, object]:
    """Return all that is left in the namespace, as far as it is the same after each such day."""
    found: dict[str, object] = {}
    for kind in _KINDS:
        raw = await day.job.client.get(kind.path(day.job.namespace))
        for item in msgspec.json.decode(raw)["items"]:
            found[f"{kind.kind} {item['metadata']['name']}"] = _trait(item)
    state = await day.job.state()
    found |= {"size": state.replicas, "conditions": sorted(state.conditions)}
    if "Succeeded" in state.conditions:  # what follows stays as it was in that moment
        return found
    return {
        **found,
        "hosts": listed(state),
        "hostfile": state.hostfile,
        "exec": state.exec_names,
        "notices": state.notices,
    }


def _trait(item: Object) -> Object:
    metadata: Object = item["metadata"]
    ours = {key for key in metadata.get("annotations", {}) if key.startswith(names.PREFIX)}
    return {
        "ours": sorted(ours - {names.STATUS}),
        "finalizers": metadata.get("finalizers", []),
        "going": "deletionTimestamp" in metadata,
        "phase": item.get("status", {}).get("phase"),
        "members": item.get("spec", {}).get("minMember"),
    }


def taint(pool: str) -> Object:
    """Return a taint that keeps other days' pods away: launchers may be anywhere."""
    return {"key": KIND_LABEL, "value": pool, "effect": "NoSchedule"}


def _held(value: str | None, *, replicas: int) -> Object:
    template = {"metadata": {"annotations": {HOLD: value}}}
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas, "template": template}}}}
