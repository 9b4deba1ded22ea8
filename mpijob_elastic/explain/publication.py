"""Causes between a Ready pod and the launcher: the Role, the host list, and the launcher's copy of the list."""

from __future__ import annotations

from mpijob_elastic.decide import launcher_refresh
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, fine, waiting, wrong
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import LauncherPhase


def inelastic(case: Case) -> Finding | None:
    """Report a worker of a job that is not elastic: no host list decides about it."""
    if case.view.elastic:
        return None
    said = "is Ready; the job is not elastic, so mpirun alone decides what runs in it"
    return no_launcher(case) or fine("trains", said)


def no_right(case: Case) -> Finding | None:
    """Report a worker that the launcher may not exec into."""
    role = case.view.role
    if not case.facts.role_readable or (role is not None and case.name in role.exec_names):
        return None
    return _due(case, "no-right", "is not in the launcher's Role yet; the controller adds it next")


def disrupted(case: Case) -> Finding | None:
    """Report a worker whose node or pod is about to go."""
    why = (case.worker.disruption if case.worker else "") or case.facts.threats.get(case.name, "")
    if not why or case.published:
        return None
    said = f"is leaving: its node or pod is being removed ({why}); the operator recreates it on another node"
    return waiting("disrupted", said)


def unpublished(case: Case) -> Finding | None:
    """Report a worker that discover_hosts.sh does not name yet."""
    if case.published:
        return None
    if not case.facts.role_readable:
        said = "is not in discover_hosts.sh yet; to see when it will be, you need the right to read Roles"
        return waiting("not-published", said, step=case.controller_log)
    wake_at = case.following.wake_at
    if case.name not in case.following.hosts and wake_at is not None:
        wait = durations.render(max(0.0, wake_at - case.now))
        why = "an earlier change to settle, for more new workers, or for the job to recover from a loss"
        return waiting("settling", f"joins discover_hosts.sh in {wait}: the controller waits for {why}")
    return _due(case, "not-published", "is not in discover_hosts.sh yet; the controller adds it next")


def no_launcher(case: Case) -> Finding | None:
    """Report a worker without a launcher that could use it."""
    if case.view.driver_running:
        return None
    launcher = case.view.launcher
    is_over = launcher is not None and launcher.phase is LauncherPhase.FINISHED
    said = "is Ready, but the launcher has ended" if is_over else "is Ready and waits for the launcher (see above)"
    return waiting("no-launcher", said)


def blind(case: Case) -> Finding | None:
    """Report a worker that was added after a launcher without discover_hosts.sh had started."""
    if launcher_refresh.sees_hosts(case.view):
        return None
    if f"{case.name} " in (case.view.config.hostfile if case.view.config else ""):
        return None  # the launcher has known it from its start, or nobody knows better
    return wrong("blind-launcher", "is not used: the launcher has no discover_hosts.sh to find it in (see above)")


def not_refreshed(case: Case) -> Finding | None:
    """Report a worker in a list that the launcher was not touched for."""
    if not case.refresh_due:
        return None
    return _due(case, "launcher-not-refreshed", "is published; the controller refreshes the launcher next")


def _due(case: Case, cause: str, says: str) -> Finding:
    if case.facts.controller:
        return wrong(cause, f"{says}, but {case.facts.controller}", step=case.controller_log)
    return waiting(cause, says)


ORDER = (inelastic, no_right, disrupted, unpublished, no_launcher, blind, not_refreshed)
