"""Findings on the job as a whole: the launcher, or what the job and all its workers depend on."""

from collections.abc import Iterator

from msgspec.structs import replace

from mpijob_elastic import names
from mpijob_elastic.decide import config_map, handover, notices
from mpijob_elastic.decide.shown import first_word, shown_of
from mpijob_elastic.diagnosis import workers
from mpijob_elastic.diagnosis.facts import Case, Finding, fine, waiting, wrong
from mpijob_elastic.diagnosis.logged_ranks import Spawned, Stall, Stopped
from mpijob_elastic.diagnosis.workers import OPERATOR, SLOW
from mpijob_elastic.model import budgets, phrases
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.pod import Launcher, LauncherPhase

# The cause of a job for which nobody carries out changes.
NO_CONTROLLER = "no-controller"
# horovodrun gives its children 5 s to end, and each of their children (seconds).
STOPPING = 30.0
# Seconds after a change of size in which the operator may still make a worker of the former size,
# which it began before the change.
UNDER_WAY = 5.0
# [operator] Its Event for an object that belongs to somebody else: mpi_job_controller.go,
# ErrResourceExists.
_EXISTS = "ErrResourceExists: "
# In the operator's own manifest.
_RESTART = "kubectl -n mpi-operator rollout restart deployment/mpi-operator"


def over(job: Case) -> Finding | None:
    """Return the finding that makes an explanation of workers needless; None if there is none."""
    if job.view.facts.finished:
        if note := notices.suspicious_success(job.view):
            return job.noted(note)
        said = f"{job.name} has ended: {job.facts.state}"
        return waiting("ended", said, next_step=job.kubectl("logs", job.launcher))
    if job.view.facts.deleting:
        return waiting(
            "deleted", f"{job.name} is being deleted", next_step=job.on_job("get", "-o yaml")
        )
    if why := job.state.foreign:
        said = (
            f"{job.name} is managed by another operator, so mpijob-elastic leaves it alone: {why}"
        )
        return wrong(
            "foreign", f"{said}. {handover.outlook(job.view)}", next_step=job.on_job("describe")
        )
    if names.gets_no_pod(job.view.name):
        return _too_long(job)
    return None if job.view.facts.size_known else job.noted(notices.size_unknown(job.view))


def _too_long(job: Case) -> Finding:
    said = (
        f"the name of {job.view.name} has {len(job.view.name)} characters, and a label of a pod at "
        f"most {names.LONGEST_LABEL}, so mpi-operator makes no pod. Create the job again with a "
        "shorter name, and delete this one"
    )
    return wrong("name-too-long", said, next_step=job.on_job("delete"))


def findings(job: Case) -> Iterator[Finding]:
    """Yield the notices, and then every other finding that holds.

    Who carries out changes comes first. The others stand in the order in which a job comes to
    train.
    """
    view, facts, notes = job.view, job.facts, list(notices.of_job(job.state))
    if facts.controller:
        yield wrong(
            NO_CONTROLLER,
            f"{facts.controller}, so {job.name} keeps its present size",
            next_step=job.status or names.INSTALL,
        )
    yield from map(job.noted, notes)
    if not view.facts.reported:
        yield _unreported(job)
    yield from _former_size(job)
    if facts.webhook and facts.installed:
        said = f"{facts.webhook}, so a launcher created now gets no {names.KEY_DISCOVER_HOSTS}"
        yield wrong("no-webhook", said, next_step=job.status)
    yield from _edited(job)
    if not (
        view.elastic or view.blind or any(note.reason == notices.NOT_ELASTIC for note in notes)
    ):
        said = (
            f"{job.name} is not elastic: its launcher names neither {names.KEY_DISCOVER_HOSTS} nor "
            f"--host-discovery-script nor {names.ELASTIC_PATH}, or the job is annotated "
            f'{names.ENABLED}="false"'
        )
        yield fine("not-elastic", said)
    if job.state.launcher.refresh_due:
        told = (line.partition(": ") for line in view.facts.notices.splitlines())
        if why := next(
            (words for reason, _, words in told if reason == notices.REFRESH_REFUSED), ""
        ):
            yield wrong("refresh-refused", why, next_step=job.controller_log)
    yield from _launcher(job)
    if why := view.facts.unread_words:
        said = (
            f"{why}, so sizes of {job.name} are not compared with them. Write them as numbers into "
            "the command for the next launcher"
        )
        yield fine("unread-command", said, next_step=job.on_job("edit"))
    yield from _below_min_np(job)
    yield from _logged(job)
    yield from _budgets(job)


