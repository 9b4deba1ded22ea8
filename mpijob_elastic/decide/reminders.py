"""Reminders: a line without slots, by which Horovod's driver speaks of the list to rank 0 again.

[horovod] The driver speaks to rank 0 once for each change of what the script prints
(runner/elastic/driver.py, _discover_hosts). Two things can lose that word, and nothing repeats it:
- Before rank 0 has entered hvd.elastic.run, nobody listens.
- While ranks form their ring anew, rank 0 drops what it hears: its queue is a new one after
  hvd.init() (common/elastic.py, on_reset), and hvd.init() takes until the last newcomer has
  started.
Then an added host stays unused, and a rank stays in a host that has left the list until the drain
deadline, when the rank is killed.

A line `NAME:0` changes what the script prints, but gives the driver no slot. The driver compares
its ranks with the list, and speaks to rank 0 if they differ; otherwise nothing happens
(_notify_workers_host_changes). So a needless reminder interrupts nothing.

- Each reminder has another name than the reminder before it. A line that only goes away would be a
  removal to the driver, and ranks that hear of nothing but a removal skip the synchronisation for
  which a new rank waits (HostsUpdatedInterrupt.skip_sync, horovod#3494). For the same reason a
  removal comes with a reminder while an added host may still be without a rank.
- The name leads to a pod of the list, by the number that kubexec.sh takes off: without
  --network-interfaces a driver that starts first runs a task on each name, with slots or not
  (gloo_run.py, get_common_interfaces).
- The line stays until the next change, and goes when another driver starts.

A reminder waits like an addition while ranks get over a loss (lost_ranks): if rank 0 has gone, the
driver hangs when it speaks to rank 0.
"""

from collections.abc import Collection
from typing import NamedTuple

from mpijob_elastic import names
from mpijob_elastic.decide import drain, host_list, lost_ranks
from mpijob_elastic.decide.state import SKEW, JobState, WorkerState, honest
from mpijob_elastic.model.launch_command import MPIRUN
from mpijob_elastic.model.memory import Reminded

# Seconds from the touch for the change, or for the last reminder, to the next reminder. Ranks that
# import for up to a minute have formed their ring before the usual drain-timeout of 60 s is over.
PAUSES = (5.0, 10.0, 10.0, 15.0, 15.0, 20.0, 40.0, 80.0, 160.0)
# Seconds from the touch until a driver has started a rank in an added host, if rank 0 commits soon:
# a look counts only after that.
ANSWERED_AFTER = 5.0
# Seconds after an addition for which an added host may be without a rank although no look has shown
# that.
NEW_FOR = 120.0
# Names of reminders are numbered from 1 to 9, then from 1 again.
_NUMBERS = 9


class Reminder(NamedTuple):
    """A reminder that is due, or the time of the next."""

    #: The pods about which the driver is to be reminded now.
    about: tuple[str, ...] = ()
    #: The time at which to look again (seconds since the epoch); None if only a change matters.
    again_at: float | None = None


NO_REMINDER = Reminder()


def may_remind(state: JobState) -> bool:
    """Tell whether a driver runs that can be reminded: the list is ours, and names lead to pods.

    A command that cannot be read may run Horovod; what mpirun does with a name is not known.
    elastic.sh needs no reminder: it tells itself which list it has taken.
    """
    view, config = state.view, state.view.config
    if view.foreign or not view.driver_running or not state.may_number:
        return False
    if config is None or config.published is None or not config.signed:
        return False
    launch = view.facts.launch
    if view.driver.acknowledges:
        return False
    return launch is None or launch.program not in MPIRUN


def count(state: JobState) -> int:
    """Return the number of reminders that the driver got since the last change of the list."""
    reminded = state.view.memory.reminded
    if reminded is None or _is_of_another_driver(state):
        return 0
    return reminded.count


def is_over(state: JobState) -> bool:
    """Tell whether the driver got all reminders of the last change."""
    return count(state) >= len(PAUSES)


def present(state: JobState) -> str:
    """Return the name of the reminder that stays in a list that does not change; "" without one."""
    if _is_of_another_driver(state):
        return ""
    return _present(state)


