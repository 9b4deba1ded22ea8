"""Evictions that are tried again after any pause: they pass, and the worker leaves twice at most for each."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.disruption.hook import Evictions
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import Action, Look, ProbeWorkers, WriteConfig
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import NOW, but, job, pods
from tests.product.capabilities.disruption.evicted import request, worker
from tests.product.capabilities.disruption.test_hook import SECRET, Api
from tests.product.webhook.answers import knowing, running
from tests.simulated_writes import apply

[POD] = pods(2)


class Training:
    """A job of three whose third worker is evicted; its rank leaves `drains[n]` s after the worker has left again.

    left: how often the worker has left the list. now: seconds since the epoch.
    """

    def __init__(self, *, limit: float, drains: list[float]) -> None:
        self.now, self.left = NOW, 0
        self.limit, self._drains, self._busy_until = limit, drains, 0.0
        self._view: JobView = job(3, policy=Policy(drain_timeout=limit))

    @property
    def listed(self) -> bool:
        return POD in self._view.host_of

    @property
    def _worker(self) -> Worker:
        return next(one for one in self._view.workers if one.name == POD)

    def _pod(self, **facts: Any) -> None:
        changed = but(self._worker, **facts)
        workers = tuple(changed if one.name == POD else one for one in self._view.workers)
        self._view = but(self._view, workers=workers)

    def until(self, at: float) -> None:
        """Carry out all that is due until then."""
        while (plan := decide(self._view, now=self.now)) and self.now <= at:
            looks = [
                look for look in plan.looks if isinstance(look, ProbeWorkers) and not look.published
            ]
            due: tuple[Action | Look, ...] = (*plan.actions, *looks)
            for action in due:
                self._do(action)
            if not (plan.actions or looks):
                self.now = math.inf if plan.wake_at is None else plan.wake_at
        self.now = at

    def _do(self, action: Action | Look) -> None:
        if isinstance(action, ProbeWorkers) and self.now < self._busy_until:
            self._pod(probe=but(self._worker.probe, busy_seen=True, asked_at=self.now))
            return
        if isinstance(action, WriteConfig) and POD in action.removed:
            self._busy_until = self.now + self._drains[min(self.left, len(self._drains) - 1)]
            self.left += 1
        self._view = apply(self._view, action, now=self.now)

    async def evict(self) -> bool:
        """Try it once; return True if it passes."""
        api = Api(worker=worker(mark=self._worker.facts.marks.get(EVICTION_MARK, "")))
        known = running(annotations={names.DRAIN_TIMEOUT: f"{self.limit:.0f}s"})
        context = replace(knowing(known), now=lambda: self.now)
        answer = await Evictions(api, context=context, secret_path=lambda: SECRET).answer(
            request(), within=1.0
        )
        for mark in api.marks:
            self._pod(marks=mark["annotations"])
        return answer.outcome == "unchanged"


async def passes(training: Training, *, apart: float) -> float:
    """Try again and again; return after how long the eviction passes."""
    for count in range(20 + math.ceil(2 * training.limit / apart)):
        training.until(NOW + count * apart)
        if await training.evict():
            return count * apart
    raise AssertionError(f"it never passes, and the worker left {training.left} times")


@pytest.mark.parametrize("apart", [1, 5, 30, 60, 66, 70, 120, 150, 300, 600, 3500])
async def test_an_eviction_passes_however_seldom_it_is_tried(apart: float) -> None:
    training = Training(limit=60.0, drains=[5.0])
    assert await passes(training, apart=apart) <= max(10.0, 2 * apart)
    assert training.left <= (1 if apart <= 60 else 2)


@given(
    apart=st.integers(5, 600),
    limit=st.sampled_from([10, 60, 600]),
    shares=st.lists(st.floats(0.0, 1.2), min_size=1, max_size=3),
)
async def test_it_passes_whatever_the_drains_take(
    apart: int, limit: int, shares: list[float]
) -> None:
    training = Training(limit=limit, drains=[share * limit for share in shares])
    assert await passes(training, apart=apart) <= 2 * (limit + 2 * apart)
    assert training.left <= 2


async def test_a_worker_comes_back_whose_evictor_gave_up() -> None:
    training = Training(limit=60.0, drains=[5.0])
    for count in range(2):
        training.until(NOW + count * 300.0)
        assert not await training.evict()
    training.until(NOW + 2 * 3600.0)
    assert training.listed
