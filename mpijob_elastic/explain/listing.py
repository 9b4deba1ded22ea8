"""Causes between a Ready pod and the launcher: the Role, the host list, and whether the launcher has seen it."""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide import launcher_refresh
from mpijob_elastic.explain.cases import Case
from mpijob_elastic.explain.findings import Finding, Level
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import LauncherPhase

# Seconds from a touch until a driver has started ranks: the kubelet takes 0.7 s, discovery 1 s; the rest is to spare.
JOINING = 20.0


def plain(case: Case) -> Finding | None:
    """A job that is not elastic has no host list to wait for."""
    if case.view.elastic:
        return None
    return before_start(case) or _trains("is Ready; the job is not elastic, so mpirun alone decides what runs in it")


def no_right(case: Case) -> Finding | None:
    """The launcher may not exec into it."""
    role = case.view.role
    if not case.facts.role_readable or (role is not None and case.name in role.exec_names):
        return None
    said = "the launcher's Role does not name it yet; the controller writes it next"
    return _due(case, "no-right", said)


def disrupted(case: Case) -> Finding | None:
    """Its node or pod is about to go, so it leaves first."""
    why = (case.worker.disruption if case.worker else "") or case.facts.threats.get(case.name, "")
    if not why or case.published:
        return None
    said = f"leaves before it is taken away ({why}); the operator creates it anew elsewhere"
    return Finding(cause="disrupted", says=said, level=Level.WAITING)


def unlisted(case: Case) -> Finding | None:
    """discover_hosts.sh does not name it yet."""
    if case.published:
        return None
    if not case.facts.role_readable:
        said = "discover_hosts.sh does not name it yet; when it will cannot be told without the right to read Roles"
        return Finding(cause="not-published", says=said, next_step=_controller_log(case), level=Level.WAITING)
    if case.name not in case.known.following.hosts and case.known.following.wake_at is not None:
        wait = durations.render(max(0.0, case.known.following.wake_at - case.now))
        why = "an earlier change settles, others of its kind are gathered, or others get over a loss"
        said = f"discover_hosts.sh names it in {wait}: {why}"
        return Finding(cause="settling", says=said, level=Level.WAITING)
    return _due(case, "not-published", "discover_hosts.sh does not name it yet; the controller writes it next")


def before_start(case: Case) -> Finding | None:
    """There is no launcher that could train."""
    if case.view.driver_running:
        return None
    launcher = case.view.launcher
    is_over = launcher is not None and launcher.phase is LauncherPhase.FINISHED
    said = "is Ready, but the launcher has ended" if is_over else "is Ready and waits for the launcher (see above)"
    return Finding(cause="no-launcher", says=said, level=Level.WAITING)


def blind(case: Case) -> Finding | None:
    """The launcher cannot see the list."""
    if launcher_refresh.sees_hosts(case.view):
        return None
    if f"{case.name} " in (case.view.config.hostfile if case.view.config else ""):
        return None  # it has been there since the launcher started, or nobody knows better
    said = "the launcher has no discover_hosts.sh, so it never learns of this worker (see above)"
    return Finding(cause="blind-launcher", says=said)


def untold(case: Case) -> Finding | None:
    """The launcher was not touched for the newest list."""
    if not case.known.untold:
        return None
    return _due(case, "launcher-untold", "is published; the launcher is told next")


def _due(case: Case, cause: str, says: str) -> Finding:
    if case.facts.controller:
        return Finding(cause=cause, says=f"{says}, but {case.facts.controller}", next_step=_controller_log(case))
    return Finding(cause=cause, says=says, level=Level.WAITING)


def _controller_log(case: Case) -> str:
    return f"kubectl -n {case.facts.home} logs deployment/{names.CONTROLLER}"


def _trains(says: str) -> Finding:
    return Finding(cause="trains", says=says, level=Level.FINE)


ORDER = (plain, no_right, disrupted, unlisted, before_start, blind, untold)
