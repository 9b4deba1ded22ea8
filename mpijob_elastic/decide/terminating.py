"""Pods that were to be gone long ago: their node does not answer, or a finalizer holds them.

The operator creates no worker under a name that is still taken, so such a pod costs the job a worker until somebody
says that its node is gone. That is for people to know: on a node that only lost its network its processes run on.
https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
"""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.job import JobView, Worker

# Seconds beyond the end of its grace period: a kubelet that is only slow is done by then.
LATE_AFTER = 60.0


def notes(view: JobView, *, now: float) -> Iterator[Note]:
    """A note for each of them."""
    for worker in view.workers:
        at = _late_at(view, worker)
        if at is None or now < at:
            continue
        where = f"node {worker.node} does not answer, or" if worker.node else ""
        node = f"; if the node is gone for good, `kubectl delete node {worker.node}` frees all its pods" * bool(
            worker.node
        )
        message = (
            f"{worker.name} should be gone by now: {where} a finalizer holds it, and no new one can be created. "
            f"`kubectl -n {view.namespace} delete pod {worker.name} --grace-period=0 --force` frees its name{node}"
        )
        yield Note(reason="PodStuckTerminating", message=" ".join(message.split()), warning=True)


def late_from(view: JobView) -> Iterator[float]:
    """When pods that are going now would count as stuck."""
    times = (_late_at(view, worker) for worker in view.workers)
    yield from (at for at in times if at is not None)


def _late_at(view: JobView, worker: Worker) -> float | None:
    wanted = view.elastic and worker.index < view.replicas
    if not wanted or not worker.deleting or worker.ends_at is None:
        return None
    return worker.ends_at + LATE_AFTER
