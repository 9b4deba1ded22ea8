"""The ledgers of all jobs, and the counters of GPU-seconds that they feed.

In memory alone: decide/ledger says what survives a restart. A counter never goes back, so a pod
counts once its seconds are in their last bucket, and a bucket that shrinks waits until it has grown
again.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace

from mpijob_elastic.decide import ledger
from mpijob_elastic.model.goodput import NAMES, Buckets, Ledger, buckets
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics

# Seconds between two updates of the counters by a job.
COUNTED_EVERY = 15.0


@dataclass(kw_only=True)
class _Counted:
    """What the counters have of a job."""

    #: What earlier processes have counted: it does not count again.
    before: Buckets
    #: When they were last updated.
    at: float = 0.0
    #: The pods of which a part is in `before`, by uid.
    old: set[str] = field(default_factory=set)
    #: What the counters have, and more of no bucket.
    most: Buckets = field(default_factory=Buckets)


@dataclass(eq=False)
class Ledgers:
    """The ledger of each job."""

    metrics: Metrics
    _: KW_ONLY
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    _ledgers: dict[JobKey, Ledger] = field(default_factory=dict, init=False)
    _counted: dict[JobKey, _Counted] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Begin each series with 0, as telemetry/metrics does."""
        for counter in (self.metrics.gpu_seconds, self.metrics.worker_seconds):
            for bucket in NAMES:
                counter.labels(bucket)

    def followed(self, view: JobView) -> JobView:
        """Return the view with the ledger as the view's objects and looks show it."""
        key, now = JobKey(view.namespace, view.name), self.now()
        before = self._ledgers.get(key)
        if before is None and not _may_begin(view):
            return view
        if before is not None and before.uid != view.ref.uid:
            self.forget(key)
            before = None
        found = ledger.following(before, view, now=now)
        self._ledgers[key] = found
        counted = self._counted.get(key)
        if counted is None:
            self._counted[key] = counted = _Counted(before=found.past)
        if now >= counted.at + COUNTED_EVERY:
            self._count(counted, found, now)
        return replace(view, ledger=found)

    def forget(self, key: JobKey) -> None:
        """Forget a job that is gone; its pods are gone too."""
        found, counted = self._ledgers.pop(key, None), self._counted.pop(key, None)
        if found and counted:
            self._count(counted, found, self.now())

    def clear(self) -> None:
        """Forget all jobs: another process leads."""
        self._ledgers.clear()
        self._counted.clear()

    def _count(self, counted: _Counted, found: Ledger, now: float) -> None:
        """Add to the counters what was spent since the last time."""
        for uid, span in found.spans.items():
            if span.is_old and uid not in counted.old and span.is_settled(now=now):
                counted.old.add(uid)
                counted.before = counted.before.plus(buckets(span, now=now))
        total = found.settled(now=now)
        counter = self.metrics.gpu_seconds if found.in_gpus else self.metrics.worker_seconds
        most = dict[str, float]()
        for bucket in NAMES:
            seconds = getattr(total, bucket) - getattr(counted.before, bucket)
            known = getattr(counted.most, bucket)
            counter.labels(bucket).inc(max(0.0, seconds - known))
            most[bucket] = max(seconds, known)
        counted.at, counted.most = now, Buckets(**most)


def _may_begin(view: JobView) -> bool:
    """Tell whether a job can be followed: its memory has what it spent before."""
    return view.elastic and view.config is not None
