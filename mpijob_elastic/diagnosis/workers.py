"""Causes in a worker, in the order in which the worker comes to train.

- its pod: the pod is missing, is ending, has failed, has no node, does not start, is not Ready
  (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/);
- between a Ready pod and the launcher: the Role, the host list, and the launcher's copy of the
  list;
- its rank. Only exec shows that a rank runs: a process beside the pod's main process. Horovod
  blacklists the name of a host whose rank has died, for good unless horovodrun got
  --blacklist-cooldown-range (horovod/runner/elastic/discovery.py, HostManager). elastic.sh
  blacklists nothing;
- the progress of a worker that is to leave.
"""

from collections.abc import Iterator
from itertools import chain

from mpijob_elastic import names
from mpijob_elastic.decide import reminders
from mpijob_elastic.decide.frozen_execs import LATE_AFTER
from mpijob_elastic.decide.lost_ranks import LOST_AFTER
from mpijob_elastic.decide.notices import AGAIN, given_up
from mpijob_elastic.decide.shown import first_word, shown_of
from mpijob_elastic.decide.state import Drain, Standing, WorkerState
from mpijob_elastic.diagnosis.facts import ABOVE, Case, Finding, Level, Stuck, fine, waiting, wrong
from mpijob_elastic.model import phrases
from mpijob_elastic.model.pod import DRIVER_ENDED, Launcher, Worker

# The command that finds the operator.
OPERATOR = "kubectl get pods -A | grep mpi-operator"
# Reasons of a waiting container (kubelet, pkg/kubelet/images/types.go and kuberuntime).
_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
    }
    | {"RegistryUnavailable", "SignatureValidationFailed"}
)
_CRASH = "CrashLoopBackOff"
# Seconds. The operator creates the workers of a new size, and writes a job's status, within a
# second or two.
SLOW = 30.0
# Seconds from a touch until a driver has started ranks: the kubelet takes 0.7 s, discovery 1 s; the
# rest is a reserve.
JOINING = 20.0


def first_cause(case: Case, *, is_wanted: bool) -> Finding:
    """Return the first cause that holds.

    is_wanted: the desired size includes the worker, and the worker is to stay.
    """
    worker = case.state.by_name.get(case.name)
    if worker is None:
        return _missing(case)
    if not is_wanted:
        return _surplus(case, worker)
    return next(chain(_pod(case, worker), _published(case, worker.pod), _rank(case, worker)))


def startup(case: Case) -> Iterator[Finding]:
    """Yield the findings that keep a pod from starting."""
    if case.held_back and (case.state.wishes.suspend or case.of(case.launcher).held_back):
        yield waiting("job-waits", f"waits, as the whole job does{ABOVE}")
    elif case.held_back:
        why = case.state.wishes.held.get(case.name) or "mpijob-elastic frees it next"
        yield waiting("gated", f"is held back: {why}")
    elif case.gates:
        yield waiting(
            "gated",
            f"is held back by scheduling gates: {', '.join(case.gates)}",
            next_step=case.describe,
        )
    if case.seen.unscheduled:
        yield wrong(
            "not-scheduled",
            f"cannot be scheduled: {case.seen.unscheduled}{_new_rule(case)}",
            next_step=case.describe,
        )
    elif case.pod and (why := _untried(case, case.pod)):
        yield waiting("not-tried", why, next_step=case.describe)
    if case.seen.stuck:
        yield _stuck(case, case.seen.stuck)


def _untried(case: Case, pod: Launcher | Worker) -> str:
    return first_word(one.pod_words(case.view, pod).waits for one in shown_of(case.view))


def _new_rule(case: Case) -> str:
    """Return the words on a rule that did not match before the webhook put labels back, or ""."""
    if not (rule := case.facts.new_rules.get(case.name)):
        return ""
    return (
        f". {rule} selects the job's own pods by labels that mpi-operator v0.2.3 drops and "
        "mpijob-elastic puts back: remove the rule or the label from the job, and delete the "
        "pods that wait"
    )


def unseen(case: Case) -> str:
    """Return the reason why nobody knows if a rank runs in the worker; "" if exec has shown it."""
    looks = case.facts.looks
    if not looks:
        return "only exec can show that, and --no-exec was given"
    if (look := looks.get(case.name)) is None:
        return _why_no_look(case)
    shows_none = not (look.processes or look.error or case.view.elastic)
    return (
        "exec shows no rank, and the launcher alone decides where ranks run"
        if shows_none
        else look.error
    )


