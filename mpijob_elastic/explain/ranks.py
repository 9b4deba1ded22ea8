"""Causes in a rank: of a worker that is published, and that the launcher knows of.

That a rank runs is seen by exec alone: something besides the pod's main process. A host whose rank has died is
blacklisted by its name, for ever unless horovodrun got --blacklist-cooldown-range
(horovod/runner/elastic/discovery.py, HostManager).
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import host_names
from mpijob_elastic.decide.lost_ranks import BACKOFFS, GIVEN_UP_FOR, LOST_AFTER, given_up
from mpijob_elastic.explain.cases import Case
from mpijob_elastic.explain.findings import Finding, Level
from mpijob_elastic.explain.listing import JOINING
from mpijob_elastic.model import durations


def frozen(case: Case) -> Finding | None:
    """The launcher still holds the exec of a rank that is gone."""
    if not any(one.pod == case.name for one in case.facts.frozen):
        return None
    return Finding(
        cause="frozen-exec", says="the launcher waits for a rank in a pod of this name that is gone (see above)"
    )


def trains(case: Case) -> Finding | None:
    """Something runs in it, or nobody could look."""
    look = case.look
    if look is None:
        reason = "nobody looked into it" if case.facts.looked else "without a look by exec no more can be told"
        return Finding(cause="trains", says=f"is published, and the launcher knows; {reason}", level=Level.FINE)
    if look.error:
        said = f"is published, and the launcher knows; whether a rank runs cannot be seen: {look.error}"
        return Finding(cause="trains", says=said, level=Level.FINE)
    if look.processes:
        return Finding(cause="trains", says=f"{', '.join(look.processes)} runs in it", level=Level.FINE)
    return None


def joining(case: Case) -> Finding | None:
    """The launcher was told a moment ago."""
    shown = case.known.shown_at
    if shown is None or case.now >= shown + JOINING:
        return None
    return Finding(cause="joining", says="is published; the launcher learned of it a moment ago", level=Level.WAITING)


def beyond_most(case: Case) -> Finding | None:
    """Horovodrun wants no more."""
    most = case.facts.launch.max_np if case.facts.launch else None
    if most is None or len(_training(case)) * case.view.slots < most:
        return None
    said = f"is published, but the others already have the {most} slots of horovodrun's --max-np"
    return Finding(cause="beyond-max-np", says=said, next_step=case.kubectl("edit mpijob", case.view.name))


def hopeless(case: Case) -> Finding | None:
    """It was given new host names in vain."""
    if case.worker is None or case.worker not in given_up(case.view, now=case.now):
        return None
    said = (
        f"lost its rank {len(BACKOFFS) + 1} times, whatever its host name: something is wrong with the pod or its node "
        f"{case.worker.node}. It is given up for {durations.render(GIVEN_UP_FOR)}, or until it is another pod"
    )
    return Finding(cause="given-up", says=said, next_step=case.kubectl("delete pod", case.name))


def lost(case: Case) -> Finding | None:
    """Others train, and it does not."""
    others = _training(case)
    if not others:
        return None
    said = (
        f"is published, but nothing except its main process runs in it while {len(others)} others train: most likely "
        f"its rank died, and Horovod does not use a host of this name {_how_long(case)}"
    )
    logs = case.kubectl("logs", names.launcher(case.view.name), "| grep -i blacklist")
    if case.facts.controller or not host_names.may_number(case.view):
        return Finding(cause="lost-rank", says=f"{said}; the controller cannot give it another", next_step=logs)
    said = f"{said}; the controller gives it another once it has seen this for {durations.render(LOST_AFTER)} or longer"
    return Finding(cause="lost-rank", says=said, next_step=logs, level=Level.WAITING)


def _how_long(case: Case) -> str:
    cooldown = case.facts.launch.cooldown if case.facts.launch else None
    return f"for up to {cooldown[1]} s (--blacklist-cooldown-range)" if cooldown else "for as long as the job runs"


def nobody(case: Case) -> Finding | None:
    """No worker trains."""
    return Finding(
        cause="nobody-trains",
        says="is published, but no rank runs in any worker that was looked into: horovodrun is still starting, waits "
        "for more slots, or has trouble",
        next_step=case.kubectl("logs", names.launcher(case.view.name), "--tail=50"),
    )


def _training(case: Case) -> list[str]:
    return [name for name, look in case.facts.looks.items() if look.processes and name in case.view.host_of]


ORDER = (frozen, trains, joining, beyond_most, hopeless, lost, nobody)
