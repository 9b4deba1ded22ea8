"""Notices: the reasons why nothing happens to a job, told to its user.

Each notice is an Event and a line `Reason: message` in an annotation of the job. The annotation
keeps a restart from repeating an Event, and tells at a glance what the job waits for.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from mpijob_elastic import names
from mpijob_elastic.decide import (
    capability,
    frozen_execs,
    handover,
    launcher_start,
    moves,
    pace,
    parking,
)
from mpijob_elastic.decide.actions import Note, TellUser, normal, warning
from mpijob_elastic.decide.frozen_execs import LATE_AFTER
from mpijob_elastic.decide.state import (
    REFUSED_OFTEN,
    RELAUNCHED,
    RENAMED,
    REPLACED,
    SKEW,
    JobState,
    Standing,
    WorkerState,
    honest,
)
from mpijob_elastic.decide.step import NO_STEP, NOTHING_TOLD, Step, Told, first, first_after
from mpijob_elastic.decide.wishes import Suspend
from mpijob_elastic.model import bounds, elastic_line, phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.operator_types import NO_SIZE
from mpijob_elastic.model.phrases import MOST_NAMED, listed
from mpijob_elastic.model.pod import NOT_STARTED, Launcher, Worker

# A success within so many seconds after a change of the host list is suspicious: the ring forms
# again within some seconds, or after a long step.
SUSPICIOUS_WITHIN = 60.0
# Seconds for which the end of a job is news; a controller that was away for longer says nothing.
NEWS_FOR = 900.0
# A wanted worker that is not Ready for so many seconds is worth a notice.
PENDING_AFTER = 120.0
# A pod that is missing for so many seconds is worth a notice: the operator creates pods within
# milliseconds, or waits.
REFUSED_AFTER = 30.0
# At most so many workers that are given up get a notice, because an annotation has limits.
MOST_GIVEN_UP = 8
# At most so many characters of the API server's reason are quoted: a policy engine may quote whole
# policies, and an Event holds 1024.
LONGEST_REASON = 500

REFUSED = "Refused"
REFRESH_REFUSED = "RefreshRefused"
NOT_ELASTIC = "NotElastic"
# [operator] The pause of its queue starts at 5 ms and doubles with each refusal and with each event
# of the job, up to 1,000 s.
AGAIN = "The operator tries again at most 1,000 s after each refusal"


def tell(state: JobState) -> Step[TellUser]:
    """Return the change of the notices that is due, and when a notice may become due.

    A job without a status is left alone: [operator] keeps the condition Created in memory until its
    first write of the status, and loses the condition if somebody writes to the job before that.
    The exceptions are jobs that have no status because they wait for quota, or because their pods
    are refused.
    """
    view = state.view
    missing = _missing(state)
    if not (view.facts.reported or missing.notes or _waits_with_notice(state)):
        return Step(again_at=first(missing.times))
    if _holds_next_launcher(state):
        return NO_STEP
    told = [
        Told(tuple(of_job(state))),
        _given_up(state),
        _stuck(state),
        _pending(state),
        handover.contested(state) if view.memory.mended else NOTHING_TOLD,
        missing,
    ]
    notes = [note for part in told for note in part.notes]
    times = [at for part in told for at in part.times]
    again_at = first_after(state.now, times)
    text = ""
    if notes:
        text = bounds.notices("\n".join(note.line for note in notes))
    if text == view.facts.notices:
        return Step(again_at=again_at)
    return Step(TellUser(ref=view.ref, text=text, notes=_news(state, notes)), again_at)


def _missing(state: JobState) -> Told:
    """Return the notice on missing pods; a command that measures no time shows only an old one."""
    if state.view.drains_seen is None and not state.view.facts.notices:
        return NOTHING_TOLD
    return refused(state)


def _waits_with_notice(state: JobState) -> bool:
    """Tell whether a launcher waits at a gate, and a notice says what the job does without."""
    launcher = state.view.launcher
    if launcher is None or not launcher.facts.gates:
        return False
    return any(chain(_of_capabilities(state), parking.notes(state)))


def _holds_next_launcher(state: JobState) -> bool:
    """Tell whether the webhook holds the next launcher back, by the notice on a suspension."""
    view = state.view
    if not view.facts.notices or state.wishes.suspend:
        return False
    if view.launcher and not state.stopped:
        return False
    return names.is_suspended(view.facts.notices)


def _news(state: JobState, notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notices that become Events: those that the job's annotation does not have yet."""
    view = state.view
    said = view.facts.notices.splitlines()
    # The Event on a refused write was sent at once, because the refused write may be this very
    # write of the notices.
    fresh = tuple(note for note in notes if note.line not in said and note.reason != REFUSED)
    if view.facts.notices and view.handed_over:
        again = f"{view.name} is managed by mpijob-elastic again: nobody else writes its host list"
        fresh = (*fresh, normal("TakenBack", again))
    return fresh