def _why_no_look(case: Case) -> str:
    """Return the reason why exec did not look into a worker, although it looked into others."""
    errors = {look.error for look in case.facts.looks.values()}
    if len(errors) == 1 and "" not in errors:
        return errors.pop()  # it would be the same here
    return f"exec looked only into {len(case.facts.looks)} other workers"


def _missing(case: Case) -> Finding:
    said = "does not exist: the operator has not created it"
    if warning := case.warned(case.view.name):
        return wrong("missing", f"{said}{warning}. {AGAIN}", next_step=case.on_job("describe"))
    if case.state.now - max(case.facts.created_at, case.facts.resized_at) < SLOW:
        return waiting("missing", "does not exist yet: the operator creates it")
    refusal = "If a quota or a policy refuses it, the notice WorkersRefused says so within a minute"
    said = f"{said}. {refusal}; else check that mpi-operator is running"
    return wrong("missing", said, next_step=OPERATOR)


def _pod(case: Case, worker: WorkerState) -> Iterator[Finding]:
    pod = worker.pod
    if worker.stopped and not pod.facts.deleting:
        yield waiting(
            "suspending", "is deleted once the launcher is gone, because the job is suspended"
        )
    if pod.facts.deleting:
        yield _terminating(case, pod)
    if pod.terminated:
        yield _failed(case, worker)
    yield from startup(case)
    if not pod.running:
        where = f" on node {pod.facts.node}" if pod.facts.node else ""
        yield waiting(
            "starting", f"is starting{where}{case.warned(case.name)}", next_step=case.describe
        )
    if not pod.ready:
        why = case.seen.unready or "its readiness probe fails, or its node does not respond"
        yield wrong("not-ready", f"is running but not Ready: {why}", next_step=case.describe)


def _terminating(case: Case, pod: Worker) -> Finding:
    going = pod.facts.going(now=case.state.now)
    why = f" ({going})" if going else ""
    if pod.facts.ends_at is None or case.state.now < pod.facts.ends_at + LATE_AFTER:
        return waiting(
            "terminating", f"is being deleted{why}; the operator recreates it once it is gone"
        )
    late = phrases.duration(round(case.state.now - pod.facts.ends_at))
    force = case.kubectl("delete pod", case.name, "--grace-period=0 --force")
    said = (
        f"should have been gone {late} ago{why}, but its node {pod.facts.node} has not confirmed "
        "it: the node is lost, or a finalizer holds the pod. Until the pod is gone, the operator "
        f"cannot recreate it. If the machine is really off, free the name with `{force}`"
    )
    return wrong("lost-node", said, next_step=f"kubectl describe node {pod.facts.node}")


def _failed(case: Case, worker: WorkerState) -> Finding:
    if worker.standing is Standing.GIVEN_UP:
        return case.noted(given_up(case.view, worker))
    facts = worker.pod.facts
    message = f": {case.seen.message}" if case.seen.message else ""
    how = f"({facts.last_state or 'it has ended'}{message})"
    cause = "out-of-memory" if facts.out_of_memory else "failed"
    if worker.standing is Standing.FAILED:
        wait = phrases.duration(round(max(0.0, (worker.due_at or case.state.now) - case.state.now)))
        return waiting(
            cause,
            f"has failed {how}; the controller replaces it in {wait}",
            next_step=case.describe,
        )
    why = "the launcher cannot see the host list"
    if not case.view.elastic:
        why = "the job is not elastic"
    elif case.view.policy.replace_failed_workers is False:
        why = f'the job is annotated {names.REPLACE_FAILED_WORKERS}="false"'
    return wrong(cause, f"has ended {how} and is not replaced: {why}", next_step=case.describe)


def _stuck(case: Case, stuck: Stuck) -> Finding:
    if stuck.reason in _IMAGE:
        return wrong("image", f"cannot pull its image: {stuck}", next_step=case.describe)
    if stuck.reason != _CRASH:
        return wrong("cannot-start", f"cannot start: {stuck}", next_step=case.describe)
    logs = case.kubectl("logs", case.name, "-c", stuck.container, "--previous")
    ended = f" (last exit: {'; '.join(case.seen.ended)})" if case.seen.ended else ""
    cause = "out-of-memory" if case.pod and case.pod.facts.out_of_memory else "crashing"
    return wrong(cause, f"crashes repeatedly in container {stuck.container}{ended}", next_step=logs)


