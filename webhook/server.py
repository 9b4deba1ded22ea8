"""The process: listeners, certificates, and an end without a failed call.

The API server keeps using open connections to a terminating pod, and nodes learn of the end at different times. So
after SIGTERM a replica turns unready, serves on, and asks with every answer to close the connection. Then it stops.
"""

import asyncio
import logging
import random
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from mpijob_elastic import names
from mpijob_elastic.capabilities import admission as optional
from mpijob_elastic.kube import client
from mpijob_elastic.kube.writer import ApiWriter
from webhook import health
from webhook.admission import Admission
from webhook.certificates.decision import Policy
from webhook.certificates.rotation import Clocks, Rotation
from webhook.certificates.serving import Files, Serving
from webhook.job_cache import Watched
from webhook.listener import listening
from webhook.metrics import Metrics
from webhook.rules.context import ReviewContext
from webhook.settings import WebhookSettings

log = logging.getLogger(__name__)

# Share of a lifetime over which the replicas' renewals are spread.
_SPREAD = 0.03


@dataclass(frozen=True, kw_only=True)
class Running:
    """A listening webhook. Set `draining` to make it unready and close connections with each answer."""

    port: int
    health_port: int
    draining: asyncio.Event


async def serve(settings: WebhookSettings) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends the drain.

    Raises `kube.errors.Unconfigured` without a cluster configuration, OSError if a port is taken.
    """
    asked, pressed = _stop_signals()
    async with running(settings) as webhook:
        log.info("listening on port %d, health on port %d", webhook.port, webhook.health_port)
        await asked.wait()
        log.info("draining for %s s", settings.drain_seconds)
        webhook.draining.set()
        try:
            await asyncio.wait_for(pressed.wait(), settings.drain_seconds)
        except TimeoutError:
            log.info("drained")


@asynccontextmanager
async def running(settings: WebhookSettings) -> AsyncIterator[Running]:
    """Run a webhook during the context; its end closes idle connections and awaits requests in flight.

    A fault in the background ends the context: a restart is better than a replica whose certificate is not renewed.
    """
    clocks = Clocks(wall=lambda: datetime.now(UTC), monotonic=time.monotonic)
    metrics, serving, draining = Metrics(), Serving(), asyncio.Event()
    health_paths = health.application(serving=serving, draining=draining, metrics=metrics, wall=clocks.wall)
    async with AsyncExitStack() as stack:
        connecting = client.connect(user_agent=names.WEBHOOK, kubeconfig=settings.kubeconfig, context=settings.context)
        cluster = await stack.enter_async_context(await connecting)
        watched = Watched(cluster, namespaces=settings.jobs_namespaces, random=random.Random())  # noqa: S311 - jitter
        context = ReviewContext(
            job=watched.job,
            quotas=watched.quotas,
            now=time.time,
            lookup=watched,
            rooms=optional.ALL,
        )
        metrics.unreadable.set_function(watched.unreadable)
        certificates = _certificates(settings, serving, clocks, cluster)
        hooks = optional.hooks(cluster, context, lambda: certificates.secret_path)
        admission = Admission(limits=settings.limits, metrics=metrics, draining=draining, context=context, hooks=hooks)
        listen = partial(listening, host=settings.host, limits=settings.limits, finish_seconds=settings.finish_seconds)
        health_port = await stack.enter_async_context(listen(health_paths, port=settings.health_port))
        port = await stack.enter_async_context(listen(admission.application(), port=settings.port, tls=serving.context))
        stack.push_async_callback(admission.finished, within=settings.finish_seconds)
        background = await stack.enter_async_context(asyncio.TaskGroup())
        for task in (certificates.run(), watched.run()):
            stack.callback(background.create_task(task).cancel)
        yield Running(port=port, health_port=health_port, draining=draining)


def _certificates(settings: WebhookSettings, serving: Serving, clocks: Clocks, cluster: ApiWriter) -> Rotation | Files:
    if settings.certificate_directory is not None:
        every = settings.timing.look_every
        return Files(directory=settings.certificate_directory, serving=serving, look_every=every)
    early = random.uniform(0, _SPREAD)  # noqa: S311 - spreads load, keeps no secret
    return Rotation(
        client=cluster,
        namespace=settings.namespace,
        serving=serving,
        policy=Policy(hosts=settings.hosts, lifetimes=settings.lifetimes, early=early),
        timing=settings.timing,
        clocks=clocks,
    )


def _stop_signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Set by the first and by the second SIGTERM or SIGINT."""
    first, second = asyncio.Event(), asyncio.Event()

    def received() -> None:
        (second if first.is_set() else first).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, received)
    return first, second
