"""Launcher pods that are tried, not created: whether the webhook was asked shows in the answer, or in its metrics."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from lab.replicas import Webhook
from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.resources import MUTATING_WEBHOOKS, PODS, Resource
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from tests.lab.waiting import LIMITS, PATIENCE
from tests.product.webhook import objects
from tests.product.webhook.objects import Object

UNMUTATED = {"mpijob-elastic/injection": "disabled"}
ITEM = {"key": "discover_hosts.sh", "mode": 0o555, "path": "discover_hosts.sh"}


def launcher(job: str = "train", **owner: object) -> Object:
    """A launcher pod that can be created without the operator's ServiceAccount; `owner` changes its ownerReference."""
    pod = objects.launcher_pod(name=job)
    pod["spec"]["serviceAccountName"] = "default"
    pod["metadata"]["ownerReferences"][0].update(owner)
    return pod


def items(pod: Object) -> list[Any]:
    """The items of the operator's volume."""
    volumes: list[Object] = pod["spec"]["volumes"]
    found: list[Any] = next(
        volume["configMap"]["items"] for volume in volumes if volume["name"] == "mpi-job-config"
    )
    return found


async def tried(client: ApiWriter, resource: Resource, namespace: str, obj: Object) -> Object:
    """Create an object in a dry run and return it; nothing is stored.

    Raises as `ApiReader` does.
    """
    body = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
    path = resource.path(namespace)
    raw = await client.create_object(path, query={"dryRun": "All"}, body=body, limits=LIMITS)
    answer: Object = msgspec.json.decode(raw)
    return answer


async def patched(client: ApiWriter, namespace: str) -> bool:
    """Tell whether the webhook is asked about a launcher and answers."""
    asked = launcher("asked")  # of no job that a test has
    return ITEM in items(await tried(client, PODS, namespace, asked))


async def until_patched(client: ApiWriter, namespace: str) -> None:
    """Wait until it does."""
    while not await patched(client, namespace):
        await asyncio.sleep(0.1)


@asynccontextmanager
async def patient(client: ApiWriter) -> AsyncIterator[None]:
    """Give calls ten seconds: those that fail do so at once, and one that a busy machine delays is not lost."""
    path = MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION)
    hooks = msgspec.json.decode(await client.get(path))["webhooks"]

    async def allow(*seconds: int) -> None:
        patch = [
            {"op": "replace", "path": f"/webhooks/{hook}/timeoutSeconds", "value": value}
            for hook, value in enumerate(seconds)
        ]
        await client.patch_object(path, body=patch, content_type=JSON_PATCH)

    await allow(*(10 for _ in hooks))
    try:
        yield
    finally:
        await allow(*(hook["timeoutSeconds"] for hook in hooks))


@dataclass
class Calls:
    """The number of launchers that were tried, and of those that the webhook did not patch."""

    made: int = 0
    lost: int = 0


@asynccontextmanager
async def calling(
    client: ApiWriter, namespace: str, *, callers: int = 4, burst: int = 1, pause: float = 0.0
) -> AsyncIterator[Calls]:
    """Try launchers as long as the context lasts: each caller tries a burst, then pauses.

    Raises what a try raises.
    """
    calls, over = Calls(), asyncio.Event()

    async def call() -> None:
        while not over.is_set():
            answers = await asyncio.gather(*(patched(client, namespace) for _ in range(burst)))
            calls.lost += answers.count(False)
            calls.made += burst
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
        yield calls
        over.set()


async def label(client: ApiWriter, namespace: str, labels: Mapping[str, str | None]) -> None:
    """Label the namespace: with `UNMUTATED` the API server does not call the webhook, as if it were away."""
    body = {"metadata": {"labels": labels}}
    path = resources.NAMESPACES.path(None, namespace)
    await client.patch_object(path, body=body, content_type=MERGE_PATCH)
    # It learns of labels by a watch.
    async with asyncio.timeout(PATIENCE):
        while await patched(client, namespace) is (labels == UNMUTATED):
            await asyncio.sleep(0.1)


def reviews(webhook: Webhook, label: str = "") -> float:
    """Return the number of answered reviews, of all kinds and outcomes, or of a label."""
    lines = [line for line in webhook.metrics().splitlines() if not line.startswith("#")]
    counts = [
        line
        for line in lines
        if line.startswith("mpijob_elastic_webhook_reviews_total") and label in line
    ]
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def plain_pod(number: int) -> Object:
    spec = {"containers": [{"name": "main", "image": "nginx"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}"}, "spec": spec}
