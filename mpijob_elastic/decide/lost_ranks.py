"""Lost ranks: published workers whose rank died while the pod runs on, or whose node is gone.

Horovod blacklists the host of a lost rank and trains on without it. Horovod does not say so, but
looks show it: under a host name where ranks ran, look after look finds only the main process, while
other workers train. Such a worker leaves the list and comes back under a new host name (see
host_list), a few times, later and later; then the worker is given up for a while. Where the
launcher shows that the rank's exec has ended, the first look is enough (see ended_execs).

A worker in which no rank was ever seen may wait for the next commit of the others, or may wait in
vain (--max-np), or rank 0 may not have heard of it (see reminders), or it may have lost its rank
before we looked. It gets one new name, after the last reminder; but none where --max-np cannot be
read: the name would cost all ranks a reset for nothing. If fewer than half of the workers train,
the training may be ending or beginning, so more time must pass; but Horovod may also have lost
several ranks at once.

In a pod whose Node is gone no process runs any more, so the pod is deleted as soon as it is not
listed (see drain). The garbage collector of pods would take a minute or more, and until then no pod
can be created under the same name. The list has to wait for the driver:
- The driver must know that the ranks are dead. Its `kubectl exec` into the pod outlives the node,
  until we end the exec (see frozen_execs).
- If rank 0 may be among the dead, the others must have formed their ring again (below). Nothing
  then waits a second time for the pod that comes in its place (`Host.reformed`).

If this takes longer than the garbage collector, the pod leaves the list like any pod that is gone.

When a rank dies, the others form their ring again without it, and Horovod 0.28.1 takes up to half
a minute for that. A rank that has noticed the death closes only the connections of its global
context, not the connections of its process set (operations.cc enables only the former, and
GlooContext::Finalize passes over a context that is not enabled). So another rank that waits for it
in a collective waits until Gloo's timeout.

If a host is added or removed meanwhile, the driver tells rank 0
(ElasticDriver._notify_workers_host_changes). If rank 0 is the rank that died, its address no longer
answers, and the driver connects without a timeout, three times, while it holds the very lock that
the others need to go on: with Linux' defaults each try can take two minutes and more. If another
rank died, no change of the list has to wait. Rank 0 is on the host that the driver has known for
longest (`Memory.elders`).
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from mpijob_elastic.decide import drain, ended_execs, frozen_execs, roll_call
from mpijob_elastic.decide.actions import LookIntoLauncher, ProbeWorkers
from mpijob_elastic.decide.state import (
    FORGIVEN_AFTER,
    RENAMED,
    SKEW,
    JobState,
    Moment,
    WorkerState,
    honest,
    of_this_pod,
)
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import Worker

# Seconds for which looks must find a worker idle, if ranks were seen in it before. A driver needs
# less to start a crashed rank again.
LOST_AFTER = 30.0
# The same for a worker in which no rank was ever seen.
NEVER_TRAINED_AFTER = 600.0
# The same as LOST_AFTER if fewer than half of the workers train: when training ends, ranks end one
# after the other.
FEW_TRAIN_AFTER = 120.0

# Seconds between two looks into a worker: LOOK_SELDOM while all is well, LOOK_SOON while the worker
# is new or idle. A command of a kubelet in a worker, such as an exec probe, looks like a rank. It
# begins every so many whole seconds, so looks every 30 s might meet it each time.
LOOK_SELDOM = 31.3
LOOK_SOON = 10.0
# The same while an addition waits until the ranks that are left train again, if they tell: so many
# seconds, and so many for each worker, but no more than LOOK_SOON.
LOOK_FORMING = 5.0
LOOK_FORMING_EACH = 0.2
# The longest pause between two looks into a worker that does not answer.
PROBES_APART = 600.0
# Seconds for which looks into a new host are frequent, if no rank was seen in it.
NEW_FOR = 120.0
# Seconds in which a job that writes lines of progress (model/progress) has begun to. Into any other
# job no looks are made for such lines, apart from one every PROBES_APART seconds.
BEGINS_WITHIN = 900.0
# Looks that are due within so many seconds are made together, so that a large job is not woken for
# each worker. The time is much shorter than the pause between two looks: otherwise each answer
# would bring about the next look.
TOGETHER = 3.0

# Seconds: HOROVOD_GLOO_TIMEOUT_SECONDS of a job that does not set it. We do not wait for a longer
# timeout that a job sets: often no rank hangs for so long, and meanwhile the job would have no
# replacement.
GLOO_TIMEOUT = 30.0
# Seconds in which a rank dies and the others form their ring again.
FORM = 10.0
# The sum of both, in a job that does not set the timeout.
REFORM = GLOO_TIMEOUT + FORM

_NOBODY: frozenset[str] = frozenset()


def losses(
    before: Mapping[str, Tries], workers: Collection[Worker], *, now: float
) -> Mapping[str, Tries]:
    """Return the counts of lost ranks of these very pods that are not forgiven, by pod name."""
    found = {}
    for worker in workers:
        last = of_this_pod(before, worker)
        if last and now < last.at + _forgiven_after(last):
            found[worker.name] = last
    return found


def _forgiven_after(last: Tries) -> float:
    if RENAMED.is_given_up(last):
        return RENAMED.given_up_for
    return FORGIVEN_AFTER


def rankless(moment: Moment) -> frozenset[str]:
    """Return the published pods whose rank is lost, whether they are given up or not."""
    if all(worker.probe.idle_at is None for worker in moment.view.workers):
        return frozenset()
    watched = _watched(moment)
    training = [worker for worker in watched if trains(worker)]
    if 0 < moment.view.facts.max_np_workers <= len(training):
        return frozenset()  # horovodrun's own options let no more workers train
    last = max((worker.probe.busy_at for worker in training), default=0.0)
    if 2 * len(training) < len(watched):
        few = (one for one in watched if _is_lost(moment, one, last, patience=FEW_TRAIN_AFTER))
        return frozenset(worker.name for worker in few)
    lost = (one for one in watched if _is_lost(moment, one, last, patience=LOST_AFTER))
    return frozenset(worker.name for worker in chain(lost, _surely_lost(moment, watched)))


def given_up(moment: Moment) -> frozenset[str]:
    """Return the pods whose worker has got its last new host name."""
    most = len(RENAMED.delays)
    return frozenset(pod for pod, last in moment.losses.items() if last.count >= most)


def tries(state: JobState, removed: Collection[str]) -> Mapping[str, Tries]:
    """Return the count of lost ranks by pod name, once `removed` are out of the list."""
    counted = dict(state.losses)
    for pod in state.rankless:
        last = state.losses.get(pod)
        count = last.count if last else 0
        if pod in removed or count == len(RENAMED.delays):
            counted[pod] = Tries(count=count + 1, at=state.now, uid=state.by_name[pod].pod.ref.uid)
    return counted


def lost(state: JobState, removed: Iterable[str]) -> tuple[str, ...]:
    """Return the pods that leave the list although they should have stayed.

    Their rank died, or they are not Ready or are gone. `removed`: the pods that leave it.
    """
    if state.stopped:
        return ()
    leave = {worker.name for worker in state.workers if _leaves_as_asked(worker)}
    stay = {*state.view.wanted_names} - leave
    return tuple(pod for pod in removed if pod in stay)


def _leaves_as_asked(worker: WorkerState) -> bool:
    """Tell whether a worker leaves the list without a loss: no rank dies that anybody wants."""
    if worker.rank_lost:
        return not worker.pod.probe.busy_seen
    return worker.cause != "" or not worker.wanted


def probe(state: JobState) -> Step[ProbeWorkers]:
    """Return the look into the published workers that is due, and when to look next."""
    hosts = tuple(_hosts(state))
    if not hosts:
        return NO_STEP
    pauses = _pauses(state, hosts)
    due = {worker.name: _probe_at(worker, pauses[worker.name], now=state.now) for worker in hosts}
    first = min(due.values())
    if first > state.now:
        return Step(again_at=first)
    # The longest overdue come first, because `act` drops those beyond its limits.
    first_due = sorted(hosts, key=lambda worker: due[worker.name])
    chosen = tuple(worker for worker in first_due if due[worker.name] <= state.now + TOGETHER)
    # Workers that are asked now answer in time or not; the others are due later.
    rest = [at for at in due.values() if at > state.now + TOGETHER]
    soon = LOOK_SOON
    if state.resume_at > state.now:
        soon = min(soon, _forming_pause(state, hosts))
    next_at = min([state.now + soon, *rest])
    return Step(ProbeWorkers(workers=chosen, published=True), next_at)


def _watched(moment: Moment) -> tuple[Worker, ...]:
    """Return the published workers whose ranks are looked at."""
    if not moment.may_number or len(moment.view.host_of) < 2:
        return ()  # a new name would not help, or a worker has no other to be compared with
    return tuple(_hosts(moment))


def _pauses(state: JobState, hosts: tuple[Worker, ...]) -> dict[str, float]:
    """Return the seconds between two looks into each published worker.

    Looks find lost ranks, but not under elastic.sh, which notices them itself. They also tell what
    a change of the list costs, and how far the training is (model/progress).
    """
    watched: tuple[Worker, ...] = ()
    if state.view.driver.spends_names and state.may_number and len(state.view.host_of) >= 2:
        watched = hosts  # as in _watched
    often = {
        *_suspicious(state, watched),
        *_starting(state, hosts),
        *roll_call.asked_in_vain(state),
    }
    usual = LOOK_SELDOM
    if not _may_tell(state):
        usual = _usual_pause(state, watched)
    pauses = {worker.name: LOOK_SOON if worker.name in often else usual for worker in hosts}
    if state.resume_at > state.now:
        most = _forming_pause(state, hosts)
        pauses = {pod: min(pause, most) for pod, pause in pauses.items()}
    launcher = state.view.launcher
    if launcher and launcher.held.roll_call.missing:
        soon = roll_call.asked_in_vain(state).intersection(pauses)
        pauses.update(dict.fromkeys(soon, LOOK_SOON))
        at_once = roll_call.missing(state).intersection(pauses)
        pauses.update(dict.fromkeys(at_once, 0.0))
    return pauses


def _usual_pause(state: JobState, watched: tuple[Worker, ...]) -> float:
    """Return the seconds between two looks into a worker, where no lines are to be read."""
    if not watched:
        return PROBES_APART
    launcher = state.view.launcher
    if launcher is None or not launcher.held.roll_call.answered:
        return LOOK_SELDOM
    if roll_call.suffices(state, watched):
        return roll_call.WORKERS_APART
    return LOOK_SELDOM


def _was_seen_twice(workers: Iterable[Worker]) -> bool:
    """Tell whether two looks in a row have seen a rank somewhere: before, no roll call helps."""
    for worker in workers:
        since = worker.probe.busy_since
        if since is not None and since < worker.probe.busy_at:
            return True
    return False


def _forming_pause(state: JobState, hosts: tuple[Worker, ...]) -> float:
    """Return the longest pause between two looks while the ranks left get over a loss.

    It is short if they will tell when they step again.
    """
    ledger = state.view.ledger
    if ledger is None or not ledger.has_lines:
        return LOOK_SELDOM
    return min(max(LOOK_FORMING, len(hosts) * LOOK_FORMING_EACH), LOOK_SOON)


def call(state: JobState) -> Step[LookIntoLauncher]:
    """Return the roll call that is due, or when the next is due (see roll_call).

    A job that writes lines of progress needs the looks into its workers for these lines, so at rest
    it has no roll calls.
    """
    if not _was_seen_twice(state.view.workers):
        return NO_STEP
    ledger = state.view.ledger
    at_rest = not _has_changed(state)
    if at_rest and ledger and ledger.has_lines:
        return NO_STEP
    if not state.view.driver.spends_names:
        return NO_STEP
    return roll_call.look(state, _watched(state), at_rest=at_rest)


def _may_tell(state: JobState) -> bool:
    """Tell whether the job writes lines of progress, or may yet begin to."""
    if state.view.ledger and state.view.ledger.has_lines:
        return True
    return _has_changed(state)


def _has_changed(state: JobState) -> bool:
    """Tell whether the list changed so recently that the job is not at rest."""
    memory, now = state.view.memory, state.now
    changed_at = max(honest(memory.added_at, now=now), honest(memory.removed_at, now=now))
    return now - changed_at < BEGINS_WITHIN


def _starting(state: JobState, hosts: tuple[Worker, ...]) -> list[str]:
    """Return the hosts of a new list in which no rank was seen yet, or no step of a new ring."""
    memory, ledger = state.view.memory, state.view.ledger
    changed_at = max(memory.added_at, memory.removed_at)
    if state.now - changed_at >= NEW_FOR:
        return []
    found = [worker.name for worker in hosts if not worker.probe.busy_seen]
    if ledger is None:
        return found
    return found + [one.name for one in hosts if ledger.began_before(one.ref.uid, changed_at)]


def _hosts(moment: Moment) -> Iterator[Worker]:
    """Yield the published workers of a job of ours into which a look shows whether ranks run."""
    view = moment.view
    if not view.elastic or not view.driver_running:
        return
    if moment.foreign or view.handed_over:
        return
    if view.facts.finished or view.facts.deleting:
        return
    hosts = (worker for worker in view.workers if worker.name in view.host_of)
    yield from (worker for worker in hosts if worker.ready and not worker.opaque)


def trains(worker: Worker) -> bool:
    """Tell whether the last look has shown a rank in a listed worker."""
    return worker.probe.busy_seen and worker.probe.idle_at is None


def _is_lost(moment: Moment, worker: Worker, others_busy_at: float, *, patience: float) -> bool:
    """Tell whether looks found the worker idle for long enough, while others trained."""
    probe = worker.probe
    if not _is_idle_now(moment, worker):
        return False
    if probe.idle_at is None or probe.idle_since is None:
        return False
    if others_busy_at <= probe.idle_since:
        return False  # nobody knows that other workers trained on without it
    # A driver that starts again starts all ranks again: what was seen before says nothing of them.
    started_at = _driver_started_at(moment)
    idle_for = probe.idle_at - max(probe.idle_since, started_at)
    if probe.busy_at > started_at:
        return idle_for >= patience
    return idle_for >= NEVER_TRAINED_AFTER and _may_never_train(moment, worker)


def _driver_started_at(moment: Moment) -> float:
    """Return the start of the driver; infinite while the driver does not run."""
    launcher = moment.view.launcher
    if launcher is None or launcher.facts.started_at is None:
        return math.inf
    return launcher.facts.started_at


def _surely_lost(moment: Moment, watched: Iterable[Worker]) -> Iterator[Worker]:
    """Yield the workers that are idle, and whose exec has ended."""
    launcher = moment.view.launcher
    if launcher is None or not launcher.held.ended:
        return
    for worker in watched:
        if _is_idle_now(moment, worker) and ended_execs.has_ended(launcher, worker):
            yield worker


def _is_idle_now(moment: Moment, worker: Worker) -> bool:
    """Tell whether a look found the worker idle that is not too old to be true now."""
    idle_at, now = worker.probe.idle_at, moment.now
    if idle_at is None:
        return False
    if idle_at != honest(idle_at, now=now):
        return False
    return now - idle_at <= LOOK_SELDOM


def _may_never_train(moment: Moment, worker: Worker) -> bool:
    """Tell whether a worker in which no rank was ever seen gets a new name: one, once."""
    if "max_np" in moment.view.facts.unread_options:
        return False  # horovodrun's own options may let no more workers train
    return worker.name not in moment.losses


def _suspicious(state: JobState, watched: tuple[Worker, ...]) -> frozenset[str]:
    """Return the pods to probe often: idle pods, and one witness.

    The witness is a pod that trains, and shows that training goes on.
    """
    busy = (worker for worker in watched if worker.probe.busy_seen)
    idle = (worker.name for worker in busy if worker.probe.idle_at is not None)
    doubtful = [pod for pod in idle if not RENAMED.is_given_up(state.losses.get(pod))]
    if not doubtful:
        return _NOBODY
    witness = [worker.name for worker in watched if trains(worker)][:1]
    return frozenset([*doubtful, *witness])


def _probe_at(worker: Worker, usual: float, *, now: float) -> float:
    asked_at = worker.probe.asked_at
    if not 0.0 < asked_at <= now:
        return 0.0
    return asked_at + drain.probe_pause(usual, worker.probe.failed, most=PROBES_APART)


def on_lost_nodes(
    moment: Moment, workers: Iterable[WorkerState], *, resume_at: float
) -> frozenset[str]:
    """Return the listed pods whose node is gone and that may leave the list now."""
    if not moment.view.elastic or moment.now < resume_at:
        return _NOBODY
    lost = [worker.pod for worker in workers if is_node_lost(worker)]
    if not moment.view.driver.keeps_ranks:
        return frozenset(pod.name for pod in lost)
    return frozenset(pod.name for pod in lost if frozen_execs.is_over(moment.view, pod))


def is_node_lost(worker: WorkerState) -> bool:
    """Tell whether the worker is listed although its node is gone."""
    return worker.pod.facts.node_gone_at > 0.0 and bool(worker.published)


def resume_at(moment: Moment, workers: Iterable[WorkerState]) -> float:
    """Return the earliest time of an addition after a loss; 0 if no addition has to wait.

    A worker whose node is gone counts as lost from the time at which its node was seen to go,
    although it is still listed. For any other lost worker the wait counts from the creation of the
    pod that takes its place, a time that is later than the loss and known to every process. But the
    wait counts at the latest from the time by which the last host that left the list must have been
    deleted, because a size may be asked for again much later.
    """
    view, memory, now = moment.view, moment.view.memory, moment.now
    if not view.driver.keeps_ranks:
        return 0.0  # no rank outlives a loss
    workers = tuple(workers)
    cut_off = [worker for worker in workers if is_node_lost(worker)]
    others = len(view.host_of) - len(cut_off)
    # A single rank waits for no other rank, unless a peer is cut off. If fewer workers are left
    # than the driver needs, the driver waits for any addition.
    if others < max(1 if cut_off else 2, view.facts.min_np_workers):
        return 0.0
    times = {worker.name: honest(worker.pod.facts.node_gone_at, now=now) for worker in cut_off}
    absent = [worker for worker in workers if worker.succeeds_lost and not worker.published]
    all_gone_at = _all_gone_at(moment)
    for worker in absent:
        times[worker.name] = min(honest(worker.pod.facts.created_at, now=now), all_gone_at)
    waits = [at for pod, at in times.items() if _matters(memory, pod)]
    if not waits:
        return 0.0
    if _have_formed(view, workers, since=max(waits)):
        return 0.0
    return max(waits) + _reform_for(view)


def _have_formed(view: JobView, workers: Iterable[WorkerState], *, since: float) -> bool:
    """Tell whether the ranks that are left have surely done steps without the lost ones since."""
    if view.ledger is None:
        return False
    left = [one.pod for one in workers if one.published and not one.pod.facts.node_gone_at]
    lost = [one for one in workers if is_node_lost(one)]
    if len(left) + len(lost) != len(view.host_of):
        return False
    pods = [pod.ref.uid for pod in left]
    return view.ledger.have_stepped(
        pods, ranks=len(pods) * view.facts.slots, since=since, skew=SKEW
    )


def _all_gone_at(moment: Moment) -> float:
    """Return the time by which the last host that left the list must have been deleted."""
    removed_at = honest(moment.view.memory.removed_at, now=moment.now)
    if removed_at:
        return drain.deadline(moment.view, removed_at)
    return math.inf


def _matters(memory: Memory, pod: str) -> bool:
    """Tell whether rank 0 may have been in a lost pod, and the others wait for it."""
    last = memory.hosts.get(pod)
    if last and last.reformed:
        return False
    return not memory.elders or pod in memory.elders


def _reform_for(view: JobView) -> float:
    """Return the seconds in which the others form their ring again after a loss."""
    return min(view.facts.gloo_timeout or GLOO_TIMEOUT, GLOO_TIMEOUT) + FORM
