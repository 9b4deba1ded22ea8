"""Which workers discover_hosts.sh should name next.

Safety rules 1 and 4, and what Horovod's driver needs: a list never becomes empty once it named a host ("No hosts from
previous set remaining" ends the training), removals and additions are separate changes, and no host is taken from a
running driver faster than it can follow, unless that host is gone anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import pacing
from mpijob_elastic.model.job import JobView, Worker


@dataclass(frozen=True, kw_only=True)
class Next:
    """The host list to publish now, and when to look again where a change must wait."""

    hosts: tuple[str, ...]
    wake_at: float | None = None


def wanted(view: JobView) -> tuple[str, ...]:
    """Hosts that should be published at the end of all changes, in numeric order."""
    return tuple(worker.name for worker in view.workers if worker.ready and _belongs(view, worker))


def following(view: JobView, *, now: float) -> Next:
    """One step from the published hosts towards the wanted ones."""
    target = set(wanted(view))
    leaving = [host for host in view.hosts if host not in target]
    joining = [host for host in target if host not in view.hosts and _may_join(view, host)]
    staying = [host for host in view.hosts if host in target]
    if leaving and not staying and view.hosts:
        # Somebody who knows the training's state must stay until newcomers have it from him.
        return _step(view, [*view.hosts, *joining]) if joining else _keep_one(view, leaving)
    if leaving:
        return _remove(view, leaving, staying, now=now)
    return _add(view, joining, now=now)


def _belongs(view: JobView, worker: Worker) -> bool:
    # Without elasticity the operator's workers stay whatever the size says, so they stay hosts too.
    return worker.index < view.replicas or not view.elastic


def _may_join(view: JobView, host: str) -> bool:
    return view.role is not None and host in view.role.exec_names


def _remove(view: JobView, leaving: list[str], staying: list[str], *, now: float) -> Next:
    lost = any(_lost(view.worker(host)) for host in leaving)
    settled = pacing.settled_at(view, now=now)
    if lost or now >= settled:
        return _step(view, staying)
    return Next(hosts=view.hosts, wake_at=settled)


def _lost(worker: Worker | None) -> bool:
    return worker is None or worker.terminated or worker.deleting


def _add(view: JobView, joining: list[str], *, now: float) -> Next:
    if not joining:
        return Next(hosts=view.hosts)
    newcomers = [worker for worker in view.workers if worker.name in joining]
    ready = max(pacing.settled_at(view, now=now), pacing.gathered_at(view, newcomers, now=now))
    if now >= ready:
        return _step(view, [*view.hosts, *joining])
    return Next(hosts=view.hosts, wake_at=ready)


def _keep_one(view: JobView, leaving: list[str]) -> Next:
    alive = [host for host in leaving if not _lost(view.worker(host))]
    return Next(hosts=((alive or leaving)[0],))


def _step(view: JobView, hosts: list[str]) -> Next:
    return Next(hosts=tuple(sorted(hosts, key=lambda host: names.worker_index(host, job=view.name) or 0)))
