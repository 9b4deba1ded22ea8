"""The process: settings, listeners, certificates, health, and an end without a failed call.

The API server keeps using open connections to a terminating pod, and nodes learn of the end at
different times. So after SIGTERM a replica turns unready, serves on, and asks with every answer to
close the connection. Then it stops.
"""

import asyncio
import logging
import random
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.capabilities import admission as rooms
from mpijob_elastic.kube import client
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.loading import load
from mpijob_elastic.telemetry import LogFormat, LogLevel
from webhook.admission import Admission, AdmissionMetrics
from webhook.certificates.apart import RotationApart
from webhook.certificates.handshakes import Handshakes
from webhook.certificates.messages import Lifetimes, Order, Timing
from webhook.job_cache import Watched
from webhook.listener import Limits, listening

if TYPE_CHECKING:
    from webhook.certificates.serving import Files

log = logging.getLogger(__name__)

# Reads certificates, for which it takes 10 MiB.
_OF_FILES = "webhook.certificates.serving"
# Share of a lifetime over which the replicas' renewals are spread.
_SPREAD = 0.03
_PROMETHEUS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """The settings of `serve`, as `mpijob-elastic webhook --help` explains them."""

    host: str | None = None
    #: 0 takes a free port.
    port: int = 9443
    #: 0 takes a free port.
    health_port: int = 8081
    namespace: str = names.NAMESPACE
    extra_sans: frozenset[str] = frozenset()
    #: None: make and rotate certificates. Otherwise leave Secret and caBundle alone.
    certificate_directory: Path | None = None
    jobs_namespaces: tuple[str, ...] = ()
    #: Put the labels of pod templates back on new pods.
    restores_labels: bool = True
    kubeconfig: Path | None = None
    context: str | None = None
    #: So that every node learns that this replica leaves.
    drain_seconds: float = 15.0
    #: For requests in flight after that.
    finish_seconds: float = 5.0
    limits: Limits = field(default_factory=Limits)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    timing: Timing = field(default_factory=Timing)
    #: How the process that rotates certificates logs.
    log_format: LogFormat = "json"
    log_level: LogLevel = "info"

    @property
    def hosts(self) -> frozenset[str]:
        """The names in the certificate: the name that the API server calls, and the extra names."""
        return frozenset(
            {f"{names.WEBHOOK}.{self.namespace}.svc", *map(_canonical, self.extra_sans)}
        )


@dataclass(frozen=True, kw_only=True)
class Running:
    """A listening webhook.

    Set `draining` to make it unready and close connections with each answer.
    """

    port: int
    health_port: int
    draining: asyncio.Event