def _published(case: Case, pod: Worker) -> Iterator[Finding]:
    view, role = case.view, case.view.role
    # A worker of the hostfile has been known to the launcher from its start.
    if view.blind and f"{case.name} " not in (view.config.facts.hostfile if view.config else ""):
        said = f"is not used: the launcher has no discover_hosts.sh to find it in{ABOVE}"
        yield wrong("launcher-without-discovery", said)
    if not view.elastic:
        yield from _no_launcher(case)
        yield from _seen(case, "is Ready, and the job is not elastic")
    if case.facts.role_readable and (role is None or case.name not in role.exec_names):
        yield _due(
            case, "no-right", "is not in the launcher's Role yet; the controller adds it next"
        )
    if case.name not in view.host_of:
        yield _unpublished(case, pod)
    yield from _no_launcher(case)
    if case.state.launcher.refresh_due:
        yield _due(
            case,
            "launcher-not-refreshed",
            "is published; the controller refreshes the launcher next",
        )


def _unpublished(case: Case, pod: Worker) -> Finding:
    step, now = case.following, case.state.now
    going = pod.facts.going(now=now)
    if going:
        why = f"its node or pod is being removed ({going})"
        return waiting("disrupted", f"is leaving: {why}; the operator recreates it on another node")
    if pod.facts.unhealthy:
        where = f" on node {pod.facts.node}" if pod.facts.node else ""
        why = f"its {pod.facts.unhealthy}{where} is reported Unhealthy"
        return waiting("device", f"is leaving: {why}; the operator recreates it with another one")
    if case.view.facts.sizes and step.wake_at is None and case.name not in step.hosts:
        return waiting(
            "size-incomplete",
            "waits: the job may have certain sizes only, and the next is not complete",
        )
    said = "is not in discover_hosts.sh yet"
    if case.name in step.hosts or step.wake_at is None:
        return _due(case, "not-published", f"{said}; the controller adds it next")
    why = "an earlier change to settle, or for more new workers"
    if case.state.resume_at > now:
        why = (
            "the other ranks to get over a loss: Gloo's timeout "
            "(horovodrun --gloo-timeout-seconds) and 10 s"
        )
    wait = phrases.duration(max(0.0, step.wake_at - now))
    return waiting("settling", f"joins discover_hosts.sh in {wait}: the controller waits for {why}")


def _no_launcher(case: Case) -> Iterator[Finding]:
    launcher = case.view.launcher
    if launcher and launcher.phase in DRIVER_ENDED:
        yield waiting("no-launcher", "is Ready, but the launcher has ended")
    elif not case.view.driver_running:
        yield waiting("no-launcher", f"is Ready and waits for the launcher{ABOVE}")


def _due(case: Case, cause: str, says: str) -> Finding:
    if case.facts.controller:
        return wrong(cause, f"{says}, but {case.facts.controller}", next_step=case.status)
    return waiting(cause, says)


def _rank(case: Case, worker: WorkerState) -> Iterator[Finding]:
    shown_at = case.state.launcher.shown_at
    if case.view.launcher and any(held.pod == case.name for held in case.view.launcher.held.frozen):
        said = (
            "is blocked: the launcher still waits for a rank in a pod of this name that is gone"
            f"{ABOVE}"
        )
        yield wrong("frozen-exec", said)
    yield from _seen(case, "is listed, and the launcher knows it")
    if shown_at is not None and case.state.now < shown_at + JOINING:
        yield waiting("joining", "is published; the launcher was refreshed a moment ago")
    training = sum(
        bool(look.processes) and name in case.view.host_of
        for name, look in case.facts.looks.items()
    )
    yield from _beyond_max_np(case, training)
    if worker.standing is Standing.GIVEN_UP:
        yield case.noted(given_up(case.view, worker))
    if training and not worker.pod.probe.busy_seen:
        yield from _unread_max_np(case, training)
    yield _rankless(case, training)


def _rankless(case: Case, training: int) -> Finding:
    """Return a finding for a published worker without a rank, while so many others train."""
    if training:
        return _lost(case, training) if case.view.driver.spends_names else _unused(case, training)
    said = (
        "is published, but no rank runs in any worker that was checked: "
        f"{case.view.driver.program} is still starting, waits for more slots, or has failed"
    )
    return wrong("nobody-trains", said, next_step=case.kubectl("logs", case.launcher, "--tail=50"))


def _beyond_max_np(case: Case, training: int) -> Iterator[Finding]:
    launch = case.facts.launch
    if launch is None or launch.max_np is None:
        return
    if training * case.view.facts.slots >= launch.max_np:
        said = (
            f"is published, but other workers already fill the {launch.max_np} slots of "
            f"{case.view.driver.program}'s --max-np"
        )
        yield wrong("beyond-max-np", said, next_step=case.on_job("edit"))


