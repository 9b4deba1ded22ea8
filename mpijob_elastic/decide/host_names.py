"""Host names: a worker is published under its pod's name, or under that with a number more.

Horovod never again uses a host name under which a rank died ([horovod] HostManager.blacklist), and a recreated pod has
its predecessor's name. So a name is given to another pod only where exec has shown that the pod before had drained; in
doubt the next number is taken, which costs nothing. kubexec.sh takes the number off again.

A driver that has yet to start has seen nobody die: until then, and in jobs that are not elastic, names stay.
"""

from collections.abc import Collection, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import drain
from mpijob_elastic.decide.state import JobState, Moment
from mpijob_elastic.model.memory import Host
from mpijob_elastic.model.pod import Worker

# Host names are remembered for so many workers, the lowest indices first, because an annotation has limits.
MOST_REMEMBERED = 2000
# Stands for a pod that is gone and was never seen.
_NOBODY = "?"


def of(moment: Moment, worker: Worker) -> tuple[int, bool]:
    """Return the incarnation in the host name that this worker has or will get; and if it succeeds a lost rank.

    A worker succeeds a lost rank if a rank may have died in the pod that had its host name last.
    """
    last = _last(moment, worker.ref.name)
    another = moment.view.driver_running and last is not None and last.pod not in ("", worker.fingerprint)
    spent = last is not None and another and not _drained(moment, worker.ref.name, last)
    if not moment.may_number:
        return names.incarnation_of(moment.view.host_of.get(worker.ref.name, "")), spent and moment.view.elastic
    return (last.incarnation if last else 0) + spent, spent


def remembered(state: JobState, published: Collection[str], *, lost: Collection[str]) -> Mapping[str, Host]:
    """Return which pod has which host name once these pods are published; names that may be reused are forgotten.

    lost: pods that leave the list because no rank runs in them any more; each comes back under the next number.
    """
    view = state.view
    if state.stopped:
        return {}  # the next launcher has seen nobody die
    if not view.elastic:
        return view.memory.hosts
    kept = {}
    doubtful = () if state.memory_known else state.by_name
    for pod in {*view.memory.hosts, *view.host_of, *published, *doubtful}:
        worker = state.by_name.get(pod)
        index = worker.pod.index if worker else names.worker_index(pod, job=view.name)
        if index is None or index >= MOST_REMEMBERED:
            continue
        if host := _published(state, pod) if pod in published else _next(state, pod, is_lost=pod in lost):
            kept[pod] = host
    return kept


def _last(moment: Moment, pod: str) -> Host | None:
    """Return which pod got the name last; a listed name that is not remembered belongs to the pod that is there.

    Of a list that is lost, any worker may have been a host.
    """
    view = moment.view
    remembered, listed = view.memory.hosts.get(pod), view.host_of.get(pod, "")
    if remembered or (moment.memory_known and not listed):
        return remembered
    worker = view.worker(pod)
    if worker is None and not listed:
        return None
    return Host(pod=worker.fingerprint if worker else _NOBODY, incarnation=names.incarnation_of(listed))


def _drained(moment: Moment, pod: str, last: Host) -> bool:
    view = moment.view
    left = view.memory.left.get(pod)
    if left is None or left.pod != last.pod:
        return False
    worker = view.worker(pod)
    probe = worker.probe if worker and worker.fingerprint == left.pod else view.former.get(pod)
    return probe is not None and drain.of(moment, pod, left, probe).drained


def _published(state: JobState, pod: str) -> Host | None:
    worker = state.by_name.get(pod)
    if worker is None:
        last = _last(state, pod)
        return last and Host(pod=last.pod or _NOBODY, incarnation=last.incarnation)
    if worker.published and worker.published != worker.host:
        return _last(state, pod)  # the last host of all, which stays listed as it is
    return Host(pod=worker.pod.fingerprint, incarnation=worker.incarnation)


def _next(state: JobState, pod: str, *, is_lost: bool) -> Host | None:
    last = _last(state, pod)
    if last is not None and is_lost:
        return Host(pod=last.pod, incarnation=last.incarnation + 1)
    if last is None or not state.view.driver_running:
        return None
    if last.pod and not _drained(state, pod, last):
        return msgspec.structs.replace(last, reformed=True) if pod in state.cut_off else last
    return Host(pod="", incarnation=last.incarnation) if last.incarnation else None
