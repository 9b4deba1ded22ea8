"""HTTP around the handlers: read a bounded body in bounded time, answer clearly, count.

After a fault of our own the object passes, as with failurePolicy Ignore, but at once and counted as
`error`. The values of every metric's label are bounded, whatever a caller sends.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.interface import ReviewContext, ReviewHook
from mpijob_elastic.admission.review import Answer, Malformed, Request
from mpijob_elastic.admission.size import SCALES
from mpijob_elastic.capabilities import admission
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model import phrases
from webhook.listener import Bodies, Crowded, Limits
from webhook.rules import handlers
from webhook.rules.handlers import Handler, Kind

log = logging.getLogger(__name__)

Answering = Callable[[Request], Awaitable[Answer]]

# The longest name that Kubernetes allows; a longer, hostile name must not fill the log.
_LOGGED = 253
_KINDS = admission.KINDS | {PODS.kind, CONFIG_MAPS.kind, MPI_JOBS.kind, SCALES.kind}
_OPERATIONS = frozenset({review.CREATE, review.UPDATE})
_OTHER = "other"
# The API server says with each request for how long it waits, in whole seconds (timeoutSeconds).
_TIMEOUT = re.compile(r"([1-9]|[12][0-9]|30)s")
# The timeoutSeconds of our hook for evictions.
_SHORTEST = 1.0
# Seconds; the target is a p99 of 10 ms, the API server gives up after timeoutSeconds (2).
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)


class AdmissionMetrics:
    """The metrics of one server, in their own registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        gauge = partial(Gauge, registry=registry)
        self._reviews = Counter(
            "mpijob_elastic_webhook_reviews",
            "Answered requests; outcome: patched, unchanged, warned, rejected, postponed, "
            "unreadable, or why there was no verdict",
            ["kind", "operation", "outcome"],
            registry=registry,
        )
        self.seconds = Histogram(
            "mpijob_elastic_webhook_review_seconds",
            "From the request's headers to its answer",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.expiry = gauge(
            "mpijob_elastic_webhook_certificate_expiry_timestamp_seconds",
            "When the served certificate expires, in seconds since "
            "the epoch; 0 before there is one",
        )
        self.unreadable = gauge(
            "mpijob_elastic_webhook_unreadable_objects",
            "MPIJobs that are ignored because they cannot be read",
        )

    def review(self, *, kind: str, operation: str, outcome: str) -> None:
        """Count an answer; kind and operation may be anything that a caller sent."""
        self._reviews.labels(
            kind=kind if kind in _KINDS else _OTHER,
            operation=operation if operation in _OPERATIONS else _OTHER,
            outcome=outcome,
        ).inc()

    def render(self) -> bytes:
        """Return the text for Prometheus."""
        return generate_latest(self._registry)


class _Refused(Exception):
    """An HTTP error in place of a verdict; its arguments are what `Admission._refuse` takes."""


@dataclass(eq=False, kw_only=True)
class Admission:
    """Answers AdmissionReviews.

    While `draining` is set, each answer asks the caller to close the connection.
    """

    limits: Limits
    metrics: AdmissionMetrics
    draining: asyncio.Event
    context: ReviewContext
    hooks: Sequence[ReviewHook] = ()
    _answering: set[asyncio.Task[object]] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        """Prepare what follows from the limits."""
        self._bodies = Bodies(most=self.limits.bodies_bytes)

    def application(self) -> web.Application:
        """Return the paths that the webhook configurations name."""
        tables = {
            names.PATH_MUTATE: handlers.mutating(self.context),
            names.PATH_DEFAULT_QUEUE: handlers.queueing(self.context),
            names.PATH_VALIDATE: handlers.validating(self.context),
        }
        application = web.Application()
        for path, table in tables.items():
            application.router.add_post(path, partial(self._respond, partial(_by, table)))
        application.router.add_post(f"{names.PATH_EVICT}{{secret}}", self._respond_in_secret)
        return application

    async def finished(self, *, within: float) -> None:
        """Wait at most `within` seconds until the requests in flight are answered.

        Await it before the listener closes: aiohttp then discards the rest of each body.
        """
        if self._answering:
            await asyncio.wait(self._answering, timeout=within)

    async def _respond_in_secret(self, http: web.Request) -> web.Response:
        for hook in self.hooks:
            if hook.is_at(http.path):
                return await self._respond(partial(hook.answer, within=_patience(http)), http)
        raise web.HTTPNotFound

    async def _respond(self, answering: Answering, http: web.Request) -> web.Response:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        with self.metrics.seconds.time():
            try:
                request = review.parse(await self._body(http))
                response = web.Response(
                    body=await self._answer(request, answering), content_type="application/json"
                )
            except Malformed as error:
                response = self._refuse(400, "malformed", str(error))
            except _Refused as error:
                response = self._refuse(*error.args)
        if self.draining.is_set():
            response.force_close()
        return response

    async def _answer(self, request: Request, answering: Answering) -> bytes:
        try:
            answer = await answering(request)
        except Exception:
            log.exception("a review failed, so its object passes unchanged")
            answer = Answer(verdict=review.UNCHANGED, outcome="error")
        self.metrics.review(
            kind=request.kind.kind, operation=request.operation, outcome=answer.outcome
        )
        # Ordinary reviews are only counted: a log line would cost a quarter of a review's time.
        log.log(
            logging.DEBUG if answer.outcome in {"patched", "unchanged"} else logging.INFO,
            "%(outcome)s: %(operation)s %(kind)s %(object)s (dry run: %(dry_run)s)",
            {
                "outcome": answer.outcome,
                "operation": request.operation[:_LOGGED],
                "kind": request.kind.kind[:_LOGGED],
                "object": f"{request.namespace[:_LOGGED]}/{request.name[:_LOGGED]}",
                "dry_run": request.dry_run,
            },
        )
        return review.answer(request, answer.verdict)

    async def _body(self, http: web.Request) -> bytes:
        too_large = f"the body is larger than {self.limits.request_bytes} bytes"
        if (http.content_length or 0) > self.limits.request_bytes:
            raise _Refused(413, "too_large", too_large)
        asked, most = (
            phrases.parse_duration(http.query.get("timeout", "")),
            self.limits.read_seconds,
        )
        seconds = min(asked or most, most)
        body = bytearray()
        try:
            async with asyncio.timeout(seconds) as limit:
                with self._bodies.reading(http.remote or "", limit) as grew:
                    async for part in http.content.iter_any():
                        body += part
                        if len(body) > self.limits.request_bytes:
                            raise _Refused(413, "too_large", too_large)
                        grew(len(part))
                return bytes(body)
        except Crowded:
            raise _Refused(
                503, "crowded", f"{http.remote} sends more than can be read at once"
            ) from None
        except TimeoutError:
            raise _Refused(
                408, "timed_out", f"the body did not arrive within {seconds} s"
            ) from None
        except (web.RequestPayloadError, ConnectionError) as error:
            raise _Refused(
                400, "malformed", f"the body did not arrive as its headers say: {error}"
            ) from None

    def _refuse(self, status: int, outcome: str, message: str) -> web.Response:
        self.metrics.review(kind="", operation="", outcome=outcome)
        log.info("refused with status %d: %s", status, message)
        return web.Response(status=status, text=f"{message}\n")


async def _by(table: Mapping[Kind, Handler], request: Request) -> Answer:
    return handlers.answer(request, table)


def _patience(http: web.Request) -> float:
    """Return for how many seconds the API server waits for an answer."""
    said = _TIMEOUT.fullmatch(http.query.get("timeout", ""))
    return float(said[1]) if said else _SHORTEST
