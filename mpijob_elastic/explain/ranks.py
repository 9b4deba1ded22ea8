"""Causes in a rank of a published worker that the launcher knows.

Only exec shows that a rank runs: a process beside the pod's main process. Horovod blacklists the name of a host whose
rank has died, for good unless horovodrun got --blacklist-cooldown-range (horovod/runner/elastic/discovery.py,
HostManager).
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import host_names
from mpijob_elastic.decide.lost_ranks import BACKOFFS, GIVEN_UP_FOR, LOST_AFTER, given_up
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, fine, waiting, wrong
from mpijob_elastic.model import durations

# Seconds from a touch until a driver has started ranks: the kubelet takes 0.7 s, discovery 1 s; the rest is to spare.
JOINING = 20.0


def frozen(case: Case) -> Finding | None:
    """Report a worker whose earlier pod the launcher still holds an exec into."""
    if not any(held.pod == case.name for held in case.facts.frozen):
        return None
    said = "is blocked: the launcher still waits for a rank in a pod of this name that is gone (see above)"
    return wrong("frozen-exec", said)


def trains(case: Case) -> Finding | None:
    """Report a worker in which something runs, or which nobody could look into."""
    look = case.look
    if look is None:
        reason = "it was not checked by exec" if case.facts.looked else "only exec can show whether a rank runs"
        return fine("trains", f"is published, and the launcher knows it; {reason}")
    if look.error:
        return fine("trains", f"is published, and the launcher knows it; exec shows no more: {look.error}")
    return fine("trains", f"is training: {', '.join(look.processes)}") if look.processes else None


def joining(case: Case) -> Finding | None:
    """Report a worker that the launcher has known for a moment only."""
    shown = case.shown_at
    if shown is None or case.now >= shown + JOINING:
        return None
    return waiting("joining", "is published; the launcher was refreshed a moment ago")


def beyond_max_np(case: Case) -> Finding | None:
    """Report a worker beyond horovodrun's --max-np."""
    most = case.facts.launch.max_np if case.facts.launch else None
    if most is None or len(_training(case)) * case.view.slots < most:
        return None
    said = f"is published, but other workers already fill the {most} slots of horovodrun's --max-np"
    return wrong("beyond-max-np", said, step=case.kubectl("edit mpijob", case.view.name))


def hopeless(case: Case) -> Finding | None:
    """Report a worker that lost its rank under every host name it was given."""
    if case.worker is None or case.worker not in given_up(case.view, now=case.now):
        return None
    said = (
        f"lost its rank {len(BACKOFFS) + 1} times under different host names: something is wrong with the pod or its "
        f"node {case.worker.node}. The controller leaves it alone for {durations.render(GIVEN_UP_FOR)}, or until the "
        "pod is replaced"
    )
    return wrong("given-up", said, step=case.kubectl("delete pod", case.name))


def lost(case: Case) -> Finding | None:
    """Report a worker that does not train while others do."""
    others = _training(case)
    if not others:
        return None
    said = (
        f"is published, but only its main process runs in it while {len(others)} others train: most likely its rank "
        f"died, and Horovod does not use a host of this name {_how_long(case)}"
    )
    logs = case.kubectl("logs", names.launcher(case.view.name), "| grep -i blacklist")
    if case.facts.controller or not host_names.may_number(case.view):
        return wrong("lost-rank", f"{said}; the controller cannot give it a new host name", step=logs)
    said = (
        f"{said}; the controller gives it a new host name after {durations.render(LOST_AFTER)} or more without a rank"
    )
    return waiting("lost-rank", said, step=logs)


def _how_long(case: Case) -> str:
    cooldown = case.facts.launch.cooldown if case.facts.launch else None
    return f"for up to {cooldown[1]} s (--blacklist-cooldown-range)" if cooldown else "for as long as the job runs"


def nobody_trains(case: Case) -> Finding | None:
    """Report a worker of a job in which no worker trains."""
    said = (
        "is published, but no rank runs in any worker that was checked: horovodrun is still starting, waits for more "
        "slots, or has failed"
    )
    return wrong("nobody-trains", said, step=case.kubectl("logs", names.launcher(case.view.name), "--tail=50"))


def _training(case: Case) -> list[str]:
    return [name for name, look in case.facts.looks.items() if look.processes and name in case.view.host_of]


ORDER = (frozen, trains, joining, beyond_max_np, hopeless, lost, nobody_trains)
