"""What a webhook has seen of the cluster."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS
from mpijob_elastic.capabilities.kueue.facts import LOCAL_QUEUES
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import LIMIT_RANGES
from tests.doubles.api import TinyApi
from tests.doubles.direct import Sent
from tests.faults.waiting import PATIENCE
from webhook.job_cache import Watched

NAMESPACES = ("other", "team")


async def seen(watched: Watched, namespace: str) -> list[KubeObject]:
    """The LimitRanges of a namespace, once they can be told."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return watched.within(LIMIT_RANGES, namespace)
            except LookupError:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("covered", [(), NAMESPACES])
async def test_limits_are_those_of_a_namespace(api: TinyApi, covered: tuple[str, ...]) -> None:
    for namespace in NAMESPACES:
        where = LIMIT_RANGES.path(namespace if covered else None)
        await api.create(where, f"of-{namespace}", metadata={"namespace": namespace})
    async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
        watched = Watched(client, namespaces=covered, random=Random(1))
        with pytest.raises(LookupError):
            watched.within(LIMIT_RANGES, "team")
        running = asyncio.create_task(watched.run())
        assert [one.metadata.name for one in await seen(watched, "team")] == ["of-team"]
        running.cancel()


async def looked_up(watched: Watched, namespace: str) -> KubeObject | None:
    """The LocalQueue `default` of a namespace, once it can be told."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return watched.named(LOCAL_QUEUES, "default", namespace)
            except LookupError:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("covered", [(), NAMESPACES])
async def test_a_default_queue_is_that_of_its_namespace_and_no_other_is_listed(
    covered: tuple[str, ...],
) -> None:
    listed: set[tuple[str, str]] = set()

    def seen_by_server(sent: Sent) -> None:
        if sent.path.endswith("/localqueues"):
            listed.add((sent.path, sent.query.get("fieldSelector", "")))

    async with TinyApi(selects=True) as api:
        api.objects[f"/apis/{LOCAL_QUEUES.api_version}"] = {"resources": [{"name": "localqueues"}]}
        for namespace, name in (("team", "default"), ("other", "vision")):
            where = LOCAL_QUEUES.path(namespace if covered else None)
            await api.create(where, name, metadata={"namespace": namespace})
        api.hook = seen_by_server
        async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
            watched = Watched(client, namespaces=covered, random=Random(1))
            with pytest.raises(LookupError):
                watched.named(LOCAL_QUEUES, "default", "team")
            running = asyncio.create_task(watched.run())
            assert await looked_up(watched, "team")
            for namespace in ("other", "nowhere"):
                assert watched.named(LOCAL_QUEUES, "default", namespace) is None
            running.cancel()
    paths = [LOCAL_QUEUES.path(namespace) for namespace in covered] or [LOCAL_QUEUES.path()]
    may = {(path, "metadata.name=default") for path in paths}
    assert listed == may, "it has no right to list others"


async def test_without_kueue_no_queue_is_listed(api: TinyApi) -> None:
    sent: list[str] = []
    api.hook = lambda request: sent.append(request.path)
    async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
        watched = Watched(client, namespaces=(), random=Random(1))
        running = asyncio.create_task(watched.run())
        async with asyncio.timeout(PATIENCE):
            while f"/apis/{LOCAL_QUEUES.api_version}" not in sent or len(sent) < 8:
                await asyncio.sleep(0.01)
        with pytest.raises(LookupError):
            watched.named(LOCAL_QUEUES, "default", "team")
        assert LOCAL_QUEUES.path() not in sent
        running.cancel()


async def test_without_the_right_nobody_can_say(api: TinyApi) -> None:
    asked = asyncio.Semaphore(0)

    def refused(sent: Sent) -> None:
        if sent.path == LIMIT_RANGES.path():
            asked.release()
            raise errors.Forbidden(status=403, reason="Forbidden", message="no right")

    api.hook = refused
    async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
        watched = Watched(client, namespaces=(), random=Random(1))
        running = asyncio.create_task(watched.run())
        for _ in range(2):  # the first has been answered
            await asked.acquire()
        with pytest.raises(LookupError):
            watched.within(LIMIT_RANGES, "team")
        assert watched.job("team", "train") is None
        running.cancel()


@pytest.mark.parametrize("is_served", [True, False])
async def test_what_the_api_serves_is_known_once_it_has_answered(
    api: TinyApi, *, is_served: bool
) -> None:
    if is_served:
        path = f"/apis/{KUBERNETES_POD_GROUPS.api_version}"
        api.objects[path] = {"resources": [{"name": "podgroups"}]}
    async with await connect(user_agent="test", kubeconfig=api.kubeconfig) as client:
        watched = Watched(client, namespaces=(), random=Random(1))
        with pytest.raises(LookupError):
            watched.serves(KUBERNETES_POD_GROUPS)
        running = asyncio.create_task(watched.run())
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(LookupError):
                    assert watched.serves(KUBERNETES_POD_GROUPS) is is_served
                    break
                await asyncio.sleep(0.01)
        running.cancel()
