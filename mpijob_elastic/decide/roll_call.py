"""Roll calls: one look into the launcher tells whether the execs of all ranks run.

A rank that dies ends its exec in the launcher (see ended_execs), and nothing else says so. Looks
into the workers come upon that by chance, up to half a minute later. One look into the launcher
sees all workers, so a roll call is held every few seconds where looks into workers can be fewer in
return: a job at rest is looked into no more often than it would be without roll calls. Some minutes
after a change a job is not at rest, and has both.

A roll call proves nothing. It brings the look into a worker forward whose exec is missing; what
makes a rank lost stays as it is: that look and a later look into the launcher, with all that
ended_execs asks for. An exec also ends where an API server that carries it does, and the rank may
live on: then the look into the worker says so.

A roll call is held only where an ended exec would prove a loss, and calls the workers whose ranks
were seen for a while; in a job at rest, all of them. While it misses an exec, and where a launcher
gives no answer, the workers are looked into as often as without roll calls, and the roll call
waits.

All times are seconds.
"""

from collections.abc import Collection

from mpijob_elastic.decide import ended_execs
from mpijob_elastic.decide.actions import LookIntoLauncher
from mpijob_elastic.decide.state import Moment, honest
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.model.kubexec import NO_ROLL_CALL, RollCall
from mpijob_elastic.model.pod import Worker

# From one roll call to the next: so many seconds, or so many for each worker that is called. In a
# launcher whose shell is dash, which reads a byte at a time, an exec may cost 10 ms of CPU time.
APART = 12.6
APART_EACH = 0.25
# To the next after one that was not complete.
SELDOM = 600.0
# So many looks in vain, and the worker is looked into no sooner than without a roll call.
MOST_IN_VAIN = 3
# From one look into a worker to the next in a job at rest that has roll calls. A job of FEWEST
# workers has as many looks as with a look into each worker every LOOK_SELDOM (lost_ranks), of which
# this is six times: no multiple of whole seconds either.
WORKERS_APART = 187.8
# Of two workers one proves nothing (ended_execs).
FEWEST = 3
# For so long a roll call shows that ranks run. Many jobs wait for their turns.
COUNTS_FOR = 120.0

_NOBODY: frozenset[str] = frozenset()


def look(moment: Moment, watched: Collection[Worker], *, at_rest: bool) -> Step[LookIntoLauncher]:
    """Return the roll call that is due, or when the next is due.

    watched: the workers whose ranks are looked at. at_rest: all of them have to be called.
    """
    hosts = _settled(moment, watched)
    least = len(moment.view.host_of) if at_rest else FEWEST - 1
    launcher = moment.view.launcher
    if launcher is None or launcher.held.hidden:
        return NO_STEP
    if len(moment.view.host_of) < FEWEST or len(hosts) < least:
        return NO_STEP
    at = honest(launcher.held.roll_call.asked_at, now=moment.now) + _pause(moment, hosts)
    if moment.now < at:
        return Step(again_at=at)
    roll_call = LookIntoLauncher(launcher=launcher, about=_NOBODY, called=hosts)
    return Step(roll_call, moment.now + max(APART, len(hosts) * APART_EACH))


def _pause(moment: Moment, hosts: dict[str, str]) -> float:
    """Return the seconds from the last roll call to the one of these workers.

    Whatever a launcher answers, and however ranks come and go, no two are closer than APART.
    """
    last = _last(moment)
    if last.hosts != hosts or last.is_complete:
        return max(APART, len(hosts) * APART_EACH)
    return SELDOM


def suffices(moment: Moment, watched: Collection[Worker]) -> bool:
    """Tell whether the last roll call shows that no rank is lost."""
    last, hosts = _last(moment), moment.view.host_of
    if not last.is_complete or last.hosts != hosts:
        return False
    if moment.now > last.asked_at + COUNTS_FOR:
        return False
    return _settled(moment, watched) == hosts


def missing(moment: Moment) -> frozenset[str]:
    """Return the pods that were not looked into since the last roll call, which missed an exec."""
    asked_at = _last(moment).asked_at
    return frozenset(one.name for one in _missed(moment) if one.probe.asked_at < asked_at)


def asked_in_vain(moment: Moment) -> frozenset[str]:
    """Return the pods whose exec the last roll call missed, and that have not answered since."""
    failed = [one for one in _missed(moment) if 0 < one.probe.failed < MOST_IN_VAIN]
    return frozenset(one.name for one in failed)


def _missed(moment: Moment) -> list[Worker]:
    """Return the workers that the last roll call missed, and that have the same host name still."""
    last, host_of = _last(moment), moment.view.host_of
    found = [worker for worker in moment.view.workers if worker.name in last.missing]
    return [one for one in found if last.hosts.get(one.name) == host_of.get(one.name)]


def _settled(moment: Moment, watched: Collection[Worker]) -> dict[str, str]:
    """Return the host names of the workers whose ranks run, and were seen for a while, by pod."""
    started_at = ended_execs.driver_started_at(moment.view)
    settled = [one.name for one in watched if ended_execs.is_settled(one, started_at)]
    return {pod: moment.view.host_of[pod] for pod in settled}


def _last(moment: Moment) -> RollCall:
    """Return the last roll call of the driver that runs, since the list changed last."""
    view = moment.view
    if view.launcher is None:
        return NO_ROLL_CALL
    last, memory = view.launcher.held.roll_call, view.memory
    times = (memory.added_at, memory.removed_at, view.launcher.facts.started_at or 0.0)
    asked_at = honest(last.asked_at, now=moment.now)
    if asked_at < max(honest(at, now=moment.now) for at in times):
        return NO_ROLL_CALL
    return last
