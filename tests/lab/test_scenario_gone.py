"""Nothing that the leader holds names a job that is gone, whatever happened to the job before."""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable, Mapping

import msgspec
import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.controllers import leading
from tests.lab.job import Job, State
from tests.lab.ranks import start_rank
from tests.lab.waiting import seen

# Only these are looked into: through the event loop everything holds everything.
HOLDERS = ("mpijob_elastic.", "prometheus_client.", "asyncio.queues", "asyncio.locks")


def parts(item: object) -> Iterable[tuple[str, object]]:
    """What an object holds, each with where."""
    if isinstance(item, Mapping):
        return [("key", key) for key in item] + [
            (f"[{key!r}]", value) for key, value in item.items()
        ]
    if isinstance(item, list | tuple | set | frozenset | deque):
        return [("[]", value) for value in item]
    if isinstance(item, msgspec.Struct):
        return [(f".{name}", getattr(item, name)) for name in item.__struct_fields__]
    if type(item).__module__.startswith(HOLDERS):
        return [(f".{name}", value) for name, value in getattr(item, "__dict__", {}).items()]
    return []


def traces(root: object, words: Iterable[str]) -> list[str]:
    """Where texts with any of these words are held."""
    stack, known, found = [("", root)], {id(root)}, []
    while stack:
        path, item = stack.pop()
        if isinstance(item, str) and any(word in item for word in words):
            found.append(f"{path} {item}")
        for where, part in parts(item):
            if id(part) not in known:
                known.add(id(part))
                stack.append((path + where, part))
    return found


def uids(state: State) -> list[str]:
    pods = [*state.workers.values(), *([state.launcher] if state.launcher else [])]
    return [pod["metadata"]["uid"] for pod in pods]


@pytest.mark.thorough
@pytest.mark.usefixtures("webhook", "operator")
async def test_no_trace_of_a_job_that_is_gone(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace, name=f"gone-{secrets.token_hex(4)}")
    async with leading(cluster.kubeconfig, namespace) as controller:
        await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "3s"})
        state = await job.settled(3)
        words = [job.name, *uids(state)]
        await asyncio.to_thread(start_rank, cluster, job, job.workers(2)[0])
        await job.scale(2)
        await job.told("DrainTimeout")
        await job.settled(2)
        await job.set_status(job.workers(1)[0], {"phase": "Failed", "reason": "Error"})
        await job.until(lambda now: not set(uids(now)) <= set(words), "a new worker")
        words += uids(await job.settled(2))
        assert traces(controller, words)
        await job.delete()

        async def held() -> list[str]:
            return traces(controller, words)

        await seen(held, lambda found: not found, f"nothing that names {job.name}")
