"""Evictions of workers: mark the pod at the first try, and let evictors wait while it drains.

The API server evicts a pod only after admission, and asks the PodDisruptionBudgets last. So before
a first try makes a worker leave, the same eviction is tried as a dry run: if a budget or anything
else forbids it, the eviction passes at once, and the API server itself says why the pod is not
evicted.

An answer here changes a pod, and any pod can send reviews. So the path is a secret, which only the
webhook's configuration and its Secret tell.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.admission.interface import ReviewContext, ReviewHook
from mpijob_elastic.admission.review import Answer, Request, Verdict
from mpijob_elastic.capabilities.disruption import admission as eviction
from mpijob_elastic.capabilities.disruption import eviction as marks
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.kube import errors, meta
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

_log = logging.getLogger(__name__)


class Evictions(ReviewHook):
    """Answers reviews of evictions.

    secret_path: returns the path at which reviews come, "" while nobody knows it.
    """

    KIND = eviction.KIND

    def __init__(
        self, client: ApiWriter, *, context: ReviewContext, secret_path: Callable[[], str]
    ) -> None:
        self._client = client
        self._context = context
        self._secret_path = secret_path

    def is_at(self, path: str) -> bool:
        """Return True if a request to that path comes from the API server."""
        expected = self._secret_path()
        return bool(expected) and hmac.compare_digest(path.encode(), expected.encode())

    async def answer(self, request: Request, *, within: float) -> Answer:
        """Answer a review; what fails or takes too long lets the eviction pass."""
        once = Timeouts(attempt=within, throttled=0.0)
        try:
            meta.check_cost(request.object)
            async with asyncio.timeout(within):
                verdict = await self._verdict(request, once)
        except (errors.NotFound, errors.Forbidden) as error:
            _log.info("an eviction of %s/%s passes: %s", request.namespace, request.name, error)
            return review.answered(review.UNCHANGED)
        except (
            errors.KubeError,
            TimeoutError,
            msgspec.DecodeError,
            RecursionError,
            UnicodeDecodeError,
        ) as error:
            why = str(error) or type(error).__name__
            _log.warning("an eviction of %s/%s passes: %s", request.namespace, request.name, why)
            return Answer(verdict=review.UNCHANGED, outcome="error")
        return review.answered(verdict)

    async def _verdict(self, request: Request, once: Timeouts) -> Verdict:
        name = names.job_of_worker(request.name)
        job = self._context.job(request.namespace, name) if name else None
        if job is None or not eviction.may_wait(request, job):
            return review.UNCHANGED
        path = PODS.path(request.namespace, request.name)
        worker = eviction.pod(await self._client.get(path, limits=once))
        tried = eviction.tried(request, worker, job, now=self._context.now())
        if isinstance(tried, Verdict):
            return tried
        launcher = PODS.path(request.namespace, names.launcher(name))
        found, allowed = await asyncio.gather(
            self._client.get(launcher, limits=once),
            self._is_allowed(request, worker.metadata.uid, once),
        )
        if not (allowed and eviction.is_training(eviction.pod(found), job)):
            return review.UNCHANGED
        await self._mark(path, worker.metadata.uid, marks.text(tried), once)
        return eviction.DRAINING

    async def _is_allowed(self, request: Request, uid: str, once: Timeouts) -> bool:
        body = {
            "apiVersion": "policy/v1",
            "kind": eviction.KIND,
            "metadata": {"name": request.name, "namespace": request.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = PODS.path(request.namespace, request.name, "eviction")
        try:
            await self._client.create_object(path, body=body, query={"dryRun": "All"}, limits=once)
        except errors.ApiError as error:
            _log.info(
                "an eviction of %s/%s is not allowed: %s", request.namespace, request.name, error
            )
            return False
        return True

    async def _mark(self, path: str, uid: str, mark: str, once: Timeouts) -> None:
        body = {"metadata": {"uid": uid, "annotations": {EVICTION_MARK: mark}}}
        await self._client.patch_object(path, body=body, content_type=MERGE_PATCH, limits=once)
