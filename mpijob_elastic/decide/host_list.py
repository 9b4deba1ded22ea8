"""Which workers discover_hosts.sh should name next.

Safety rules 1 and 4, and what Horovod's driver needs: a list never becomes empty once it named a host ("No hosts from
previous set remaining" ends the training), removals and additions are separate changes, none follows another faster
than the driver can, unless a host is gone anyway, and nobody is added while others get over a loss.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import disruption, host_names, launcher_refresh, lost_ranks, pacing, rank0_loss
from mpijob_elastic.model.job import JobView, Worker


@dataclass(frozen=True, kw_only=True)
class Next:
    """The pods to publish now, and when to look again where a change must wait."""

    hosts: tuple[str, ...]
    wake_at: float | None = None


def wanted(view: JobView, *, now: float = math.inf) -> tuple[str, ...]:
    """Pods that should be published, in numeric order; at the end of all changes where no time is given."""
    departing = disruption.departing(view, now=now)
    belonging = (worker for worker in view.workers if worker.ready and _belongs(view, worker))
    return tuple(worker.name for worker in belonging if worker.name not in departing)


def following(view: JobView, *, now: float) -> Next:
    """One step from the published hosts towards the wanted ones."""
    dead = _dead(view, now=now)
    target = set(wanted(view, now=now)) - dead
    back = {pod: _back_at(view, pod, now=now) for pod in target if pod not in view.host_of and _may_join(view, pod)}
    joining = [pod for pod, at in back.items() if at <= now]
    staying = [pod for pod in view.published_pods if pod in target]
    if view.published_pods and not staying:
        # Somebody who knows the training's state must stay until newcomers have it from him.
        staying = list(view.published_pods) if joining else [_last(view)]
    if len(staying) < len(view.published_pods):
        return _remove(view, staying, dead, now=now)
    if not joining:
        return Next(hosts=view.published_pods, wake_at=min(back.values(), default=None))
    return _add(view, joining, now=now)


def _belongs(view: JobView, worker: Worker) -> bool:
    # Without elasticity the operator's workers stay whatever the size says, so they stay hosts too.
    return worker.index < view.replicas or not view.elastic


def _may_join(view: JobView, host: str) -> bool:
    return view.role is not None and host in view.role.exec_names


def _dead(view: JobView, *, now: float) -> frozenset[str]:
    """Published pods that no rank can run in under the host name they have."""
    lost = (pod for pod in view.published_pods if _lost(view.worker(pod)))
    return frozenset(lost) | host_names.stale(view, now=now) | lost_ranks.lost(view, now=now)


def _lost(worker: Worker | None) -> bool:
    return worker is None or worker.terminated or worker.deleting


def _back_at(view: JobView, pod: str, *, now: float) -> float:
    worker = view.worker(pod)
    return lost_ranks.due_at(view, worker, now=now) if worker else 0.0


def _remove(view: JobView, staying: list[str], dead: Collection[str], *, now: float) -> Next:
    gone = {pod for pod in view.published_pods if pod in dead and pod not in staying}
    if gone:
        # At once, and alone: who else is to leave is better judged without them, and in his own time.
        return _step(view, [pod for pod in view.published_pods if pod not in gone])
    return _paced(view, staying, at=pacing.settled_at(view, now=now), now=now)


def _add(view: JobView, joining: list[str], *, now: float) -> Next:
    if view.driver_running and view.config is not None and view.config.published is None:
        return _step(view, joining)  # the driver has nothing to read, so there is nothing to wait for
    newcomers = [worker for worker in view.workers if worker.name in joining]
    settled, reformed = pacing.settled_at(view, now=now), rank0_loss.reformed_at(view, now=now)
    ready = max(settled, reformed, pacing.gathered_at(view, newcomers, now=now))
    return _paced(view, [*view.published_pods, *joining], at=ready, now=now)


def _last(view: JobView) -> str:
    alive = [host for host in view.published_pods if not _lost(view.worker(host))]
    return (alive or view.published_pods)[0]


def _paced(view: JobView, hosts: list[str], *, at: float, now: float) -> Next:
    if launcher_refresh.is_due(view, now=now):
        return Next(hosts=view.published_pods)  # the change before this one first
    return _step(view, hosts) if now >= at else Next(hosts=view.published_pods, wake_at=at)


def _step(view: JobView, hosts: list[str]) -> Next:
    return Next(hosts=tuple(sorted(hosts, key=lambda host: names.worker_index(host, job=view.name) or 0)))