async def serve(settings: WebhookSettings) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends the drain.

    Raises `kube.errors.Unconfigured` without a cluster configuration, OSError if a port is taken.
    """
    pressed = asyncio.Semaphore(0)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, pressed.release)
    async with running(settings) as webhook:
        log.info("listening on port %d, health on port %d", webhook.port, webhook.health_port)
        await pressed.acquire()
        log.info("draining for %s s", settings.drain_seconds)
        webhook.draining.set()
        try:
            await asyncio.wait_for(pressed.acquire(), settings.drain_seconds)
        except TimeoutError:
            log.info("drained")


@asynccontextmanager
async def running(settings: WebhookSettings) -> AsyncIterator[Running]:
    """Run a webhook during the context; its end closes idle connections.

    The end also awaits requests in flight. A fault in the background ends the context: a restart is
    better than a replica whose certificate is not renewed.
    """
    settings = _lasting(settings)
    metrics, draining = AdmissionMetrics(), asyncio.Event()
    handshakes = _handshakes(settings)
    health_paths = health(serving=handshakes, draining=draining, metrics=metrics, wall=_wall)
    async with AsyncExitStack() as stack:
        connecting = client.connect(
            user_agent=names.WEBHOOK, kubeconfig=settings.kubeconfig, context=settings.context
        )
        cluster = await stack.enter_async_context(await connecting)
        watched = Watched(cluster, namespaces=settings.jobs_namespaces, random=random.Random())  # noqa: S311 - jitter
        context = ReviewContext(
            job=watched.job,
            quotas=watched.quotas,
            now=time.time,
            lookup=watched,
            rooms=rooms.ALL,
            taken=rooms.TAKEN,
            restores_labels=settings.restores_labels,
        )
        metrics.unreadable.set_function(watched.unreadable)
        certificates = _certificates(settings, handshakes, cluster)
        hooks = rooms.hooks(cluster, context, lambda: certificates.secret_path)
        admission = Admission(
            limits=settings.limits, metrics=metrics, draining=draining, context=context, hooks=hooks
        )
        listen = partial(
            listening,
            host=settings.host,
            limits=settings.limits,
            finish_seconds=settings.finish_seconds,
        )
        health_port = await stack.enter_async_context(
            listen(health_paths, port=settings.health_port, option="--health-port")
        )
        port = await stack.enter_async_context(
            listen(admission.application(), port=settings.port, tls=handshakes.context)
        )
        stack.push_async_callback(admission.finished, within=settings.finish_seconds)
        background = await stack.enter_async_context(asyncio.TaskGroup())
        for task in (certificates.run(), watched.run()):
            stack.callback(background.create_task(task).cancel)
        yield Running(port=port, health_port=health_port, draining=draining)


def health(
    *,
    serving: Handshakes,
    draining: asyncio.Event,
    metrics: AdmissionMetrics,
    wall: Callable[[], datetime],
) -> web.Application:
    """Return /healthz, /readyz and /metrics, for a port of their own without TLS.

    Kubelet and Prometheus do not have our CA.
    """
    metrics.expiry.set_function(serving.expires_at)

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if draining.is_set():
            return web.Response(status=503, text="draining\n")
        if not serving.valid(now=wall()):
            return web.Response(status=503, text="no valid certificate\n")
        return web.Response(text="ok\n")

    async def measured(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers=_PROMETHEUS)

    paths = web.Application()
    for path, answer in (("/healthz", alive), ("/readyz", ready), ("/metrics", measured)):
        paths.router.add_get(path, answer)
    return paths


def _lasting(settings: WebhookSettings) -> WebhookSettings:
    """Return settings with which another process reaches the same cluster at any later time."""
    if settings.certificate_directory is not None:
        return settings
    context = client.lasting_context(kubeconfig=settings.kubeconfig, context=settings.context)
    return replace(settings, context=context)


def _handshakes(settings: WebhookSettings) -> Handshakes:
    """Return what serves certificates: of the Secret, or of files, which have to be read here."""
    if settings.certificate_directory is None:
        return Handshakes()
    found: Handshakes = load(_OF_FILES).Serving()
    return found


def _certificates(
    settings: WebhookSettings, handshakes: Handshakes, cluster: ApiWriter
) -> "RotationApart | Files":
    if settings.certificate_directory is not None:
        every = settings.timing.look_every
        files: Files = load(_OF_FILES).Files(
            directory=settings.certificate_directory, serving=handshakes, look_every=every
        )
        return files
    order = Order(
        namespace=settings.namespace,
        hosts=sorted(settings.hosts),
        lifetimes=settings.lifetimes,
        timing=settings.timing,
        early=random.uniform(0, _SPREAD),  # noqa: S311 - spreads load, keeps no secret
        kubeconfig=str(settings.kubeconfig) if settings.kubeconfig else None,
        context=settings.context,
        log_format=settings.log_format,
        log_level=settings.log_level,
    )
    return RotationApart(client=cluster, handshakes=handshakes, order=order, wall=_wall)


def _wall() -> datetime:
    return datetime.now(UTC)


def _canonical(host: str) -> str:
    """Return a host as a certificate gives it back.

    An address gets the short form of IPv6; another name stays as it is. Raises ValueError for a
    name that is not ASCII.
    """
    try:
        return str(ip_address(host))
    except ValueError:
        return host.encode("ascii").decode()