def _unread_max_np(case: Case, training: int) -> Iterator[Finding]:
    if "max_np" not in case.view.facts.unread_options:
        return
    said = (
        f"is published, but only its main process runs in it while {training} others train: "
        f"{case.view.driver.program}'s --max-np, which cannot be read{ABOVE}, lets no more ranks "
        "start, or the rank died early"
    )
    yield wrong("unread-max-np", said, next_step=case.kubectl("logs", case.launcher, "--tail=50"))


def _seen(case: Case, standing: str) -> Iterator[Finding]:
    """Yield a finding for a rank that runs or may run; none if exec has shown that none runs."""
    if why := unseen(case):
        said = f"{standing}; whether it trains is not known: {why}"
        yield Finding(
            "not-known", said, case.kubectl("logs", case.launcher, "--tail=50"), Level.UNKNOWN
        )
    elif processes := case.facts.looks[case.name].processes:
        yield fine("trains", f"is training: {', '.join(processes)}")


def _lost(case: Case, training: int) -> Finding:
    cooldown = case.facts.launch.cooldown if case.facts.launch else None
    how_long = (
        f"for up to {cooldown[1]} s (--blacklist-cooldown-range)"
        if cooldown
        else "for as long as the job runs"
    )
    said = f"is published, but only its main process runs in it while {training} others train"
    unused = f"Horovod does not use a host of this name {how_long}; the controller"
    is_helpless = bool(case.facts.controller) or not case.state.may_number
    if reminders.is_new(case.state, case.name):
        said = f"{said}: {_unheard(case, is_helpless=is_helpless)}. Or its rank died; then {unused}"
    else:
        said = f"{said}: most likely its rank died, and {unused}"
    logs = case.kubectl("logs", case.launcher, "| grep -i blacklist")
    if is_helpless:
        return wrong("lost-rank", f"{said} cannot give it a new host name", next_step=logs)
    after = phrases.duration(LOST_AFTER)
    return waiting(
        "lost-rank",
        f"{said} gives it a new host name after {after} or more without a rank",
        next_step=logs,
    )


def _unused(case: Case, training: int) -> Finding:
    """Return a finding for a worker that elastic.sh does not use, or not yet."""
    said = (
        f"is published, but only its main process runs in it while {training} others train: "
        "elastic.sh is starting the ranks again, or cannot use the worker, and says so in the "
        "launcher's log"
    )
    logs = case.kubectl("logs", case.launcher, "| grep elastic.sh")
    return waiting("unused-worker", said, next_step=logs)


def _unheard(case: Case, *, is_helpless: bool) -> str:
    said = (
        "rank 0 may not have heard of it yet, because ranks were starting when it was added, or "
        "because no rank has committed since"
    )
    if is_helpless:
        return f"{said}; the controller cannot remind Horovod's driver of the host list"
    times = f"{reminders.count(case.state)} times so far"
    return f"{said}; the controller reminds Horovod's driver of the host list ({times})"


def _surplus(case: Case, worker: WorkerState) -> Finding:
    pod, drain = worker.pod, worker.drain
    if not case.view.elastic:
        size = f"{case.view.replicas} workers are desired"
        return fine("kept", f"keeps running although {size}: the job is not elastic")
    if pod.facts.deleting:
        return waiting("leaving", "is being deleted")
    why = f"is to leave{ABOVE}" if pod.index in case.view.wanted else "is surplus"
    if case.name in case.view.host_of:
        return waiting("leaving", f"{why}; it leaves discover_hosts.sh {_when(case)}")
    if drain and not pod.unscheduled:
        since = phrases.duration(round(max(0.0, case.state.now - drain.since)))
        return waiting(
            "draining", f"has been draining for {since}, {_until(case, drain)}{_running(case)}"
        )
    return waiting("leaving", f"{why} and never trained; the controller deletes it next")


def _when(case: Case) -> str:
    step = case.following
    if step.wake_at is None or case.name not in step.hosts:
        return "next"
    return (
        f"in {phrases.duration(max(0.0, step.wake_at - case.state.now))}, "
        "after an earlier change has settled"
    )


def _until(case: Case, drain: Drain) -> str:
    if drain.deadline is None:
        return "its drain-timeout starts once the launcher is refreshed"
    return f"at most {phrases.duration(max(0, round(drain.deadline - case.state.now)))} more"


def _running(case: Case) -> str:
    look = case.facts.looks.get(case.name)
    if look is None or look.error:
        return ""
    return (
        f"; still running: {', '.join(look.processes)}"
        if look.processes
        else "; no process is left in it"
    )
