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
    if launcher is None:
        return ()
    of_launcher = PodSet(name=LAUNCHER, count=1, like=launcher.ref)
    if not workers:
        return (of_launcher,)
    if first is None:
        return ()
    return of_launcher, PodSet(name=WORKERS, count=workers, like=first.ref)


def ending(view: JobView) -> list[Launcher | Worker]:
    """Return the pods of a finished job that still run.

    Empty if the user wants the workers to stay, perhaps for ever (cleanPodPolicy).
    """
    if view.facts.clean_pod_policy not in ("Running", "All"):
        return []
    return [pod for pod in view.pods if not is_idle(pod)]


def nothing_runs(view: JobView) -> bool:
    """Tell whether all pods of a job wait at a gate or have ended."""
    if view.may_run_unseen:
        return False
    return all(map(is_idle, view.pods))


def is_idle(pod: Launcher | Worker) -> bool:
    """Tell whether a pod holds nothing: it waits at a gate, or has ended."""
    if isinstance(pod, Launcher) and pod.phase is LauncherPhase.FINISHED:
        return True
    return pod.facts.idle
