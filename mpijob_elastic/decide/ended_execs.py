"""Ended `kubectl exec`s: a rank whose exec has ended is lost for sure, while its pod runs on.

Horovod's driver holds each rank by an exec in the launcher. When a rank dies, the exec ends with
it, and the driver never again starts a rank under that host name (HostManager.blacklist). The API
says nothing of either. So once a look into a worker has found no rank, the launcher is asked, once.
If the launcher holds no exec into the worker, nobody has to wait longer to see whether a rank comes
back (see lost_ranks).

This counts only where no other reason is left for which an exec may be missing:
- The driver has ended, or starts: so a rank was seen for a while since the driver's start.
- The rank had to leave, and the worker was listed again before the rank had gone; the driver starts
  another one. So a rank was seen for a while since the worker was listed.
- The driver tries a host again (--blacklist-cooldown-range), or is perhaps not horovodrun.
- Training ends, and ranks end one after the other. So the execs of more than half of the workers
  have to be there in the same look. That look comes some seconds after the rank was missed. And
  the rank that is missed must not say that it has done the last step (model/progress).
- The look sees no execs at all. The same look has to see others.
- What was seen in the worker was no rank but a command of the kubelet, such as an exec probe. So a
  worker in which the kubelet runs commands does not count.

All times are seconds.
"""

import math
from collections.abc import Collection, Iterator, Mapping

from mpijob_elastic.decide.state import Moment
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.model.pod import Launcher, Worker

# From the first look that found a worker idle, to the look into the launcher. When training ends,
# the ranks of most other workers end in this time.
ASKED_AFTER = 3.0
# For so long a rank must have been seen. A rank that has to leave, in a worker that is listed again
# meanwhile, ends within seconds, because the others have formed their ring without it by then.
SETTLED = 20.0

_NONE: frozenset[str] = frozenset()


def reasons(moment: Moment) -> Mapping[str, float]:
    """Return each reason for which the launcher is asked, with the time to ask."""
    if not moment.may_number:
        return {}
    return {_reason(one): since + ASKED_AFTER for one, since in _missed(moment.view)}


def confirmed(view: JobView, execs: Collection[Exec], *, now: float) -> frozenset[str]:
    """Return the due reasons that a look confirms which found these execs: the rank's has ended."""
    missed = [worker for worker, since in _missed(view) if since + ASKED_AFTER <= now]
    if not missed:
        return _NONE
    reached = {found.pod for found in execs}
    held = reached.intersection(view.host_of)
    if 2 * len(held) <= len(view.host_of):
        return _NONE  # training ends, or nothing is seen
    return frozenset(_reason(worker) for worker in missed if worker.name not in reached)


def has_ended(launcher: Launcher, worker: Worker) -> bool:
    """Tell whether a look has shown that the exec of the rank that was in this worker has ended."""
    return _reason(worker) in launcher.held.ended


def _missed(view: JobView) -> Iterator[tuple[Worker, float]]:
    """Yield the listed workers whose rank was seen for a while and is missed, and since when."""
    started_at = driver_started_at(view)
    for worker in view.workers:
        since = worker.probe.missed_since(started_at, lasting=SETTLED)
        if since is None or worker.probe.in_doubt or _has_trained(worker):
            continue
        if worker.name in view.host_of:
            yield worker, since


def _has_trained(worker: Worker) -> bool:
    """Tell whether the rank that is missed says that it has done the last step."""
    line = worker.probe.progress
    return line is not None and line.is_last


def is_settled(worker: Worker, driver_started_at: float) -> bool:
    """Tell whether a rank runs in the worker, and was seen for so long that its end is a loss."""
    if worker.probe.idle_at is not None or worker.probe.in_doubt:
        return False
    return worker.probe.seen_for(driver_started_at) >= SETTLED


def driver_started_at(view: JobView) -> float:
    """Return the start of the driver.

    Infinite if nobody knows it, or if the driver may start a rank again where one has died.
    """
    launcher, launch = view.launcher, view.facts.launch
    if launcher is None or not view.driver_running:
        return math.inf
    if launch is None or not launch.spends_hosts:
        return math.inf
    if launcher.facts.started_at is None:
        return math.inf
    return launcher.facts.started_at


def _reason(worker: Worker) -> str:
    return f"{worker.name} is {worker.ref.uid}, idle since {worker.probe.idle_since}"
