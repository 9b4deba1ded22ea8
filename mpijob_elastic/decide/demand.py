"""Demand: the requests of a job's pods to a queue, and the pods that still run."""

from mpijob_elastic.decide.actions import PodSet
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Worker

# The names of the sets of pods.
LAUNCHER, WORKERS = "launcher", "workers"


def firsts(view: JobView) -> tuple[Launcher | None, Worker | None]:
    """Return the pods that stand for all: the launcher and the first worker."""
    return view.launcher, view.worker(next(iter(view.wanted_names), ""))


def pod_sets(view: JobView, *, workers: int) -> tuple[PodSet, ...]:
    """Return the requests of the launcher and so many workers; () before pods can be read."""
    launcher, first = firsts(view)
    if launcher is None or (first is None and workers):
        return ()
    asked = PodSet(name=LAUNCHER, count=1, like=launcher.ref)
    return (
        (asked, PodSet(name=WORKERS, count=workers, like=first.ref))
        if first and workers
        else (asked,)
    )


def ending(view: JobView) -> list[Launcher | Worker]:
    """Return the pods of a finished job that still run.

    Empty if the user wants the workers to stay, perhaps for ever (cleanPodPolicy).
    """
    stays = view.facts.clean_pod_policy not in ("Running", "All")
    return [] if stays else [pod for pod in view.pods if _runs_on(pod)]


def nothing_runs(view: JobView) -> bool:
    """Tell whether all pods of a job wait at a gate."""
    return all(pod.facts.gates for pod in view.pods)


def _runs_on(pod: Launcher | Worker) -> bool:
    is_over = pod.phase is LauncherPhase.FINISHED if isinstance(pod, Launcher) else pod.terminated
    return not (is_over or pod.facts.gates)
