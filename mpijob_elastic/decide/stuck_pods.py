"""Pods that were to be gone long ago: their node does not answer, or a finalizer holds them.

The operator creates no pod under a name that is still taken, so each costs the job a worker, or the launcher, until
somebody says that its node is gone. That is for people to know: on a node that only lost its network processes run on.
https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
"""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView, Launcher, Worker

# Seconds beyond the end of its grace period: a kubelet that is only slow is done by then.
LATE_AFTER = 60.0


def notes(view: JobView, *, now: float) -> Iterator[Note]:
    """One note for all of them."""
    late = [pod for pod in _going(view) if _late_at(pod) <= now]
    if not late:
        return
    pods, more = " ".join(pod.ref.name for pod in late[:8]), f" and {len(late) - 8} more" if len(late) > 8 else ""
    nodes = " ".join(sorted({pod.node for pod in late if pod.node}))
    away = f"; where the node is gone for good, `kubectl delete node {nodes}` frees all its pods" if nodes else ""
    message = (
        f"{pods}{more} should be gone by now, and nothing can be created under a name that is taken: a node does not "
        f"answer, or a finalizer holds it. `kubectl -n {view.namespace} delete pod {pods} --grace-period=0 --force` "
        f"frees the name{away}"
    )
    yield Note(reason="PodStuckTerminating", message=message, warning=True)


def late_from(view: JobView) -> Iterator[float]:
    """When pods that are going now would count as stuck."""
    yield from map(_late_at, _going(view))


def _going(view: JobView) -> Iterator[Worker | Launcher]:
    """Pods on their way out that the job needs anew."""
    pods: list[Worker | Launcher] = [worker for worker in view.workers if worker.index < view.replicas]
    if view.launcher:
        pods.insert(0, view.launcher)
    yield from (pod for pod in pods if view.elastic and pod.deleting and pod.ends_at is not None)


def _late_at(pod: Worker | Launcher) -> float:
    return (pod.ends_at or 0.0) + LATE_AFTER