def _given_up(state: JobState) -> Told:
    """Return a notice on each worker that is given up, and when a lost rank is forgiven."""
    gave_up = [worker for worker in state.workers if worker.standing is Standing.GIVEN_UP]
    notes = [given_up(state.view, worker) for worker in gave_up[:MOST_GIVEN_UP]]
    resting = (last for last in state.losses.values() if RENAMED.is_given_up(last))
    times = (min(last.at, state.now) + RENAMED.given_up_for for last in resting)
    return Told(tuple(notes), tuple(times))


def _pending(state: JobState) -> Told:
    """Return the notice on wanted workers that are not Ready for long, and when it holds."""
    view = state.view
    if not (view.elastic and view.driver_running):
        return NOTHING_TOLD
    times = [pod.pod.unready_since + PENDING_AFTER for pod in state.workers if _is_pending(pod)]
    if not any(at <= state.now for at in times):
        return Told(times=tuple(times))
    ready = sum(worker.wanted and worker.ready for worker in state.workers)
    message = (
        f"{view.name} continues with {ready} of {view.replicas} desired workers: "
        "the others are not Ready; see `kubectl describe pod` of those workers"
    )
    return Told((warning("WorkersNotReady", message),), tuple(times))


def _is_pending(worker: WorkerState) -> bool:
    """Tell whether a wanted worker may become Ready by itself.

    A worker that is being deleted is not awaited: its successor is, from its own creation on.
    """
    pod = worker.pod
    if not worker.wanted or worker.ready or pod.facts.deleting:
        return False
    return not (pod.facts.gates or pod.terminated)


def refused(state: JobState) -> Told:
    """Return the notice on pods that the operator has not created, and when it comes to hold.

    Only the operator's Events say why. The notice waits until the operator stops creating pods,
    because it would change with each pod.
    """
    view, seen = state.view, state.view.drains_seen
    if not view.missing or state.wishes.suspend or view.unread:
        return NOTHING_TOLD
    note = warning(
        "WorkersRefused",
        f"the operator has not created {listed(view.missing)}: usually a ResourceQuota or an "
        f"admission policy refuses them, or no operator runs. {AGAIN}. "
        f"`mpijob-elastic explain {view.name}` shows the reason",
    )
    missed_at = [state.now - (seen or {}).get((pod, 0.0), 0.0) for pod in view.missing]
    created_at = [honest(pod.facts.created_at, now=state.now) for pod in view.pods]
    due_at = max([*missed_at, *created_at]) + REFUSED_AFTER
    if note.line in view.facts.notices.splitlines() or due_at <= state.now:
        return Told((note,))
    if seen is None:
        return NOTHING_TOLD
    return Told(times=(due_at,))


def suspicious_success(view: JobView) -> Note | None:
    """Return the notice on a job that succeeded soon after a change of its host list, or None.

    Elastic Horovod stops all ranks, as after a success, as soon as any rank exits with 0
    (runner/elastic/registration.py). A rank may exit with 0 when its neighbour goes: TensorFlow
    1.15 was seen to do so (horovod#1994, #3852). `kubectl exec` was seen to exit with 0 when its
    connection breaks (kubernetes#73056). No program can tell such an exit from a training that has
    reached its end, so the notice asks the user to look. elastic.sh ends with 0 only if no rank was
    asked to end.
    """
    if not view.driver.keeps_ranks:
        return None
    changed_at = _changed_at(view.memory)
    if view.facts.succeeded_at is None or not changed_at or not view.elastic:
        return None
    waited = view.facts.succeeded_at - changed_at
    if not -SKEW <= waited <= SUSPICIOUS_WITHIN:
        return None
    return warning(
        "EndedAfterResize",
        f"{view.name} succeeded {phrases.duration(round(max(0.0, waited)))} after its host list "
        "changed. If training was not complete, a rank may have exited with 0 at the change, which "
        "Horovod takes as the end of the whole job; check the last steps in the launcher's log",
        next_step=f"kubectl -n {view.namespace} logs {names.launcher(view.name)}",
    )


