"""Causes in a rank of a published worker that the launcher knows.

Only exec shows that a rank runs: a process beside the pod's main process. Horovod blacklists the name of a host whose
rank has died, for good unless horovodrun got --blacklist-cooldown-range (horovod/runner/elastic/discovery.py,
HostManager).
"""

from collections.abc import Iterator

from mpijob_elastic.decide.lost_ranks import LOST_AFTER
from mpijob_elastic.decide.notices import given_up
from mpijob_elastic.decide.state import Standing
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, Level, fine, waiting, wrong
from mpijob_elastic.model import durations

# Seconds from a touch until a driver has started ranks: the kubelet takes 0.7 s, discovery 1 s; the rest is to spare.
JOINING = 20.0


def causes(case: Case) -> Iterator[Finding]:
    """Yield the causes that hold; the first counts."""
    if case.view.launcher and any(held.pod == case.name for held in case.view.launcher.held.frozen):
        said = "is blocked: the launcher still waits for a rank in a pod of this name that is gone (see above)"
        yield wrong("frozen-exec", said)
    yield from seen(case, "is listed, and the launcher knows it")
    shown_at = case.state.launcher.shown_at
    if shown_at is not None and case.state.now < shown_at + JOINING:
        yield waiting("joining", "is published; the launcher was refreshed a moment ago")
    training = sum(bool(look.processes) and name in case.view.host_of for name, look in case.facts.looks.items())
    most = case.facts.launch.max_np if case.facts.launch else None
    if most is not None and training * case.view.facts.slots >= most:
        said = f"is published, but other workers already fill the {most} slots of horovodrun's --max-np"
        yield wrong("beyond-max-np", said, next_step=case.on_job("edit"))
    if case.worker and case.worker.standing is Standing.GIVEN_UP:
        yield case.noted(given_up(case.view, case.worker))
    if training:
        yield _lost(case, training)
    said = (
        "is published, but no rank runs in any worker that was checked: horovodrun is still starting, waits for more "
        "slots, or has failed"
    )
    yield wrong("nobody-trains", said, next_step=case.kubectl("logs", case.launcher, "--tail=50"))


def seen(case: Case, standing: str) -> Iterator[Finding]:
    """Yield that a rank runs in the worker, or that nobody knows; nothing where exec has shown that none runs."""
    if why := unseen(case):
        said = f"{standing}; whether it trains is not known: {why}"
        yield Finding("not-known", said, case.kubectl("logs", case.launcher, "--tail=50"), Level.UNKNOWN)
    elif processes := case.facts.looks[case.name].processes:
        yield fine("trains", f"is training: {', '.join(processes)}")


def unseen(case: Case) -> str:
    """Return why nobody knows whether a rank runs in the worker, "" where exec has shown it."""
    looks = case.facts.looks
    if not looks:
        return "only exec can show that, and --no-exec was given"
    if (look := looks.get(case.name)) is None:
        return f"exec looked only into {len(looks)} other workers"
    shows_none = not (look.processes or look.error or case.view.elastic)
    return "exec shows no rank, and the launcher alone decides where ranks run" if shows_none else look.error


def _lost(case: Case, training: int) -> Finding:
    cooldown = case.facts.launch.cooldown if case.facts.launch else None
    how_long = f"for up to {cooldown[1]} s (--blacklist-cooldown-range)" if cooldown else "for as long as the job runs"
    said = (
        f"is published, but only its main process runs in it while {training} others train: most likely its rank died, "
        f"and Horovod does not use a host of this name {how_long}; the controller"
    )
    logs = case.kubectl("logs", case.launcher, "| grep -i blacklist")
    if case.facts.controller or not case.state.may_number:
        return wrong("lost-rank", f"{said} cannot give it a new host name", next_step=logs)
    after = durations.render(LOST_AFTER)
    return waiting("lost-rank", f"{said} gives it a new host name after {after} or more without a rank", next_step=logs)
