"""Frozen `kubectl exec`s of a launcher: they still run although their pod is gone.

When a pod goes while a command runs in it, the client is often not told and waits for ever
(kubernetes#129144, #89233). Horovod's driver then waits for the end of a rank that is long gone,
and the other ranks wait for the driver.

A pod that is gone does not prove a frozen exec, because most execs end with their pods. So when a
pod that was in the list is gone or replaced, the controller looks into the launcher: once, and
again while a look finds something. An exec takes a moment to end, so an exec counts as frozen only
if two looks find it.

If the API says that the pod no longer exists, the controller ends the exec. If a pod only should be
gone, on a node that does not answer, its rank may run on: then a notice tells people how to end the
exec.

The same look shows whether the exec of a rank that is missed has ended (see ended_execs).
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from mpijob_elastic import names
from mpijob_elastic.decide import ended_execs
from mpijob_elastic.decide.actions import EndExecs, LookIntoLauncher, Note, normal, warning
from mpijob_elastic.decide.state import SKEW, JobState, honest, in_order
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import MOST_TRIES, Exec, HeldExecs
from mpijob_elastic.model.memory import Left
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, Worker

# Seconds from the leaving of a pod, or the creation of its successor, until the first look; then
# until the second look; and between later looks.
FIRST_LOOK = 10.0
# The same where all ranks are to end at a change: mpirun waits for the rank behind a frozen exec.
FIRST_LOOK_OF_A_RESTART = 2.0
SECOND_LOOK = 10.0
LATER_LOOKS = 60.0
# At most so many execs of a launcher are ended after a look, by one command. The command in the
# notice has the same limit.
MOST_AT_A_TIME = 32
# Seconds by which an exec must be older than the pod of its name to be ended. The start of the exec
# is a time of the clock of the launcher's node, which may be wrong; an error of more seconds than
# these would have been noticed.
SURELY_OLDER = 30.0
# A pod that left longer ago than so many seconds, before a restart of the controller, is no reason
# for a look.
PAST_AFTER = 600.0
# Seconds after the end of a pod's grace period by which a kubelet that is only slow is done.
LATE_AFTER = 60.0


def look(state: JobState) -> Step[LookIntoLauncher]:
    """Return the look into the launcher that is due, or when the next look is due."""
    launcher, now = _launcher(state.view), state.now
    if launcher is None:
        return NO_STEP
    reasons = _reasons(state)
    times = [at for reason, at in reasons.items() if reason not in launcher.held.about]
    if launcher.held.suspects:
        pause = SECOND_LOOK if _is_open(state.view, launcher.held) else LATER_LOOKS
        times.append(honest(launcher.held.asked_at, now=now) + pause)
    first = min(times, default=None)
    if first is None or first > now:
        return Step(again_at=first)
    about = frozenset(reason for reason, at in reasons.items() if at <= now)
    return Step(LookIntoLauncher(launcher=launcher, about=about))


def end(state: JobState) -> EndExecs | None:
    """Return the action that ends execs found frozen by two looks, once after each look."""
    launcher = _launcher(state.view)
    if launcher is None:
        return None
    due = _due(state.view, launcher)
    if due:
        return EndExecs(launcher=launcher, execs=due[:MOST_AT_A_TIME])
    return None


def cut_off(view: JobView, execs: Iterable[Exec], *, now: float) -> tuple[Exec, ...]:
    """Return the execs whose pod is gone, finished, stuck in deletion, unreachable or replaced.

    An exec into a pod of another job is none of them: a launcher may hold execs that are no ranks.
    """
    ours = _of_workers(view, execs)
    return tuple(found for found in ours if _is_cut_off(view.worker(found.pod), found, now=now))


def endable(view: JobView, execs: Iterable[Exec]) -> tuple[Exec, ...]:
    """Return the frozen execs that may be ended.

    No rank can be at their other end, whatever has become of the node.
    """
    if _launcher(view) is None:
        return ()
    ours = _of_workers(view, execs)
    return tuple(found for found in ours if _has_no_pod(view.worker(found.pod), found))


def is_over(view: JobView, worker: Worker) -> bool:
    """Tell whether the launcher is done with this worker, whose node is gone.

    A look for this reason has found no exec into the worker, or we have ended each of them.
    """
    launcher = _launcher(view)
    if launcher is None:
        return True
    if worker.name in launcher.held.unended:
        return False
    return _cut_off_reason(worker) in launcher.held.about


def ended(view: JobView, execs: Iterable[Exec]) -> Note:
    """Return the note on execs that were ended."""
    message = (
        f"{names.launcher(view.name)}: ended frozen `kubectl exec` into {_pods(view, execs)}, "
        "because the pod finished, was replaced, or is gone with its node. The driver no longer "
        "waits for it"
    )
    return normal("FrozenExecEnded", message)


def notes(state: JobState) -> Iterator[Note]:
    """Yield the warning while execs are frozen that we are not about to end.

    Or say that nobody can look for them.
    """
    view, launcher = state.view, state.view.launcher
    if launcher is None or not view.driver_running:
        return
    if launcher.held.hidden:
        yield warning(
            "LauncherSharesProcesses",
            f"{launcher.ref.name} shares its processes with its node or with other containers "
            "(hostPID, shareProcessNamespace), and its image cannot read /proc/self/cgroup, so "
            "the controller does not look for frozen `kubectl exec`s. Without this field in the "
            "launcher's template the controller looks for them",
        )
    if not launcher.held.frozen:
        return
    due = {*_due(view, launcher)}
    frozen = [
        found for found in cut_off(view, launcher.held.frozen, now=state.now) if found not in due
    ]
    if frozen:
        pids = " ".join(str(found.pid) for found in islice(frozen, MOST_AT_A_TIME))
        container = f" -c {launcher.container}" if launcher.container else ""
        step = (
            f"kubectl -n {view.namespace} exec {launcher.ref.name}{container} "
            f"-- /bin/sh -c 'kill {pids}'"
        )
        ends = len(endable(view, frozen)) == len(frozen)
        yield warning(
            "FrozenExec",
            f"{launcher.ref.name} holds a frozen `kubectl exec` into {_pods(view, frozen)}, which "
            "no longer answers. The driver waits for a rank that is gone, so training may be "
            f"stuck. To end it: `{step}`",
            next_step=step,
            detail="a controller that runs ends it within a minute" if ends else "",
        )


def _of_workers(view: JobView, execs: Iterable[Exec]) -> Iterator[Exec]:
    """Yield the execs into pods that have the name of a worker of this job."""
    return (found for found in execs if names.worker_index(found.pod, job=view.name) is not None)


def _due(view: JobView, launcher: Launcher) -> tuple[Exec, ...]:
    held = launcher.held
    if held.tried_at < held.asked_at:
        return _to_end(view, held)
    return ()


def _to_end(view: JobView, held: HeldExecs) -> tuple[Exec, ...]:
    return endable(view, [found for found in held.frozen if held.tries.get(found, 0) < MOST_TRIES])


def _is_open(view: JobView, held: HeldExecs) -> bool:
    """Tell whether something may change soon.

    An exec was found once only, or is to be ended, or was ended just now.
    """
    return not set(held.suspects) <= set(held.frozen) or bool(_to_end(view, held))


def _pods(view: JobView, execs: Iterable[Exec]) -> str:
    return listed(in_order((found.pod for found in execs), job=view.name))


def _launcher(view: JobView) -> Launcher | None:
    """Return the launcher if it is for us to look after its execs, else None."""
    launcher = view.launcher
    if not view.elastic or view.foreign or view.handed_over:
        return None
    if view.facts.finished or view.facts.deleting:
        return None
    if launcher is None or launcher.facts.deleting or not view.driver_running:
        return None
    return launcher


def _reasons(state: JobState) -> Mapping[str, float]:
    """Return each reason why the launcher may hold a frozen exec, with the time of its look."""
    view, now = state.view, state.now
    times: dict[str, float] = {}
    for pod, left in view.memory.left.items():
        if _has_gone(view.worker(pod), left, now=now):
            times[f"{pod} left at {left.at}"] = left.at
    for pod, host in view.memory.hosts.items():
        # A number in the host name says that an earlier pod of the worker may have had a rank.
        worker = view.worker(pod) if host.incarnation > 0 else None
        if worker:
            times[f"{worker.name} is {worker.ref.uid}"] = worker.facts.created_at
    recent = {reason: at for reason, at in times.items() if now - PAST_AFTER < at <= now}
    wait = FIRST_LOOK if view.driver.keeps_ranks else FIRST_LOOK_OF_A_RESTART
    due = {reason: at + wait for reason, at in recent.items()}
    for known in state.workers:
        if known.published and known.pod.facts.node_gone_at:
            # The look into a worker whose node is gone is due at once: the exec does not end by
            # itself, and the worker leaves the list only after the exec has ended (see lost_ranks).
            due[_cut_off_reason(known.pod)] = now
    if any(one.pod.probe.idle_since and one.pod.probe.busy_since for one in state.workers):
        due.update(ended_execs.reasons(state))
    return due


def _has_gone(worker: Worker | None, left: Left, *, now: float) -> bool:
    """Tell whether the pod that left the list is gone, or nothing in it can answer."""
    if worker is None or worker.fingerprint != left.pod:
        return True
    return _is_dead(worker, now=now)


def _cut_off_reason(worker: Worker) -> str:
    return f"{worker.name} is {worker.ref.uid} on {worker.facts.node}, which is gone"


def _is_cut_off(worker: Worker | None, found: Exec, *, now: float) -> bool:
    if worker is None or _is_dead(worker, now=now):
        return True
    return found.started_at + SKEW < worker.facts.created_at


def _has_no_pod(worker: Worker | None, found: Exec) -> bool:
    if worker is None or worker.terminated or worker.facts.node_gone_at:
        return True
    return found.started_at + SURELY_OLDER < worker.facts.created_at


def _is_dead(worker: Worker, *, now: float) -> bool:
    """Tell whether nothing in the pod can answer.

    The pod has ended, its node is gone, or its end is long overdue.
    """
    if worker.terminated or worker.facts.node_gone_at > 0.0:
        return True
    if not worker.facts.deleting or worker.facts.ends_at is None:
        return False
    return now >= worker.facts.ends_at + LATE_AFTER
