"""Serve the page on the loopback interface until Ctrl-C."""

import asyncio
import logging
import re
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.dashboard import guard, post, streams
from mpijob_elastic.cli.dashboard.streams import Channel
from mpijob_elastic.cli.dashboard.training import Trainings
from mpijob_elastic.cli.jobs import table
from mpijob_elastic.cli.jobs.live import Key
from mpijob_elastic.cli.jobs.snapshot import Selection, fetch_job
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.telemetry import ports
from mpijob_elastic.telemetry.terminal import say

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# Names that Kubernetes allows, so that nothing else gets into a path of the API.
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


async def dashboard(where: Where, *, job: str | None, port: int, browser: bool) -> None:
    """Serve the page until SIGTERM or Ctrl-C.

    Raises `errors.KubeError`, and OSError if the port is taken.
    """
    logging.getLogger("mpijob_elastic").setLevel(logging.ERROR)  # the page shows lost connections
    async with reached(where) as (client, namespace):
        if job:
            await fetch_job(client, namespace, job)
        token = secrets.token_urlsafe(32)
        used = asyncio.Event()
        async with serving(client, namespace, token=token, port=port, used=used) as address:
            url = f"{address}/#token={token}" + (f"&job={namespace}/{job}" if job else "")
            with guard.redirect(url) as file:
                if browser and guard.open_browser(file):
                    say(f"The page is open in your browser, at {address}, until Ctrl-C.")
                else:
                    say(
                        f"Open {url}",
                        "It is served until Ctrl-C. The link lets others act with your rights, "
                        "so keep the link secret.",
                    )
                await _until_stopped(used, file)


async def _until_stopped(used: asyncio.Event, file: Path) -> None:
    """Wait for SIGTERM. Remove the file with the token once the page has the token."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    waiting = [asyncio.create_task(event.wait()) for event in (stopped, used)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    guard.remove(file)
    await stopped.wait()


@asynccontextmanager
async def serving(
    client: ApiWriter,
    namespace: str | None,
    *,
    token: str,
    port: int = 0,
    used: asyncio.Event | None = None,
) -> AsyncIterator[str]:
    """Serve the page, and give its address.

    namespace: the namespace of the jobs, None for all namespaces. used: set by the first request
    with the token.
    """
    trainings = Trainings()

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if why := guard.foreign(request.headers, writes=request.method == "POST"):
            raise web.HTTPForbidden(text=why)
        if request.path.startswith("/api/") and not guard.knows(token, request.headers):
            raise web.HTTPUnauthorized(text="open the link that `mpijob-elastic dashboard` printed")
        if used and request.path.startswith("/api/"):
            used.set()
        return await handler(request)

    async def all_jobs(request: web.Request) -> web.StreamResponse:
        selection = Selection(namespace=namespace)
        return await _stream(
            request, client, namespace, lambda channel: streams.of_all(client, selection, channel)
        )

    async def one_job(request: web.Request) -> web.StreamResponse:
        key = _key(request)
        return await _stream(
            request, client, namespace, lambda channel: _shown(client, key, channel, trainings)
        )

    async def change(request: web.Request) -> web.StreamResponse:
        key, asked = _key(request), await post.requested(request)
        return await _stream(
            request, client, namespace, lambda channel: post.make(client, key, asked, channel)
        )

    async def manifest(request: web.Request) -> web.StreamResponse:
        return await _manifest(client, _key(request))

    application = web.Application(middlewares=[guarded], client_max_size=post.LARGEST)
    application.on_response_prepare.append(_secure)
    application.router.add_get("/api/jobs", all_jobs)
    application.router.add_get("/api/jobs/{namespace}/{name}", one_job)
    application.router.add_get("/api/jobs/{namespace}/{name}/yaml", manifest)
    application.router.add_post("/api/jobs/{namespace}/{name}/change", change)
    for file in PAGE.iterdir():
        application.router.add_get(
            "/" if file.name == "index.html" else f"/{file.name}", _sends(file)
        )
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
    )
    await runner.setup()
    try:
        with ports.chosen_by("--port", port):
            await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _manifest(client: ApiReader, key: Key) -> web.Response:
    """Return the MPIJob as YAML, without what the API server notes of its writers."""
    try:
        job = msgspec.json.decode(await client.get(MPI_JOBS.path(*key)))
    except errors.KubeError as error:
        raise web.HTTPBadGateway(text=rights.in_words(error)) from None
    job["metadata"].pop("managedFields", None)
    return web.Response(text="\n".join(table.serialized(job, "yaml")))


def _key(request: web.Request) -> Key:
    key = (request.match_info["namespace"], request.match_info["name"])
    if not all(map(_NAME.fullmatch, key)):
        raise web.HTTPNotFound(text="no such name")
    return key


async def _shown(client: ApiReader, key: Key, channel: Channel, trainings: Trainings) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(post.tell_rights(client, key, channel))
        await streams.of_job(client, key, channel, trainings)


async def _secure(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(guard.HEADERS)


def _sends(file: Path) -> Handler:
    content = file.read_bytes()

    async def send(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=content, content_type=TYPES[file.suffix], charset="utf-8")

    return send


async def _stream(
    request: web.Request,
    client: ApiReader,
    namespace: str | None,
    run: Callable[[Channel], Coroutine[Any, Any, None]],
) -> web.StreamResponse:
    """Send what `run` puts into its channel until the reader leaves or `run` fails.

    The reader is told why `run` failed.
    """
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    channel = Channel()
    channel.put("about", {"cluster": client.host, "namespace": namespace})
    running = asyncio.create_task(run(channel))
    running.add_done_callback(lambda done: channel.put("refused", _words(done)))
    lines = channel.lines()
    try:
        while not (running.done() and channel.empty):
            await response.write(await anext(lines))
    except ConnectionError:
        pass  # the tab was closed or hidden
    finally:
        running.cancel()
        with suppress(BaseException):
            await running
    return response


def _words(done: asyncio.Task[None]) -> str:
    error = None if done.cancelled() else done.exception()
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, errors.KubeError):
        return rights.in_words(error)
    return f"{type(error).__name__}: {error}" if error else ""
