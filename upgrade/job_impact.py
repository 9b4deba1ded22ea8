"""The effect of an upgrade on each existing job; pure.

A pod's volumes cannot be changed, so a launcher that started without the host list never sees it and must be recreated.
The controller itself recreates a launcher that has not started yet, because nothing is lost.
"""

from dataclasses import dataclass
from enum import StrEnum

from mpijob_elastic import names
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, LauncherPhase


class Readiness(StrEnum):
    """The way in which a job becomes elastic."""

    ELASTIC = "elastic"
    LIVE = "live"
    RESTART = "restart"
    FIXED = "fixed"
    FINISHED = "finished"
    FOREIGN = "foreign"


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """The effect on a job; why: in words, with the cost of a restart."""

    namespace: str
    name: str
    readiness: Readiness
    why: str


def adoption(view: JobView, *, now: float) -> Adoption:
    """Return the effect on the job; `now` in seconds since the epoch."""
    readiness, why = _readiness(view, now=now)
    return Adoption(namespace=view.namespace, name=view.name, readiness=readiness, why=why)


def cost(launcher: Launcher, *, now: float) -> str:
    """Say what is lost when this launcher is recreated."""
    trained = durations.render(max(0.0, now - launcher.facts.created_at))
    return f"its launcher has run for {trained}; training starts again from its last checkpoint, if it has one"


def _readiness(view: JobView, *, now: float) -> tuple[Readiness, str]:
    if view.facts.finished or view.facts.deleting:
        return Readiness.FINISHED, "it has ended"
    if view.foreign or view.handed_over:
        return Readiness.FOREIGN, f"{view.foreign or 'another operator manages it'}; it is left alone"
    if not (view.elastic or view.facts.elastic):
        return Readiness.FIXED, f"its launcher names no {names.KEY_DISCOVER_HOSTS}; nothing changes for it"
    if view.launcher is None or view.launcher.phase is LauncherPhase.WAITING:
        return Readiness.LIVE, "its launcher has not started"
    return _with_launcher(view, view.launcher, now=now)


def _with_launcher(view: JobView, launcher: Launcher, *, now: float) -> tuple[Readiness, str]:
    if launcher.phase is LauncherPhase.FINISHED:
        return Readiness.FINISHED, "its launcher has ended"
    if launcher.facts.mounts_discovery:
        managed = view.config is not None and view.config.memory is not None
        return (Readiness.ELASTIC, "managed") if managed else (Readiness.LIVE, "its launcher mounts the host list")
    if launcher.phase is LauncherPhase.DELIVERING:
        return Readiness.LIVE, "its launcher has not started"
    return Readiness.RESTART, f"{cost(launcher, now=now)}: {names.adopt(view.name, view.namespace)}"