def _unreported(job: Case) -> Finding:
    """Return a finding for a job whose status the operator has not written."""
    age = job.state.now - job.facts.created_at
    since = f"{job.name} was created {phrases.duration(round(age))} ago"
    said = f"{since}, and the operator has not reported its status"
    if job.facts.events.get(job.name, "").startswith(_EXISTS):
        said = (
            f"{said}, because an object of another owner has a name that {job.name} needs"
            f"{job.warned(job.name)}. Delete that object, or give the job another name"
        )
        return wrong("name-taken", said, next_step=job.on_job("describe"))
    return (wrong if age > SLOW else waiting)("no-operator", said, next_step=OPERATOR)


def _below_min_np(job: Case) -> Iterator[Finding]:
    """Yield a finding for a driver that waits for more slots than the list has.

    Without a controller nobody writes the list, and no edit of the job helps.
    """
    view, launch = job.view, job.facts.launch
    slots = len(view.published_pods) * view.facts.slots
    needed = (launch and launch.effective_min_np) or 0
    if job.facts.controller or not (view.elastic and view.driver_running and slots < needed):
        return
    plural = "s" if needed > 1 else ""
    option = f"{view.driver.program}'s {view.driver.least_options}"
    waits = f"{job.launcher} waits for {needed} slot{plural} ({option})"
    said = f"{waits}; published workers have {slots}"
    yield wrong("below-min-np", said, next_step=job.on_job("edit"))


def _logged(job: Case) -> Iterator[Finding]:
    """Yield what the last lines of the launcher's log say."""
    stall, stopped = job.facts.stall, job.facts.stopped
    if stall:
        yield _missing_ranks(job, stall)
    if stopped and job.state.now - stopped.at > STOPPING:
        yield _stopped(job, stopped)


def _budgets(job: Case) -> Iterator[Finding]:
    """Yield a finding for each budget that refuses evictions because of pods that only wait."""
    view = job.view
    waits = budgets.waiting(view)
    ready = sum(worker.ready for worker in view.workers)
    for budget in job.facts.budgets:
        if budget.allowed > 0 or not budgets.blocks(budget, view.facts, ready=ready):
            continue
        name = budget.metadata.name
        said = (
            f"PodDisruptionBudget {name} ({budget.form}) allows no eviction, so `kubectl drain` "
            f"waits for ever: it counts {listed(waits)} as unavailable. Set minAvailable to a "
            f"number of at most {max(0, ready - 1)}"
        )
        step = job.kubectl("edit poddisruptionbudget", name)
        yield wrong("drain-refused", said, next_step=step)


def _former_size(job: Case) -> Iterator[Finding]:
    """Yield a finding for an operator that still makes workers of a size before the present one.

    [operator] It makes all missing workers of a size in one go, at its client's limit of 5 a
    second.
    """
    since = job.facts.resized_at
    at, pod = max(((at, pod) for pod, at in job.facts.surplus.items()), default=(0.0, ""))
    if since and at > since + UNDER_WAY and job.state.now - at < SLOW:
        after = f"{phrases.duration(round(at - since))} after the size became {job.view.replicas}"
        said = (
            f"mpi-operator is still making workers of a former size of {job.name}: "
            f"{pod} was created {after}"
        )
        said += ". Other jobs wait meanwhile; a restart of mpi-operator ends it"
        yield wrong("former-size", said, next_step=_RESTART)


def _edited(job: Case) -> Iterator[Finding]:
    config, at = job.view.config, job.state.mends_at
    contested = handover.contested(job.state).notes
    if contested:
        yield from map(job.noted, contested)
    elif config and (job.state.edited or at) and config_map.write(job.state, config).write:
        when = f"in {phrases.duration(at - job.state.now)}" if at > job.state.now else "at once"
        said = f"{job.name}: {handover.changed(config)}; the controller puts it right {when}"
        step = job.kubectl(
            "get configmap", names.config_map(job.name), "--show-managed-fields -o yaml"
        )
        yield waiting("edited", said, next_step=step)