def beside_removal(state: JobState, published: Collection[str]) -> str:
    """Return the name of the reminder beside the pods that stay, of which one may have no rank."""
    if not may_remind(state):
        return ""
    return following(state, published)


def following(state: JobState, published: Collection[str]) -> str:
    """Return the name of the next reminder."""
    number = names.reminder_number(_present(state)) % _NUMBERS + 1
    for pod in published:
        return names.reminder(pod, number)
    return ""


def due(state: JobState, *, changes_at: float | None) -> Reminder:
    """Return the reminder that is due.

    `changes_at` is the time of the next change of the list, which says the same; None without one.
    """
    shown_at, now = state.launcher.shown_at, state.now
    if shown_at is None or is_over(state) or not may_remind(state):
        return NO_REMINDER
    pods = tuple(worker.name for worker in _unheard(state, shown_at))
    if not pods or not _is_whole(state):
        return NO_REMINDER
    at = max(shown_at + PAUSES[count(state)], state.resume_at)
    if changes_at is not None and changes_at <= max(at, now):
        return NO_REMINDER
    if at > now:
        return Reminder(again_at=at)
    return Reminder(about=pods)


def remembered(state: JobState, *, is_change: bool, reminds: bool) -> Reminded | None:
    """Return the count to remember with a write of the list."""
    if reminds:
        return Reminded(count=count(state) + 1, at=state.now)
    if is_change or _is_of_another_driver(state):
        return None
    return state.view.memory.reminded


def is_new(state: JobState, pod: str) -> bool:
    """Tell whether a listed pod was added so recently that reminders about it may be due."""
    memory = state.view.memory
    # If all listed pods are elders, nobody knows who came last.
    if pod in memory.elders and len(memory.elders) < len(state.view.host_of):
        return False
    return state.now - honest(memory.added_at, now=state.now) < sum(PAUSES)


def _present(state: JobState) -> str:
    config = state.view.config
    if config is None or config.published is None:
        return ""
    return config.published.reminder


def _is_of_another_driver(state: JobState) -> bool:
    """Tell whether the last reminder is older than the driver that runs, or none runs."""
    launcher, reminded = state.view.launcher, state.view.memory.reminded
    if launcher is None or not state.view.driver_running:
        return True
    started_at = launcher.facts.started_at
    if reminded is None or started_at is None:
        return False
    return honest(reminded.at, now=state.now) + SKEW < started_at


def _is_whole(state: JobState) -> bool:
    """Tell whether every listed pod lives, so that the driver reaches rank 0 wherever it is."""
    listed = [state.by_name.get(pod) for pod in state.view.host_of]
    return not any(host_list.is_dead(state, worker) for worker in listed)


def _unheard(state: JobState, shown_at: float) -> list[WorkerState]:
    """Return the workers that show that rank 0 may not have heard of the list."""
    leaving = [worker for worker in state.to_delete if drain.may_be_busy(state, worker)]
    waits = [worker for worker in leaving if not _is_past_deadline(worker, now=state.now)]
    return [*waits, *_unused(state, shown_at)]


def _is_past_deadline(worker: WorkerState, *, now: float) -> bool:
    """Tell whether the drain deadline of a worker has passed, so that the worker is deleted now."""
    if worker.drain is None or worker.drain.deadline is None:
        return False
    return worker.drain.deadline <= now


def _unused(state: JobState, shown_at: float) -> list[WorkerState]:
    listed = [worker for worker in state.workers if worker.published and worker.ready]
    training = sum(lost_ranks.trains(worker.pod) for worker in listed)
    most = state.view.facts.max_np_workers
    if training == 0 or 0 < most <= training:
        return []  # the driver still starts, or its options let no more workers train
    return [worker for worker in listed if _is_unused(state, worker, shown_at)]


def _is_unused(state: JobState, worker: WorkerState, shown_at: float) -> bool:
    probe = worker.pod.probe
    if worker.pod.opaque or probe.rank_seen or probe.idle_at is None:
        return False
    return shown_at + ANSWERED_AFTER <= probe.idle_at <= state.now
