"""`kubectl exec`s of a launcher that are frozen: they still run, though nothing is at their other end any more.

When a pod goes while a command runs in it, the client is often not told and waits for ever (kubernetes#129144, #89233).
Horovod's driver then waits for the end of a rank that is long gone, and the others wait for the driver.

That a pod is gone does not show it, for most execs end with their pods; so the launcher is looked into, where a pod
that was in its list is gone or another by now: once, and again while something is found. An exec takes a moment to end,
so one is frozen only where two looks find it.

Where the API says that its pod is no more, it is ended. Where a pod only should be gone, on a node that does not
answer, its rank may run on: then people are told how to end it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.decide import clock, phrases, stuck_pods
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model.execs import Exec, Held
from mpijob_elastic.model.job import JobView, Launcher, Worker
from mpijob_elastic.model.memory import Left

# Seconds after a pod left, or its successor came, until the first look; until the second one; and between later ones.
FIRST_LOOK = 10.0
SECOND_LOOK = 10.0
LATER_LOOKS = 60.0
# How often one is tried to be ended, each time after another look, SECOND_LOOK apart.
MOST_TRIES = 6
# Seconds by which an exec must be older than the pod of its name to be ended. When it was started is told by the clock
# of the launcher's node, which may go wrong; more than that much wrong would have been noticed.
SURELY_OLDER = 30.0
# A pod that left so many seconds ago, before a controller started anew, is not asked about any more.
PAST_AFTER = 600.0


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Whether to look into the launcher now, and what for; when to see again, where no look is due."""

    due: bool = False
    about: frozenset[str] = frozenset()
    wake_at: float | None = None


def watch(view: JobView, *, now: float) -> Watch:
    """Whether to look. This is no part of a plan, for it changes nothing."""
    launcher = _launcher(view)
    if launcher is None:
        return Watch()
    reasons = _reasons(view, now=now)
    times = [at for reason, at in reasons.items() if reason not in launcher.held.about]
    if launcher.held.suspects:
        times.append(launcher.held.asked_at + (SECOND_LOOK if _is_open(view, launcher.held) else LATER_LOOKS))
    first = min(times, default=None)
    if first is None or first > now:
        return Watch(wake_at=first)
    return Watch(due=True, about=frozenset(reason for reason, at in reasons.items() if at <= now))


def cut_off(view: JobView, execs: Iterable[Exec], *, now: float) -> tuple[Exec, ...]:
    """Those whose pod is gone or was to be long ago, has ended, lost its node, or is another of that name by now."""
    return tuple(one for one in execs if _is_cut_off(view.worker(one.pod), one, now=now))


def to_end(view: JobView, held: Held) -> tuple[Exec, ...]:
    """Those of the frozen ones that are to be ended now."""
    return endable(view, (one for one in held.frozen if held.tries.get(one, 0) < MOST_TRIES))


def endable(view: JobView, execs: Iterable[Exec]) -> tuple[Exec, ...]:
    """Those of these frozen ones that may be ended: no rank can be at the other end, wherever its node is."""
    if _launcher(view) is None:
        return ()
    ours = (one for one in execs if names.worker_index(one.pod, job=view.name) is not None)
    return tuple(one for one in ours if _has_no_pod(view.worker(one.pod), one))


def ended(view: JobView, execs: Iterable[Exec]) -> Note:
    """What is said of those that were ended."""
    message = (
        f"ended `kubectl exec` into {_pods(view, execs)} in {names.launcher(view.name)}: the pod or its node is gone, "
        "or it has ended or is another by now, which the exec had not noticed; the driver need not wait for it any more"
    )
    return Note(reason="FrozenExecEnded", message=message)


def notes(view: JobView, *, now: float) -> Iterator[Note]:
    """What is said for as long as some are frozen, and not ended by us."""
    frozen = cut_off(view, view.launcher.held.frozen, now=now) if view.launcher and view.driver_running else ()
    if frozen:
        yield Note(
            reason="FrozenExec", message=f"{words(view, frozen)}; end it: `{remedy(view, frozen)}`", warning=True
        )


def words(view: JobView, frozen: Iterable[Exec]) -> str:
    """What these mean."""
    return (
        f"{names.launcher(view.name)} still holds `kubectl exec` into {_pods(view, frozen)}, where nothing is at the "
        "other end any more; the driver waits for a rank that is gone, and training may stand still"
    )


def remedy(view: JobView, frozen: Iterable[Exec]) -> str:
    """The command that ends them, so that the driver goes on."""
    pids = " ".join(str(one.pid) for one in frozen)
    return f"kubectl -n {view.namespace} exec {names.launcher(view.name)} -- /bin/sh -c 'kill {pids}'"


def _is_open(view: JobView, held: Held) -> bool:
    """Whether something may change soon: one was found once, or is to be ended, or was ended just now."""
    return not set(held.suspects) <= set(held.frozen) or bool(to_end(view, held))


def _pods(view: JobView, execs: Iterable[Exec]) -> str:
    return phrases.listed(
        sorted({one.pod for one in execs}, key=lambda pod: names.worker_index(pod, job=view.name) or 0)
    )


def _launcher(view: JobView) -> Launcher | None:
    """The launcher, where its execs are any business of ours."""
    ours = view.elastic and not (view.foreign or view.handed_over or view.finished or view.deleting)
    launcher = view.launcher
    return launcher if launcher and ours and view.driver_running and not launcher.deleting else None


def _reasons(view: JobView, *, now: float) -> Mapping[str, float]:
    """Why the launcher may hold a frozen exec, and from when on it is to be asked."""
    left = {
        f"{pod} left at {left.at}": left.at
        for pod, left in view.memory.left.items()
        if _is_gone(view, pod, left, now=now)
    }
    anew = {f"{one.name} is {one.ref.uid}": one.created_at for one in view.workers if _is_successor(view, one)}
    due = {reason: at + FIRST_LOOK for reason, at in {**left, **anew}.items() if now - PAST_AFTER < at <= now}
    # At once: its exec does not end with its pod, which the garbage collector of pods takes a minute to remove.
    cut = (one for one in view.workers if one.node_gone and view.is_published(one))
    return due | {f"{one.name} is {one.ref.uid} on {one.node}, which is gone": now for one in cut}


def _is_gone(view: JobView, pod: str, left: Left, *, now: float) -> bool:
    worker = view.worker(pod)
    return worker is None or worker.ref.fingerprint != left.pod or _is_dead(worker, now=now)


def _is_successor(view: JobView, worker: Worker) -> bool:
    """Whether a pod before it may have had a rank: then it has a number in its host name."""
    host = view.memory.hosts.get(worker.name)
    return host is not None and host.incarnation > 0


def _is_cut_off(worker: Worker | None, one: Exec, *, now: float) -> bool:
    return worker is None or _is_dead(worker, now=now) or one.started_at + clock.SKEW < worker.created_at


def _has_no_pod(worker: Worker | None, one: Exec) -> bool:
    if worker is None or worker.terminated or worker.node_gone:
        return True
    return one.started_at + SURELY_OLDER < worker.created_at


def _is_dead(worker: Worker, *, now: float) -> bool:
    """Whether nothing can answer from it: it has ended, or its node is gone or has not said for long that it has."""
    is_lost = worker.deleting and worker.ends_at is not None and now >= worker.ends_at + stuck_pods.LATE_AFTER
    return worker.terminated or worker.node_gone or is_lost
