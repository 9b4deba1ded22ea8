"""The controller process.

Its caches are always warm, it works only while it leads, and it hands over at its end.

It serves /healthz, /readyz and /metrics over plain HTTP. Healthy: the watches give signs of life.
Ready: the caches have been filled once. A standby is ready too, because it can take over at once.
"""

import asyncio
import logging
import signal
import time
from asyncio import sslproto
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random

from aiohttp import web
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from mpijob_elastic import __version__, names
from mpijob_elastic.act.driver_looks import DriverLooks
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.leader_writer import LeaderWriter, NotLeader
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.capabilities import live
from mpijob_elastic.controller.ledgers import Ledgers
from mpijob_elastic.controller.per_job_state import ScaleTimes, SeenTimes
from mpijob_elastic.controller.recheck import LiveRecheck
from mpijob_elastic.controller.reconcile import Reconciler
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.lease import Lease, LeaseTimes
from mpijob_elastic.kube.queue import WorkQueue, work
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.node import Signs
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry import ports
from mpijob_elastic.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

# Bytes that asyncio takes for each TLS connection: a record of TLS (RFC 8446, 5.1), in place of its
# default of 256 KiB. Each look by exec has a connection, 88 looks may be under way
# (act/worker_probes, act/launcher_execs), and malloc keeps the memory that the connections took.
CONNECTION_BUFFER = 16 * 2**10
# Seconds that Events may still take when the leader stops.
FLUSH_TIME = 2.0
# Seconds. Well above the 75 s after which a dead watch is replaced, and the backoff after that.
DEAD_AFTER = 300.0
# Seconds between two questions whether a namespace is open.
ASK_EVERY = 60.0
# Caches that lag cause these errors for a moment; the next try succeeds, so the errors are worth no
# warning.
_EXPECTED = (errors.Conflict, Outdated, NotLeader)


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """Settings, as `mpijob-elastic controller --help` explains them."""

    #: New for each process.
    identity: str
    kubeconfig: Path | None = None
    context: str | None = None
    #: Empty for all namespaces.
    jobs_namespaces: tuple[str, ...] = ()
    lease_namespace: str = names.NAMESPACE
    workers: int = 16
    #: The signs that a node is about to go; None if nodes may not be read.
    signs: Signs | None = None
    #: The optional components that are installed (live.OPTIONS).
    components: tuple[str, ...] = ()
    #: None for all addresses, of IPv4 and IPv6.
    health_host: str | None = None
    health_port: int = 8080
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)


