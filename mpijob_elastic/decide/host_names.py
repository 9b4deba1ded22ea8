"""Under which host name a worker is published: its pod's, or that with a number more.

Horovod never again uses a host name under which a rank died ([horovod] HostManager.blacklist), and a pod that is
created anew has its predecessor's name. So a name is given to another pod only where exec has shown that the one before
it had drained; in doubt the next number is taken, which costs nothing. kubexec.sh takes the number off again.

A driver that has yet to start has seen nobody die: until then, and in jobs that are not elastic, names stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mpijob_elastic import names
from mpijob_elastic.decide import drain
from mpijob_elastic.model.job import JobView, Worker
from mpijob_elastic.model.memory import Host

# Of so many workers, those of the lowest indices, it is remembered which pod has which name; an annotation has limits.
MOST_REMEMBERED = 2000
# Stands for a pod that is gone and was never seen.
_NOBODY = "?"


def host(view: JobView, worker: Worker, *, now: float) -> str:
    """The host name under which this worker is published, or is to be."""
    return names.host(worker.name, _incarnation(view, worker, now=now))


def stale(view: JobView, *, now: float) -> frozenset[str]:
    """Published pods that the list names as it should not any more, for a rank may have died under that name."""
    published = (worker for worker in view.workers if worker.name in view.host_of)
    return frozenset(worker.name for worker in published if view.host_of[worker.name] != host(view, worker, now=now))


def remembered(view: JobView, published: Collection[str], *, lost: Collection[str], now: float) -> Mapping[str, Host]:
    """Which pod has which host name, once these pods are published; names that nobody need avoid are forgotten.

    lost: pods that leave the list because no rank runs in them any more; each comes back under the next number.
    """
    if not view.elastic:
        return view.memory.hosts
    known = {pod for pod in {*view.memory.hosts, *view.published_pods, *published} if _is_remembered(view, pod)}
    staying = {pod: _published(view, pod, now=now) for pod in known & set(published)}
    going = {pod: _next(view, pod) for pod in known & set(lost)}
    past = {pod: _past(view, pod, now=now) for pod in known - staying.keys() - going.keys()}
    return {pod: one for pod, one in {**staying, **going, **past}.items() if one is not None}


def may_number(view: JobView) -> bool:
    """Whether the launcher finds the pod of a numbered host name, or will once we say how."""
    return view.elastic and view.config is not None and view.config.finds_numbered


def is_kept_back(view: JobView, worker: Worker, *, now: float) -> bool:
    """Whether this worker would get the next number if its launcher could make anything of it."""
    return not may_number(view) and succeeds_lost(view, worker, now=now)


def succeeds_lost(view: JobView, worker: Worker, *, now: float) -> bool:
    """Whether a rank may have died in the pod that had this worker's host name last."""
    last = _last(view, worker.name)
    another = last is not None and last.pod not in ("", worker.ref.fingerprint)
    return view.elastic and another and _is_spent(view, worker.name, last, now=now)


def _incarnation(view: JobView, worker: Worker, *, now: float) -> int:
    listed = view.host_of.get(worker.name, "")
    if not may_number(view):
        return names.incarnation_of(listed)
    last = _last(view, worker.name)
    if last is None or last.pod in ("", worker.ref.fingerprint):
        return last.incarnation if last else 0
    return last.incarnation + _is_spent(view, worker.name, last, now=now)


def _last(view: JobView, pod: str) -> Host | None:
    """To whom the name was given last; one that is listed and not remembered is whoever's pod is there."""
    remembered, listed = view.memory.hosts.get(pod), view.host_of.get(pod)
    return remembered or (Host(pod="", incarnation=names.incarnation_of(listed)) if listed else None)


def _is_spent(view: JobView, pod: str, last: Host | None, *, now: float) -> bool:
    return last is not None and view.driver_running and not _drained(view, pod, last, now=now)


def _drained(view: JobView, pod: str, last: Host, *, now: float) -> bool:
    left = view.memory.left.get(pod)
    if left is None or left.pod != last.pod:
        return False
    worker = view.worker(pod)
    probe = worker.probe if worker and worker.ref.fingerprint == left.pod else view.former.get(pod)
    began = drain.drain_began(view, left, now=now)
    return probe is not None and began is not None and drain.is_drained(probe, began)


def _published(view: JobView, pod: str, *, now: float) -> Host | None:
    worker, last = view.worker(pod), _last(view, pod)
    if worker is None:
        return last and Host(pod=last.pod or _NOBODY, incarnation=last.incarnation)
    incarnation = _incarnation(view, worker, now=now)
    listed = view.host_of.get(pod)
    if listed is not None and names.incarnation_of(listed) != incarnation:
        return last  # the last host of all, which stays listed as it is
    return Host(pod=worker.ref.fingerprint, incarnation=incarnation)


def _next(view: JobView, pod: str) -> Host | None:
    last = _last(view, pod)
    return last and Host(pod=last.pod, incarnation=last.incarnation + 1)


def _past(view: JobView, pod: str, *, now: float) -> Host | None:
    last = _last(view, pod)
    if last is None or not view.driver_running:
        return None
    if last.pod and not _drained(view, pod, last, now=now):
        return last
    return Host(pod="", incarnation=last.incarnation) if last.incarnation else None


def _is_remembered(view: JobView, pod: str) -> bool:
    index = names.worker_index(pod, job=view.name)
    return index is not None and index < MOST_REMEMBERED
