"""Our deletions of pods, by name: what decide.pace needs to space them out.

In memory alone: after a change of the leader the first deletion of each pod is done at once.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mpijob_elastic.act.looks import Job
from mpijob_elastic.decide.state import FORGIVEN_AFTER
from mpijob_elastic.model.job import Deleted, JobView

# What an MPIJob asks for: uid, size, whether it is elastic, and what it asks of capabilities.
_Asks = tuple[object, ...]


@dataclass
class _OfJob:
    """The deletions for one job while it asks for the same."""

    asks: _Asks
    #: Number of deletions, and when the last was, by the name of the pod.
    last: dict[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(eq=False, kw_only=True)
class Deletions:
    """Counts the deletions of each pod, for as long as the MPIJob asks for the same."""

    #: Returns seconds that never step.
    clock: Callable[[], float] = time.monotonic
    _found: dict[Job, _OfJob] = field(default_factory=dict, init=False)

    def add(self, view: JobView, pod: str) -> None:
        """Count a deletion of a pod of this job."""
        known = self._of(view)
        if known is None:
            known = self._found[view.namespace, view.name] = _OfJob(asks=_asks(view))
        count, _ = known.last.get(pod, (0, 0.0))
        known.last[pod] = count + 1, self.clock()

    def seen(self, view: JobView) -> Mapping[str, Deleted]:
        """Return the deletions that count for this job, by the name of the pod."""
        known = self._of(view)
        if known is None:
            return {}
        now = self.clock()
        known.last = {
            pod: last for pod, last in known.last.items() if now - last[1] < FORGIVEN_AFTER
        }
        if not known.last:
            self.forget((view.namespace, view.name))
        return {pod: Deleted(count=count, ago=now - at) for pod, (count, at) in known.last.items()}

    def forget(self, job: Job) -> None:
        """Forget a job that is gone."""
        self._found.pop(job, None)

    def _of(self, view: JobView) -> _OfJob | None:
        """Return the deletions of a job, without those for what it asked before."""
        known = self._found.get((view.namespace, view.name))
        if known is None or known.asks == _asks(view):
            return known
        self.forget((view.namespace, view.name))
        return None


def _asks(view: JobView) -> _Asks:
    facts = view.facts
    # Who edited anything else, and our own marks, must not begin the count anew.
    asked = tuple(known for known in facts.asked if known.asks)
    policy = facts.policy.suspend, facts.policy.sizes, facts.policy.parked
    return facts.metadata.uid, facts.replicas, facts.elastic, policy, asked
