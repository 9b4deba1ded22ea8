"""Signs that stand on many of a job's nodes at once, whose workers leave one at a time.

A monitor that errs marks many nodes in the same minute, and a roll-out of nodes reaches all of them
in the end. If all workers left at once, training would fall to its least size for a fault that may
not exist, or for nodes that wait until they are drained. So another worker leaves only when the one
before trains again, or has had half an hour for that. Signs of nodes that go at a set time are not
held back: their workers would be killed. An eviction makes its worker leave all the same.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import moves
from mpijob_elastic.decide.state import FORGIVEN_AFTER, honest
from mpijob_elastic.decide.step import first
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts, Worker

# A sign is widespread on more than one of so many nodes, and on several nodes.
_ONE_OF = 3
SEVERAL = 2


@dataclass(frozen=True, kw_only=True)
class NextMoves:
    """Which workers under a widespread sign may leave now."""

    #: The names of the pods that may leave.
    may_leave: frozenset[str] = frozenset()
    #: When another pod may leave although the one before does not train (seconds since the epoch);
    #: None if no pod waits for that.
    until: float | None = None


def signs(pods: Iterable[tuple[PodFacts, str]]) -> frozenset[str]:
    """Return the signs that stand on more than a third of the nodes, and on several.

    `pods`: the workers of a job, each with the reason why it is to leave, now or later, if it may
    leave after others; else "".
    """
    nodes, under = set[str](), defaultdict[str, set[str]](set)
    for facts, why in pods:
        if facts.node:
            nodes.add(facts.node)
            under[sign(why)].add(facts.node)
    found = (why for why, where in under.items() if why and len(where) >= SEVERAL)
    return frozenset(why for why in found if len(under[why]) * _ONE_OF > len(nodes))


def sign(why: str) -> str:
    """Return the sign in a reason, without the value that it has on one node."""
    return why.partition("=")[0]


def turn(view: JobView, held: Iterable[Worker], *, now: float) -> NextMoves:
    """Return which of the workers under widespread signs may leave now."""
    held = list(held)
    begun = frozenset(worker.name for worker in held if _has_begun(view, worker))
    until = _away_until(view, now=now)
    if until is not None:
        return NextMoves(may_leave=begun, until=until)
    movable = [worker for worker in held if moves.may_move(view, worker)]
    following = max(movable, key=lambda worker: worker.index, default=None)
    if following is None:
        return NextMoves(may_leave=begun)
    return NextMoves(may_leave=begun | {following.name})


def _has_begun(view: JobView, worker: Worker) -> bool:
    """Tell whether this very pod has left the list in order to move."""
    last = view.memory.moved.get(worker.name)
    return last is not None and last.uid == worker.ref.uid and worker.name not in view.host_of


def _away_until(view: JobView, *, now: float) -> float | None:
    """Return until when others wait for a worker that has moved and does not train again.

    None if no worker is awaited.
    """
    times = (
        honest(last.at, now=now) + FORGIVEN_AFTER
        for name, last in view.memory.moved.items()
        if name not in view.host_of and _is_wanted(view, name)
    )
    return first(at for at in times if at > now)


def _is_wanted(view: JobView, name: str) -> bool:
    index = names.worker_index(name, job=view.name)
    return index is not None and index in view.wanted
