"""The ledgers of all jobs, and the counters of GPU-seconds that they feed.

In memory alone: decide/ledger says what survives a restart. A counter never goes back, so a pod
counts once its seconds are in their last bucket, and a bucket that shrinks waits until it has grown
again.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace

from mpijob_elastic.decide import ledger
from mpijob_elastic.model.goodput import NAMES, Buckets, Ledger
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics

# Seconds between two updates of the counters by a job.
COUNTED_EVERY = 15.0


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """What the counters have of a job."""

    at: float
    buckets: Buckets


@dataclass(eq=False)
class Ledgers:
    """The ledger of each job."""

    metrics: Metrics
    _: KW_ONLY
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    _ledgers: dict[JobKey, Ledger] = field(default_factory=dict, init=False)
    _counted: dict[JobKey, _Counted] = field(default_factory=dict, init=False)

    def followed(self, view: JobView) -> JobView:
        """Return the view with the ledger as the view's objects and looks show it."""
        key, now = JobKey(view.namespace, view.name), self.now()
        before = self._ledgers.get(key)
        if not view.elastic and before is None:
            return view
        found = ledger.following(before, view, now=now)
        self._ledgers[key] = found
        self._count(key, found, now)
        return replace(view, ledger=found)

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone; its pods are gone too."""
        if found := self._ledgers.pop(key, None):
            self._count(key, found, self.now(), is_last=True)
        self._counted.pop(key, None)

    def clear(self) -> None:
        """Forget all jobs: another process leads."""
        self._ledgers.clear()
        self._counted.clear()

    def _count(self, key: JobKey, found: Ledger, now: float, *, is_last: bool = False) -> None:
        before = self._counted.get(key)
        if before and now < before.at + COUNTED_EVERY and not is_last:
            return
        total = found.settled(now=now)
        if before is None:
            # What earlier processes have counted does not count again.
            self._counted[key] = _Counted(at=now, buckets=total)
            return
        counter = self.metrics.gpu_seconds if found.in_gpus else self.metrics.worker_seconds
        most = dict[str, float]()
        for bucket in NAMES:
            was, now_is = getattr(before.buckets, bucket), getattr(total, bucket)
            counter.labels(bucket).inc(max(0.0, now_is - was))
            most[bucket] = max(was, now_is)
        self._counted[key] = _Counted(at=now, buckets=Buckets(**most))