def _launcher(job: Case) -> Iterator[Finding]:
    """Yield the findings that keep the launcher from starting."""
    launcher, name, pod = job.view.launcher, job.launcher, job.of(job.launcher)
    if launcher is None:
        said = (
            f"{name} does not exist yet: the operator creates it after the workers"
            f"{job.warned(job.name)}"
        )
        yield waiting("no-launcher", said, next_step=job.on_job("describe"))
    elif launcher.phase is LauncherPhase.DELIVERING:
        yield _delivering(job, launcher)
    elif launcher.phase is LauncherPhase.WAITING and pod.held_back:
        turns = [turn for one in shown_of(job.view) if (turn := one.turn(job.state))]
        # Else a notice says it.
        if not (job.state.wishes.suspend or any(turn.says for turn in turns)):
            why = job.state.wishes.held.get(name) or "ranks of the launcher before may still run"
            step = first_word(turn.look for turn in turns) or job.controller_log
            yield waiting("launcher-held", f"{name} is held back: {why}", next_step=step)
    elif launcher.phase is LauncherPhase.WAITING:
        if stuck := next(workers.startup(pod), None):
            yield replace(stuck.about(name), cause="launcher-stuck")
        else:
            yield waiting(
                "launcher-starting", f"{name} has not started yet", next_step=pod.describe
            )
    elif launcher.phase is LauncherPhase.LINGERING:
        yield job.noted(notices.driver_ended(launcher))
    elif launcher.phase is LauncherPhase.FINISHED:
        said = f"{name} has ended; within seconds the operator reports whether the job has"
        yield waiting("launcher-ended", said, next_step=job.kubectl("logs", name))


def _delivering(job: Case, launcher: Launcher) -> Finding:
    """[operator] kubectl-delivery waits until each pod of the hostfile has been seen Running."""
    hosts = [
        line.split(" ")[0]
        for line in (job.view.config.facts.hostfile if job.view.config else "").splitlines()
    ]
    running = {worker.name for worker in job.view.workers if worker.running}
    waits = [name for name in hosts if name not in running]
    since = launcher.facts.delivering_since
    age = f" for {phrases.duration(round(max(0.0, job.state.now - since)))}" if since else ""
    until = ": every pod of its hostfile runs, so it starts in a moment"
    if waits:
        until = f" until these pods run: {listed(waits)}"
    said = f"{job.launcher} waits in its init container{age}{until}"
    return waiting(
        "launcher-init", said, next_step=job.of(waits[0] if waits else job.launcher).describe
    )


def _stopped(job: Case, stopped: Stopped) -> Finding:
    """Return a finding for a horovodrun that has stopped, and whose launcher runs on.

    Where /bin/sh is dash, the operator's kubexec.sh leaves its kubectl running (model/kubexec).
    """
    age = phrases.duration(round(job.state.now - stopped.at))
    said = (
        f"{job.launcher} trains no more, and holds the job's workers: horovodrun stopped {age} ago "
        f"({stopped.says}), and the `kubectl exec`s of its ranks have not ended. To free the "
        "workers, delete the job, or suspend it. A job that is resumed starts from its last "
        "checkpoint"
    )
    return wrong("driver-stopped", said, next_step=job.kubectl("logs", job.launcher, "--tail=50"))


def _missing_ranks(job: Case, stall: Stall) -> Finding:
    """Return a finding for missing ranks, with their workers and nodes as far as they are known."""
    spawned, first = job.facts.spawned, next(iter(stall.missing))
    ranks = listed(f"{rank} ({_place(job, rank, spawned)})" for rank in stall.missing)
    said = (
        f"{job.name} does not go on: the other ranks have waited for more than {stall.seconds} s "
        f"for rank {ranks}"
    )
    said += f", which must submit {stall.missing[first]} (from the launcher's log)"
    pods = spawned.pods(first) if spawned else []
    step = f"{names.PROGRAM} logs {job.name} -n {job.view.namespace} --tail 20"
    return wrong(
        "missing-ranks", said, next_step=f"{step} --worker {pods[0]}" if len(pods) == 1 else step
    )


def _place(job: Case, rank: int, spawned: Spawned | None) -> str:
    """Return the worker of a rank and its node, in words."""
    pods = spawned.pods(rank) if spawned else []
    if spawned is None or not pods:
        return "its worker is not known"
    nodes = {worker.name: worker.facts.node for worker in job.view.workers}
    where = " or ".join(f"{pod} on node {nodes.get(pod) or 'unknown'}" for pod in pods)
    return where if spawned.together else f"{where}, if ranks are as they were at the start of each"
