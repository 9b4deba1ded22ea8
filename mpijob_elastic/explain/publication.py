"""Causes between a Ready pod and the launcher: the Role, the host list, and the launcher's copy of the list."""

from collections.abc import Iterator

from mpijob_elastic.explain import ranks
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.findings import Finding, waiting, wrong
from mpijob_elastic.model import durations
from mpijob_elastic.model.pod import LauncherPhase


def causes(case: Case) -> Iterator[Finding]:
    """Yield the causes that hold; the first counts."""
    view, role = case.view, case.view.role
    # A worker of the hostfile has been known to the launcher from its start.
    if view.blind and f"{case.name} " not in (view.config.facts.hostfile if view.config else ""):
        yield wrong(
            "launcher-without-discovery", "is not used: the launcher has no discover_hosts.sh to find it in (see above)"
        )
    if not view.elastic:
        yield from _no_launcher(case)
        yield from ranks.seen(case, "is Ready, and the job is not elastic")
    if case.facts.role_readable and (role is None or case.name not in role.exec_names):
        yield _due(case, "no-right", "is not in the launcher's Role yet; the controller adds it next")
    if case.name not in case.view.host_of:
        yield _unpublished(case)
    yield from _no_launcher(case)
    if case.state.launcher.refresh_due:
        yield _due(case, "launcher-not-refreshed", "is published; the controller refreshes the launcher next")


def _unpublished(case: Case) -> Finding:
    if case.pod and case.pod.facts.disruption:
        why = f"its node or pod is being removed ({case.pod.facts.disruption})"
        said = f"is leaving: {why}; the operator recreates it on another node"
        return waiting("disrupted", said)
    if case.view.facts.sizes and case.following.wake_at is None and case.name not in case.following.hosts:
        return waiting("size-incomplete", "waits: the job may have certain sizes only, and the next is not complete")
    said = "is not in discover_hosts.sh yet"
    if not case.facts.role_readable:
        said += "; to see when it will be, you need the right to read Roles"
        return waiting("not-published", said, next_step=case.controller_log)
    wake_at = case.following.wake_at
    if case.name in case.following.hosts or wake_at is None:
        return _due(case, "not-published", f"{said}; the controller adds it next")
    wait = durations.render(max(0.0, wake_at - case.state.now))
    why = "an earlier change to settle, or for more new workers"
    if case.state.resume_at > case.state.now:
        why = "the other ranks to get over a loss: Gloo's timeout (horovodrun --gloo-timeout-seconds) and 10 s"
    return waiting("settling", f"joins discover_hosts.sh in {wait}: the controller waits for {why}")


def _no_launcher(case: Case) -> Iterator[Finding]:
    launcher = case.view.launcher
    if launcher and launcher.phase is LauncherPhase.FINISHED:
        yield waiting("no-launcher", "is Ready, but the launcher has ended")
    elif not case.view.driver_running:
        yield waiting("no-launcher", "is Ready and waits for the launcher (see above)")


def _due(case: Case, cause: str, says: str) -> Finding:
    if case.facts.controller:
        return wrong(cause, f"{says}, but {case.facts.controller}", next_step=case.controller_log)
    return waiting(cause, says)
