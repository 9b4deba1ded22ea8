"""Whether the launcher knows what is published, and since when.

The kubelet brings a new ConfigMap to the launcher when it likes, a minute late perhaps, unless the launcher pod is
touched. So a change counts from the touch on: nothing further is published and nobody is held to have drained before.
The launcher's annotation tells which change it was touched for and when, so a restart knows too.
"""

from __future__ import annotations

import math

from mpijob_elastic.decide import clock
from mpijob_elastic.decide.actions import RefreshLauncher
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.memory import Left


def sees_hosts(view: JobView) -> bool:
    """Whether the launcher that trains now can learn of a change; true where none trains."""
    return view.launcher is None or not view.driver_running or view.launcher.mounts_discovery


def may_delete(view: JobView) -> bool:
    """Whether workers may go at all while this launcher trains."""
    return sees_hosts(view) or view.policy.delete_without_discovery


def can_show(view: JobView) -> bool:
    """Whether there is a launcher that a touch helps: it trains, or may begin to with a list that was true before."""
    launcher = view.launcher
    if launcher is None or launcher.deleting or not launcher.mounts_discovery or not view.elastic:
        return False
    if not view.published_pods:
        return False  # a list that is empty, or somebody else's, need not be hurried along
    changed = view.memory.added_at > 0.0 or view.memory.removed_at > 0.0
    return view.driver_running or (view.driver_may_run and changed)


def mark(config: Config, *, at: float) -> str:
    """The annotation's value for a touch at that time: a name for this change of the list, and the time."""
    return f"{config.digest}@{at}"


def is_shown(view: JobView) -> bool:
    """Whether the launcher was touched for what is published now."""
    refreshed = view.launcher.refreshed if view.launcher else None
    return refreshed is not None and view.config is not None and refreshed.startswith(view.config.digest + "@")


def shown_at(view: JobView, *, now: float) -> float | None:
    """When the launcher was touched for what is published now; None where it was not."""
    if view.launcher is None or not is_shown(view):
        return None
    at = _number((view.launcher.refreshed or "").partition("@")[2])
    return at if at == clock.honest(at, now=now) else None


def known_since(view: JobView, left: Left, *, now: float) -> float | None:
    """When the launcher could know that a pod left; None while it cannot."""
    if known_at := clock.honest(left.known_at, now=now):
        return known_at
    if not can_show(view):
        return left.at
    shown = shown_at(view, now=now)
    return None if shown is None else max(left.at, shown)


def is_due(view: JobView, *, now: float) -> bool:
    """Whether the launcher has yet to be touched for what is published now."""
    return can_show(view) and shown_at(view, now=now) is None


def refresh(view: JobView, *, now: float) -> RefreshLauncher | None:
    """The touch that is due, or None."""
    if view.launcher is None or view.config is None or not is_due(view, now=now):
        return None
    return RefreshLauncher(launcher=view.launcher, digest=mark(view.config, at=now))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan  # equal to nothing
