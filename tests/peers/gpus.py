"""Workers with a GPU each, on nodes with few of them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec

from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job, Object, State
from tests.lab.pools import POOL, make_nodes, remove_nodes
from tests.lab.waiting import seen

PRIORITY = Resource(group="scheduling.k8s.io", plural="priorityclasses", kind="PriorityClass")
SCHEDULED = 3.0  # seconds in which a scheduler has seen its pods, and is ready to try them again


@asynccontextmanager
async def few(client: ApiWriter) -> AsyncIterator[str]:
    """Make two nodes with two GPUs each as long as the block lasts; give the value of their label."""
    name = f"pool-{secrets.token_hex(4)}"
    await make_nodes(client, name, gpus=2)
    yield name
    await remove_nodes(client, name)


@asynccontextmanager
async def half(client: ApiWriter, pool: str, index: int = 1) -> AsyncIterator[None]:
    """Keep a node of a pool closed as long as the block lasts."""
    node = resources.NODES.path(None, f"{pool}-{index}")
    await client.patch_object(
        node, body={"spec": {"unschedulable": True}}, content_type=MERGE_PATCH
    )
    yield
    await client.patch_object(
        node, body={"spec": {"unschedulable": None}}, content_type=MERGE_PATCH
    )


@asynccontextmanager
async def priority(client: ApiWriter, pool: str, *, takes: bool) -> AsyncIterator[Object]:
    """Make a class of high priority as long as the block lasts; give what names it in a pod's spec.

    takes: whether its pods preempt others.
    """
    name, policy = f"high-{pool}", "PreemptLowerPriority" if takes else "Never"
    body: Object = {
        "apiVersion": PRIORITY.api_version,
        "kind": PRIORITY.kind,
        "metadata": {"name": name},
    }
    await client.create_object(
        PRIORITY.path(), body=body | {"value": 1000, "preemptionPolicy": policy}
    )
    yield {"priorityClassName": name}
    await client.delete_object(PRIORITY.path(None, name))


def on_gpu(pool: str, **spec: str) -> Object:
    """Return the spec of a worker with a GPU on that pool."""
    gpu = {
        "name": "worker",
        "image": "horovod:test",
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {"nodeSelector": {POOL: pool}, "containers": [gpu], **spec}


def bound(state: State) -> list[str]:
    """Return the pods that have a node."""
    pods = [*state.workers.values(), *([state.launcher] if state.launcher else [])]
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def held(state: State) -> int:
    """Return how many GPUs its workers have."""
    return sum(1 for worker in state.workers.values() if worker["spec"].get("nodeName"))


async def group(job: Job, resource: Resource) -> Object:
    """Return the spec of the job's PodGroup."""
    raw = await job.client.get(resource.path(job.namespace, job.name))
    found: Object = msgspec.json.decode(raw)["spec"]
    return found


async def replaced(job: Job, name: str) -> None:
    """Delete a worker, and wait until another of its name trains."""
    before = await job.state()
    await job.client.delete_object(f"/api/v1/namespaces/{job.namespace}/pods/{name}")
    await job.replaced(before, name)
    await job.until(lambda state: len(state.hosts) == len(before.hosts), "it trains again")


async def compete(
    one: Job,
    two: Job,
    pool: str,
    create: Callable[[Job, Object], Awaitable[None]],
) -> dict[str, int]:
    """Let two gangs of four workers want four GPUs, of which half come later; return how many each has then.

    create: makes a job of four with that in the specs of its pods. The second job is more urgent,
    and takes nothing from others. It mostly gets what comes later, but a scheduler that still backs
    off from it serves the first.
    """
    async with priority(one.client, pool, takes=False) as urgent:
        async with half(one.client, pool):
            for job, more in ((one, {}), (two, urgent)):
                await create(job, more)
                await job.until(
                    lambda state: len(state.workers) == 4 and state.launcher is not None, "its pods"
                )
                await asyncio.sleep(SCHEDULED)

        async def found() -> dict[str, int]:
            return {job.name: held(await job.state()) for job in (one, two)}

        await seen(found, lambda each: sum(each.values()) >= 4, "all four in use")
        await asyncio.sleep(SCHEDULED)
        return await found()


async def holds_half(job: Job, pool: str, create: Callable[[Job], Awaitable[None]]) -> None:
    """See that a job of four workers without a gang takes the two GPUs that it finds, and waits.

    Who gets two more GPUs, beside a second such job, depends on whose pods a scheduler backs off from.
    """
    async with half(job.client, pool):
        await create(job)
        await job.until(lambda state: held(state) == 2, "the half for which there is room")
        await asyncio.sleep(SCHEDULED)
        state = await job.state()
        assert (held(state), len(state.workers)) == (2, 4)


async def start_without(waits: Job, other: Job) -> None:
    """See that nothing of a job has a node, and all of it once another is deleted."""
    assert bound(await waits.state()) == []
    await other.delete()
    await waits.settled(4)


async def shrink_and_grow(job: Job) -> None:
    """Let a job of five workers with a least size of two, for four GPUs, start, shrink, replace a worker, and grow."""
    await job.until(
        lambda state: len(bound(state)) == 5 and len(state.hosts) == 4,
        "the four for which there is room",
    )
    await job.told("PodGroupCreated", "3 at least")
    await job.scale(3)
    await job.settled(3)
    await replaced(job, job.workers(1)[0])
    await job.scale(4)
    await job.settled(4)


async def preempted(
    job: Job,
    pool: str,
    annotations: dict[str, str],
    *,
    labels: dict[str, str] | None = None,
    theirs: dict[str, str] | None = None,
    **spec: str,
) -> tuple[State, State]:
    """Let a job of higher priority take two of the four GPUs of a job, and give them back.

    Return the job before, and when it trains on two. labels, theirs: of both MPIJobs. spec: of the
    pods.
    """
    urgent = replace(job, name="urgent")
    worker = on_gpu(pool, **spec)
    await job.create(
        replicas=4,
        annotations=annotations,
        job_labels=labels,
        worker_spec=worker,
        launcher_spec={**spec},
    )
    before = await job.settled(4)
    async with priority(job.client, pool, takes=True) as high:
        gang = {"mpijob-elastic/gang": annotations["mpijob-elastic/gang"]}
        await urgent.create(
            replicas=2,
            annotations=gang,
            job_labels=theirs,
            worker_spec={**worker, **high},
            launcher_spec={**spec, **high},
        )
        await urgent.settled(2)
    after = await job.until(lambda state: len(state.hosts) == 2, "it goes on with two")
    # The mark of a pod and its end may be seen as one, and then it is simply lost.
    told = {"Disruption", "HostsLost"}
    await seen(
        job.events, lambda found: bool(told & {reason for reason, _ in found}), "why workers left"
    )
    await urgent.delete()
    await job.until(lambda state: len(state.hosts) == 4, "it is whole again")
    return before, after