def _changed_at(memory: Memory) -> float:
    """Return the time of the last change of the list; 0 for the hosts that the job began with."""
    if memory.removed_at:
        return max(memory.added_at, memory.removed_at)
    if memory.scale is None or memory.scale.before == 0:
        return 0.0
    return memory.added_at


def driver_ended(launcher: Launcher) -> Note:
    """Return the notice on a launcher that lingers."""
    running = listed(launcher.facts.lingering)
    still = "still runs" if len(launcher.facts.lingering) == 1 else "still run"
    return warning(
        "DriverEnded",
        f"the driver in container {launcher.container} of {launcher.ref.name} has ended, but "
        f"{running} {still} beside it, so the operator does not end the job, and its workers keep "
        f"their resources. End {running}, or delete the job",
    )


def tell_of_end(state: JobState) -> TellUser | None:
    """Return the write of the only notice of a job whose driver has ended, or None.

    None if there is none, or if it was written. It replaces the earlier notices of the job, which
    no longer hold.
    """
    view, note = state.view, _of_end(state)
    if note is None or note.line == view.facts.notices:
        return None
    return TellUser(ref=view.ref, text=note.line, notes=(note,))


def _of_end(state: JobState) -> Note | None:
    """Return the notice of a job whose driver has ended; None if there is nothing to tell."""
    view = state.view
    if view.launcher and view.lingers:
        # A plain job notices nothing of us.
        if view.elastic:
            return driver_ended(view.launcher)
        return None
    if view.facts.succeeded_at is None or view.facts.succeeded_at < state.now - NEWS_FOR:
        return None
    return suspicious_success(view)


def of_job(state: JobState) -> Iterator[Note]:
    """Yield the notices that hold for the job as a whole."""
    view = state.view
    for problem in view.facts.problems:
        yield warning("InvalidAnnotation", f"{problem}; using the default")
    for kind, words in view.refused.items():
        # A refused write of the notices gets no notice: with it the write would differ from the
        # refused write, and would be tried again at once.
        if words and kind is not TellUser:
            yield warning(REFUSED, words)
    if state.wishes.suspend:
        yield _suspended(view, state.wishes.suspend)
    if not view.facts.elastic and view.facts.acts_elastic:
        yield _still_elastic(view)
    yield from _of_capabilities(state)
    if view.placeholders:
        yield from parking.notes(state)
    yield from _of_objects(state)
    yield from _size(view)
    if view.deleted:
        yield from pace.notes(state)
    if state.wishes.leaves:
        yield from moves.notes(state)


def _of_objects(state: JobState) -> Iterator[Note]:
    """Yield the notices on objects that cannot be used as they are, and on the launcher."""
    view, launcher = state.view, state.view.launcher
    if view.unread:
        yield _unread(view)
    if view.config and view.config.facts.cut:
        yield handover.too_long(view.config, elastic=view.elastic)
    if launcher is None:
        return
    if view.facts.elastic or view.elastic:
        yield from _launcher(state, launcher)
    if launcher.held.frozen or launcher.held.hidden:
        yield from frozen_execs.notes(state)


def _suspended(view: JobView, suspend: Suspend) -> Note:
    waits = "what runs goes"
    if view.launcher and all(pod.facts.held_back for pod in view.pods):
        waits = "its pods wait until that is gone"
    said = f"{view.name} is suspended by {suspend.why}; {waits}"
    return normal(names.REASON_SUSPENDED, said, next_step=suspend.ends_by)


def _still_elastic(view: JobView) -> Note:
    """Return the notice by which the webhook knows, too, that the launcher decides."""
    return normal(
        names.REASON_STILL_ELASTIC,
        f"{view.name} was edited not to be elastic, which takes effect once a launcher that was "
        "made after that starts. Until then its size, and annotations such as parked, suspend and "
        f'sizes, keep their effect. {names.ENABLED}="false" takes effect at once',
    )


