"""Jobs in an API server in memory, and the dashboard that shows them."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.dashboard import server
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.resources import CONFIG_MAPS, LEASES, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.doubles.api import TinyApi, merged, refused
from tests.doubles.direct import Sent
from tests.product.cli import worlds

TOKEN = "s3cret"
NAMESPACE = "ml"


def store(api: TinyApi, kind: Resource, item: worlds.Object, **labels: str) -> None:
    """Store an object with the operator's labels."""
    meta = item["metadata"]
    group = {names.LABEL_GROUP_NAME: names.GROUP, names.LABEL_APP: meta["name"]}
    meta["labels"] = {**group, **meta.get("labels", {}), **labels}
    api.put(kind.path(meta["namespace"], meta["name"]), item)


def put_job(
    api: TinyApi,
    name: str,
    *,
    size: int = 2,
    ready: int | None = None,
    leaving: Collection[int] = (),
    memory: Memory | None = None,
    at: float = 0.0,
    phase: str = "Running",
    young: Mapping[int, str] | None = None,
    **job: Any,
) -> None:
    """Store a job of that size; its first workers are Ready and published, the others Pending.

    leaving: beyond the size, since `at`. memory: what the controller remembers besides. phase: of
    the launcher. young: when workers were created and Ready, unless at `worlds.CREATED`.
    """
    ready = size if ready is None else ready
    hosts = [names.worker(name, index) for index in range(ready)]
    going = [names.worker(name, index) for index in leaving]
    left = {pod: Left(pod=pod_fingerprint(f"uid of {NAMESPACE}/{pod}"), at=at) for pod in going}
    store(api, MPI_JOBS, worlds.mpi_job(name=name, namespace=NAMESPACE, replicas=size, **job))
    for index in {*range(size), *leaving}:
        runs = index < ready or index in leaving
        pod = worlds.worker(
            index, job=name, namespace=NAMESPACE, phase="Running" if runs else "Pending"
        )
        if young and index in young:
            pod["metadata"]["creationTimestamp"] = young[index]
            pod["status"]["conditions"][0]["lastTransitionTime"] = young[index]
        store(api, PODS, pod, **{names.LABEL_JOB_NAME: name})
    remembered = memory or Memory()
    config = worlds.config_map(
        hosts,
        memory=Memory(
            left=left,
            removed_at=at,
            scale=remembered.scale,
            spent=remembered.spent,
            added_at=remembered.added_at,
        ),
        job=name,
        namespace=NAMESPACE,
    )
    store(api, CONFIG_MAPS, config)
    shown = worlds.shown(config, at=at + 1.0 if leaving else worlds.CREATED)
    launcher = worlds.launcher(phase=phase, refreshed=shown, job=name, namespace=NAMESPACE)
    launcher["spec"]["containers"] = [{"name": "launcher"}]
    store(api, PODS, launcher, **{names.LABEL_JOB_NAME: name})
    pods = [names.worker(name, index) for index in {*range(size), *leaving}]
    store(api, ROLES, worlds.role(pods, job=name, namespace=NAMESPACE))


def admit(api: TinyApi, *, denies: str = "") -> None:
    """Answer dry runs as a server with our webhook does: they store nothing. denies: why it refuses every write."""

    def webhook(sent: Sent) -> object | None:
        if sent.method != "PATCH" or "dryRun" not in sent.query:
            return None
        if denies or "?" in sent.body["metadata"].get("annotations", {}).values():
            raise refused(
                403,
                "Forbidden",
                f'admission webhook "sizes.webhook.mpijob-elastic" denied the request: {denies}',
            )
        return merged(api.objects[sent.path], sent.body)

    api.hook = webhook


# Renewed in the future, as by a clock that is ahead, so it is never too old.
LEADS = {
    "metadata": {"name": names.LEASE, "namespace": names.NAMESPACE},
    "spec": {"holderIdentity": "a", "renewTime": "2999-01-01T00:00:00.000000Z"},
}


@asynccontextmanager
async def one_job() -> AsyncIterator[TinyApi]:
    """Give a server with the job `train` of three workers, our webhook, and a controller that leads."""
    async with TinyApi(selects=True) as api:
        api.put("/version", {})
        api.put(LEASES.path(names.NAMESPACE, names.LEASE), LEADS)
        put_job(api, "train", size=3)
        admit(api)
        yield api


@asynccontextmanager
async def strangers_page(html: str) -> AsyncIterator[int]:
    """Serve somebody else's page on this machine, and give its port."""

    async def send(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"<!doctype html><body>{html}", content_type="text/html")

    application = web.Application()
    application.router.add_get("/", send)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(api: TinyApi, port: int = 0) -> AsyncIterator[str]:
    """Serve the page of all namespaces, and give its address."""
    async with (
        reached(Where(kubeconfig=api.kubeconfig, all_namespaces=True)) as (client, namespace),
        server.serving(client, namespace, token=TOKEN, port=port) as address,
    ):
        yield address
