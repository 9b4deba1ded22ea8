"""The last ends of workers, as probes would show them, kept longer than their pods."""

from collections import defaultdict
from collections.abc import Callable, Hashable

from mpijob_elastic import names
from mpijob_elastic.model.memory import pod_fingerprint, pod_key
from mpijob_elastic.model.pod import PodFacts, Probe
from mpijob_elastic.observe.views import Probes


class WorkerEnds:
    """The last end of each worker whose main process saw that no rank was left.

    The webhook gives workers that main process (admission/worker_grace). A pod is often gone
    before a probe sees that no rank is left, so its end is kept longer than the pod, as the result
    of a probe would be. now: returns seconds since the epoch.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ends: dict[Hashable, dict[str, tuple[str, Probe]]] = defaultdict(dict)

    def see(self, job: Hashable, pod: PodFacts) -> None:
        """Keep the last words of the pod's main process, if it left any."""
        if not pod.last_words:
            return
        name, left = pod.metadata.name, pod.last_words == names.RANKS_LEFT
        key = pod_key(name, pod_fingerprint(pod.metadata.uid))
        if self._ends[job].get(name, ("",))[0] != key:
            now = self._now()
            self._ends[job][name] = (
                key,
                Probe(busy_seen=left, left=left, idle_at=now, asked_at=now, idle_since=now),
            )

    def forget(self, job: Hashable) -> None:
        """Forget a job that is gone."""
        self._ends.pop(job, None)

    def over(self, job: Hashable, probes: Probes) -> Probes:
        """Return probes that know these ends as well."""
        ends = dict(self._ends[job].values()) if job in self._ends else {}
        return (lambda pod, occasion: ends.get(pod) or probes(pod, occasion)) if ends else probes