async def run(settings: ControllerSettings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises `kube.errors.Unconfigured` if no cluster configuration is found, and OSError if the port
    is taken.
    """
    spare_memory()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    user_agent = f"mpijob-elastic-controller/{__version__}"
    async with await connect(
        user_agent=user_agent, kubeconfig=settings.kubeconfig, context=settings.context
    ) as client:
        closed = await closed_to(client, settings.jobs_namespaces)
        others = tuple(
            namespace for namespace in settings.jobs_namespaces if namespace not in closed
        )
        if closed and others:
            log.error(
                "no rights in %s: gone, or `mpijob-elastic install` is to be run again",
                listed(closed),
            )
            settings = replace(settings, jobs_namespaces=others)
        ending = asyncio.create_task(end_once_open(client, closed, stop))
        try:
            await Controller(client, settings).run(stop)
        finally:
            ending.cancel()


async def closed_to(client: ApiReader, namespaces: Sequence[str]) -> list[str]:
    """Return the namespaces in which we may not list jobs.

    A namespace that is deleted takes our Role along. A watch there never lists, and must not keep
    the jobs of all other namespaces waiting when a controller starts.
    """
    found = []
    for namespace in namespaces:
        try:
            await client.get(MPI_JOBS.path(namespace), query={"limit": "1"})
        except errors.Forbidden:
            found.append(namespace)
        except errors.KubeError:
            break  # the watches wait until any other error has passed
    return found


async def end_once_open(
    client: ApiReader, namespaces: Sequence[str], stop: asyncio.Event, *, every: float = ASK_EVERY
) -> None:
    """Set `stop` once a namespace has opened: a new process watches it from its start."""
    while True:
        await asyncio.sleep(every)
        if len(await closed_to(client, namespaces)) < len(namespaces):
            stop.set()


def spare_memory() -> None:
    """Reduce the memory for each connection that this process opens from now on."""
    sslproto.SSLProtocol.max_size = CONNECTION_BUFFER


class Controller:
    """Everything that the process holds, wired; `now` returns seconds since the epoch."""

    def __init__(
        self,
        client: ApiWriter,
        settings: ControllerSettings,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        random = Random()  # noqa: S311 - jitter, no secret
        self._settings = settings
        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        self._metrics = Metrics(registry)
        self._queue = WorkQueue[JobKey](random=random)
        self._leading = False
        self._caches = Caches(
            client,
            namespaces=settings.jobs_namespaces,
            enqueue=self._changed,
            random=random,
            read=live.READ,
            capabilities=partial(live.seeing, options=settings.components),
            signs=settings.signs,
            now=now,
        )
        self._lease = Lease(
            client=client,
            namespace=settings.lease_namespace,
            name=names.LEASE,
            identity=settings.identity,
            random=random,
            times=settings.lease_times,
        )
        leader_writer = LeaderWriter(client, time_left=self._lease.time_left, metrics=self._metrics)
        self._events = Events(leader_writer, instance=settings.identity, now=now, random=random)
        self._prober = Prober(client, metrics=self._metrics, now=now, wake=self._wake)
        self._execs = Execs(client, now=now, wake=self._wake, calls=self._prober.published)
        self._driver_looks = DriverLooks(client, now=now, wake=self._wake)
        drains = SeenTimes(clock=time.monotonic)
        writer = Writer(
            leader_writer=leader_writer,
            seen=self._caches,
            recheck=LiveRecheck(
                client,
                self._caches,
                probes=self._prober.seen,
                acknowledged=self._driver_looks.seen,
                timed=drains.timed,
                read=live.READ,
                now=now,
            ),
            execs=self._execs,
            events=self._events,
            metrics=self._metrics,
            capability_writers=live.writers(
                client, leader_writer, self._caches, self._events, now, options=settings.components
            ),
        )
        self._reconciler = Reconciler(
            caches=self._caches,
            queue=self._queue,
            writer=writer,
            prober=self._prober,
            driver_looks=self._driver_looks,
            scales=ScaleTimes(self._metrics, clock=time.monotonic),
            ledgers=Ledgers(self._metrics, now=time.time),
            drains=drains,
            now=now,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Follow the cluster, lead while the lease is held, end when `stop` is set."""
        async with self._serving() as port, asyncio.TaskGroup() as group:
            log.info("%s serves health and metrics on port %d", self._settings.identity, port)
            watching = group.create_task(self._caches.run())
            leading = group.create_task(self._lead_when_synced())
            await stop.wait()
            log.info("stopping")
            # The lease is released during this wait, while the caches still run.
            leading.cancel()
            await asyncio.wait({leading})
            watching.cancel()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[int]:
        """Serve health and metrics while the context lasts; yield the port.

        Raises OSError if the port is taken.
        """

        async def healthz(_: web.Request) -> web.Response:
            silent = {name: age for name, age in self._caches.ages().items() if age > DEAD_AFTER}
            if silent:
                return web.Response(
                    status=503, text=f"no sign of life of the watches of {', '.join(silent)}\n"
                )
            return web.Response(text="ok\n")

        async def readyz(_: web.Request) -> web.Response:
            if not self._caches.is_synced():
                return web.Response(status=503, text="the first lists are not complete\n")
            return web.Response(text="ok\n")

        async def metrics(_: web.Request) -> web.Response:
            self._gauges()
            text = generate_latest(self._metrics.registry)
            return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

        app = web.Application()
        app.add_routes(
            [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            host, port = self._settings.health_host, self._settings.health_port
            with ports.chosen_by("--health-port", port):
                await web.TCPSite(runner, host, port).start()
            yield int(runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def _lead_when_synced(self) -> None:
        await self._caches.synced()
        log.info("the caches are filled")
        await self._lease.run(self._lead)

    async def _lead(self) -> None:
        self._leading = True
        for key in self._caches.job_keys():
            self._queue.put(key)
        sending = asyncio.create_task(self._events.run())
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._caches.follow_definition())
                group.create_task(
                    work(
                        self._queue,
                        self._handle,
                        on_failure=self._failed,
                        at_once=self._settings.workers,
                    )
                )
        finally:
            self._leading = False
            self._reconciler.scales.clear()
            self._reconciler.ledgers.clear()
            await self._prober.close()
            await self._execs.close()
            await self._driver_looks.close()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._events.flush(), FLUSH_TIME)
            sending.cancel()

    async def _handle(self, key: JobKey) -> None:
        with self._metrics.reconcile_seconds.time():
            await self._reconciler.reconcile(key)

    def _changed(self, key: JobKey) -> None:
        """Queue a job if this process leads; a standby forgets the job once it is gone.

        A standby queues nothing, because a new leader looks at every job.
        """
        if self._leading:
            self._queue.put(key)
        elif self._caches.jobs.store.get(key.namespace, key.name) is None:
            self._reconciler.forget(key)

    def _failed(self, key: JobKey, error: Exception, delay: float) -> None:
        self._metrics.reconcile_failures.inc()
        if isinstance(error, _EXPECTED):
            log.debug("%s: %s; again in %.2f s", key, error, delay)
        elif isinstance(error, errors.KubeError):
            log.warning("%s: %s; again in %.2f s", key, error, delay)
        else:
            log.error("%s: again in %.2f s", key, delay, exc_info=error)

    def _wake(self, namespace: str, name: str) -> None:
        self._queue.put(JobKey(namespace, name))

    def _gauges(self) -> None:
        leads = self._lease.held()  # a former leader still has an unfinished queue
        self._metrics.leader.set(leads)
        self._metrics.queue_depth.set(self._queue.depth if leads else 0)
        self._metrics.queue_age.set(self._queue.oldest_age() if leads else 0.0)
        for resource, age in self._caches.ages().items():
            self._metrics.cache_age.labels(resource).set(age)
        for resource, count in self._caches.unreadable().items():
            self._metrics.unreadable.labels(resource).set(count)
