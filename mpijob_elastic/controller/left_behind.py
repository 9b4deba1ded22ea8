"""Workers that are being deleted while ranks run in them that nobody tells to leave: their job is gone or has finished.

A rank outlives the exec that started it, and its driver has ended. The grace period that our webhook gives a worker
(webhook/rules/worker_grace) would keep its GPUs for the drain-timeout, so such ranks are ended after the period that
Kubernetes would have given.
"""

from collections.abc import Iterable

from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe.watching import JobKey

# Seconds: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
DEFAULT_GRACE = 30.0
# Seconds until it is tried again.
AGAIN = 5.0


def end_ranks(key: JobKey, pods: Iterable[PodFacts], prober: Prober, *, now: float) -> float | None:
    """End the ranks of these pods that had their time; return the seconds to the next look, None if none is needed."""
    waits = []
    for pod in pods:
        if pod.ends_at is None or pod.grace is None or pod.grace <= DEFAULT_GRACE:
            continue
        wait = pod.ends_at - pod.grace + DEFAULT_GRACE - now
        if wait <= 0:
            prober.end(key.namespace, key.name, pod)
            wait = AGAIN
        waits.append(wait)
    return min(waits, default=None)