def _unread(view: JobView) -> Note:
    what, why = next(iter(view.unread.items()))
    kind, name = what.split(" ")
    others = ""
    if len(view.unread) > 1:
        others = f" (so it is with {listed(view.unread)})"
    return warning(
        "ObjectUnreadable",
        f"{what} of {view.name} is too large, or not as it should be: {why}{others}. What depends "
        "on it is left as it is until you shorten or delete it",
        next_step=f"kubectl -n {view.namespace} get {kind.lower()} {name} -o yaml",
    )


def _of_capabilities(state: JobState) -> Iterator[Note]:
    for one in capability.of(state.view):
        yield from one.notes(state)


def _launcher(state: JobState, launcher: Launcher) -> Iterable[Note]:
    if not state.launcher.sees_hosts:
        yield _without_discovery(state.view, launcher)
    elif launcher.phase in NOT_STARTED:
        yield from _missed_too_often(state, launcher)
    refused = launcher.refused
    if not state.launcher.refresh_due or refused is None:
        return
    if refused.tries.count >= REFUSED_OFTEN:
        yield warning(
            REFRESH_REFUSED,
            f"{launcher.ref.name} cannot learn of the new host list, so nothing drains and no "
            "further change is published: the API server refuses to change its annotation "
            f"{names.REFRESHED} ({refused.reason[:LONGEST_REASON]}). Exempt the user "
            f"{names.CONTROLLER_USER} from the policy or the webhook that does",
        )


def _missed_too_often(state: JobState, launcher: Launcher) -> Iterable[Note]:
    """Yield that launchers were made again too often for want of a file."""
    lacking = launcher_start.missing_file(state, launcher)
    if lacking and RELAUNCHED.is_given_up(state.view.memory.launchers):
        yield warning(
            "AdmissionMissed",
            f"{launcher.ref.name} was created {len(RELAUNCHED.delays)} times without "
            f"{lacking}; check that the webhook {names.WEBHOOK} is running and that its caBundle "
            "is set",
        )


def _without_discovery(view: JobView, launcher: Launcher) -> Note:
    adopt = names.adopt(view.name, view.namespace)
    first, step = "", adopt
    if elastic_line.lacks_script(view, launcher):
        first = f"first give its command {elastic_line.command_for(view.facts.launch)}; then "
        step = f"kubectl -n {view.namespace} edit mpijob {view.name}"
    return warning(
        "LauncherWithoutDiscovery",
        f"{launcher.ref.name} started without {names.DISCOVER_HOSTS_PATH}: before the job was "
        "elastic, before mpijob-elastic was installed or while its webhook was down. So the "
        "running job cannot change its size, and workers are not deleted on a scale-in. It takes "
        f"a new launcher: {first}`{adopt}` makes it (training restarts from its last checkpoint). "
        "If you delete the pod instead, the operator fails the job. Workers beyond the size that "
        "you delete yourself are not made again",
        next_step=step,
    )


def _size(view: JobView) -> Iterable[Note]:
    if not view.facts.size_known:
        yield size_unknown(view)
    if view.elastic:
        yield from _size_not_allowed(view)
        yield from _slots(view)
    elif not view.facts.elastic:
        yield from _kept(view)


def _size_not_allowed(view: JobView) -> Iterable[Note]:
    """Yield a notice if the size is none that the job may have.

    This happens after an edit while the webhook was away.
    """
    job, allowed = view.facts, view.policy.sizes
    if allowed is None or not job.sizes or not job.replicas or job.workers in job.sizes:
        return
    most = job.size_at_most(job.workers)
    trains = "all of its workers train"
    if most:
        trains = f"only {most} of its workers train"
    yield warning(
        "SizeNotAllowed",
        f"{job.workers} is not a size of {names.SIZES} ({allowed.text}): {trains}. Set "
        f"Worker.replicas to {job.sizes_near(job.workers)}",
        next_step=f"kubectl -n {view.namespace} edit mpijob {view.name}",
    )


def _kept(view: JobView) -> Iterable[Note]:
    """Yield a notice on the workers beyond the size of a plain job."""
    surplus = [worker.ref.name for worker in view.surplus if not worker.facts.deleting]
    if not surplus:
        return
    remedy = f'remove its annotation {names.ENABLED}="false"'
    if view.policy.enabled is not False:
        remedy = (
            f"give its launcher {elastic_line.command_for(view.facts.launch)}. That takes a new "
            "launcher: edit the job, then "
            f"type `{names.adopt(view.name, view.namespace)}` (training restarts from its "
            "last checkpoint)"
        )
    verb = "is" if len(surplus) == 1 else "are"
    yield warning(
        NOT_ELASTIC,
        f"{listed(surplus)} {verb} kept beyond the size, {phrases.workers(view.replicas)}: "
        f"the job is not elastic. To make it elastic, {remedy}",
    )


def _slots(view: JobView) -> Iterable[Note]:
    """Yield a notice if the job asks for other slots than its running driver was told."""
    published = view.config.published if view.config else None
    if published is None or not published.hosts or not view.driver_running:
        return
    if published.slots != view.facts.slots:
        yield warning(
            "SlotsUnchanged",
            f"{names.launcher(view.name)} keeps slotsPerWorker {published.slots} while it runs; "
            f"the new value {view.facts.slots} takes effect with the next launcher: suspend the "
            "job, and resume it once it has stopped (training restarts from its last checkpoint)",
        )


def size_unknown(view: JobView) -> Note:
    """Return the notice on a job that does not say how many workers it wants."""
    return warning(
        "SizeUnknown",
        f"{view.name} is left as it is: {NO_SIZE}",
        next_step=f"kubectl -n {view.namespace} edit mpijob {view.name}",
    )


def given_up(view: JobView, worker: WorkerState) -> Note:
    """Return the notice on a worker that failed, or that lost its rank, too often."""
    delays = REPLACED if worker.failed else RENAMED
    times, wait = len(delays.delays) + 1, phrases.duration(delays.given_up_for)
    if worker.failed:
        advice = ""
        if worker.pod.facts.out_of_memory:
            advice = "; raise resources.limits.memory of the workers"
        last = worker.pod.facts.last_state or "Failed"
        why = (
            f"{worker.name} failed {times} times (last: {last}{advice}) and is not replaced "
            f"for {wait}"
        )
    else:
        why = (
            f"{worker.name} lost its rank {times} times while the pod kept running (see the "
            f"launcher's log) and gets no new host name for {wait}"
        )
    retry = f"kubectl -n {view.namespace} delete pod {worker.name}"
    message = f"{why}; the job continues without it. To retry now: `{retry}`"
    return warning("WorkerGivenUp", message, next_step=retry)


def _stuck(state: JobState) -> Told:
    """Return the notice on needed pods whose end is long overdue, and when more pods are.

    The node of such a pod does not answer, or a finalizer holds the pod. The operator creates no
    pod under a name that is still taken, so each such pod costs the job a worker, or the launcher,
    until somebody says that its node is gone. Only people can say so: on a node that only lost its
    network, processes run on.
    https://kubernetes.io/docs/tasks/run-application/force-delete-stateful-set-pod/
    """
    view = state.view
    ending = [pod for pod in view.pods if view.elastic and pod.facts.deleting]
    late_at = [
        (pod.facts.ends_at + LATE_AFTER, pod) for pod in ending if pod.facts.ends_at is not None
    ]
    late = [pod for at, pod in late_at if at <= state.now and _is_needed(view, pod)]
    notes = (_stuck_note(view, late),) if late else ()
    return Told(notes, tuple(at for at, _ in late_at))


def _is_needed(view: JobView, pod: Worker | Launcher) -> bool:
    return isinstance(pod, Launcher) or pod.index in view.wanted


def _stuck_note(view: JobView, late: list[Worker | Launcher]) -> Note:
    pods = " ".join(pod.ref.name for pod in late[:MOST_NAMED])
    nodes = " ".join(sorted({pod.facts.node for pod in late[:MOST_NAMED] if pod.facts.node}))
    away = ""
    if nodes:
        away = f". If the node is gone for good, `kubectl delete node {nodes}` frees all its pods"
    return warning(
        "PodStuckTerminating",
        f"{listed(pod.ref.name for pod in late)} stuck in deletion, so the operator cannot "
        "recreate the pod: its node does not respond, or a finalizer holds it. To free the name: "
        f"`kubectl -n {view.namespace} delete pod {pods} --grace-period=0 --force`{away}",
    )
