"""The ConfigMap as it should be: the next host list, its hostfile, and the memory of the change.

All three are in a single write, so a crash leaves either the old state or the new state.

After the write the launcher is touched: a kubelet syncs a pod at once when the pod's annotations
change, and mounts the ConfigMap in the version that the kubelet knows. If its watch of the
ConfigMap lags behind its watch of the pod, it mounts the old list, and looks again only after 60 to
90 s, perhaps after the drain-timeout. A rank may stay in a leaving worker because of that, or
because rank 0 did not hear of the list. So the list gets a reminder (see reminders), with a touch
of its own. If the driver cannot be reminded, the touch alone is repeated. Drains count from the
first touch, so a repetition makes no drain longer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide import (
    drain,
    handover,
    host_list,
    launcher_start,
    ledger,
    list_text,
    lost_ranks,
    moves,
    next_memory,
    reminders,
)
from mpijob_elastic.decide.actions import Note, RefreshLauncher, WriteConfig, normal, warning
from mpijob_elastic.decide.state import TOUCHED, JobState, WorkerState
from mpijob_elastic.decide.step import NO_STEP, Step, first, first_after
from mpijob_elastic.model import elastic_script, kubexec, phrases
from mpijob_elastic.model.job import Config
from mpijob_elastic.model.memory import Tries
from mpijob_elastic.model.phrases import listed

# Seconds after the first touch at which the touch is repeated while a rank may run in a leaving
# worker. A watch mostly lags for a moment only, and soon after the last repetition the kubelet has
# looked by itself.
TOUCH_AGAIN_AFTER = (5.0, 15.0, 35.0, 75.0)


def write(state: JobState, config: Config) -> Step[WriteConfig]:
    """Return the write of the ConfigMap that is due."""
    if config.facts.cut and not state.view.elastic:
        return NO_STEP  # the job's hostfile stays as it is, and was not read
    if not state.view.elastic and state.view.facts.driver.acknowledges:
        return _only_driver(state, config)
    step = host_list.following(state)
    if state.reads_nothing and not step.hosts:
        # A list that the driver cannot read is better than an empty list.
        return Step(again_at=step.wake_at)
    change, wake_at = _change(state, config, step.hosts), step.wake_at
    is_same = _is_same(config, change)
    if is_same and _may_be_unheard(state):
        reminder = reminders.due(state, changes_at=step.wake_at)
        wake_at = first([wake_at, reminder.again_at])
        if reminder.about:
            is_same = False
            change = _reminding(state, config, change, reminder.about)
    records = next_memory.records(state, change)
    memory = next_memory.memory(state, config, change, records)
    if is_same and not next_memory.is_due(state, config, memory):
        return Step(again_at=wake_at)
    annotations: dict[str, str] = {}
    for record in records:
        annotations.update(record.annotations)
    lost = lost_ranks.lost(state, change.removed)
    change = replace(change, memory=memory, annotations=annotations, lost=lost)
    notes = [*_notes(state, config, change)]
    for record in records:
        notes += record.notes
    return Step(replace(change, notes=tuple(notes)), wake_at)


def account(state: JobState) -> Step[WriteConfig]:
    """Return the write of what a job that is over has spent: the last one, unless it is written."""
    view, config = state.view, state.view.config
    if config is None or config.memory is None or not config.signed:
        return NO_STEP
    if not view.facts.finished:
        return NO_STEP  # the launcher may yet be made again
    spent = ledger.final(view, now=state.now)
    script = config.facts.script
    if spent is None or script is None:
        return NO_STEP
    memory = msgspec.structs.replace(view.memory, spent=spent)
    return Step(
        WriteConfig(ref=config.ref, script=script, hostfile=config.facts.hostfile, memory=memory)
    )


def _only_driver(state: JobState, config: Config) -> Step[WriteConfig]:
    """Return the write of what a job needs that elastic.sh runs at a fixed size, or no write.

    The webhook has written the list of such a job with all its workers.
    """
    text = _elastic(state, config)
    script = config.facts.script
    if script is None:
        slots = state.view.facts.slots
        script = names.discover_hosts(list(state.view.wanted_names), slots=slots)
    if text is None and script == config.facts.script:
        return NO_STEP
    hostfile, memory = config.facts.hostfile, state.view.memory
    return Step(
        WriteConfig(ref=config.ref, script=script, hostfile=hostfile, memory=memory, elastic=text)
    )


def _is_same(config: Config, change: WriteConfig) -> bool:
    """Tell whether the write would change nothing but the memory."""
    before = (config.facts.script, config.facts.hostfile)
    if (change.script, change.hostfile) != before:
        return False
    return change.kubexec is None and change.elastic is None


def _may_be_unheard(state: JobState) -> bool:
    """Tell whether a look found a leaving worker busy, or a listed worker without a rank.

    Nearly always neither holds, so nothing else is looked at.
    """
    for worker in state.to_delete:
        was_looked_at = worker.pod.opaque or worker.pod.probe.asked_at > 0.0
        if was_looked_at and worker.pod.probe.idle_at is None:
            return True
    probes = [worker.pod.probe for worker in state.workers if worker.published]
    return any(probe.idle_at is not None and not probe.rank_seen for probe in probes)


def _reminding(
    state: JobState, config: Config, change: WriteConfig, about: tuple[str, ...]
) -> WriteConfig:
    """Return the write of the same list with the next reminder."""
    published = state.view.published_pods
    line = reminders.following(state, published)
    return replace(
        change,
        script=list_text.script(state, config, published, reminder=line),
        kubexec=_kubexec(config),
        reminds=about,
    )


def mark(config: Config, *, at: float, again: int = 0) -> str:
    """Return the text of the launcher's annotation.

    It holds the digest of the changed list, the time `at` of the first touch for that list, and the
    number of the repetition.
    """
    if again:
        return f"{config.digest}@{at}+{again}"
    return f"{config.digest}@{at}"


def refresh(state: JobState, config: Config) -> Step[RefreshLauncher]:
    """Return the touch of the launcher that is due, or when the next touch may be due."""
    launcher, known, now = state.view.launcher, state.launcher, state.now
    if launcher is None or not known.can_be_shown:
        return NO_STEP
    refused = launcher.refused.tries if launcher.refused else None
    if refused and (again_at := TOUCHED.due_at(refused, now=now)) > now:
        return Step(again_at=again_at)
    repetition = Repetition()
    if known.shown_at is not None:
        repetition = _repetition(state, known.shown_at)
        if repetition.number <= known.again:
            return Step(again_at=repetition.next_at)
    text = mark(config, at=known.shown_at or now, again=repetition.number)
    count = refused.count + 1 if refused else 1
    tries = Tries(count=count, at=now, uid=launcher.ref.uid)
    again = repetition.number
    return Step(RefreshLauncher(ref=launcher.ref, text=text, tries=tries, again=again))


class Repetition(NamedTuple):
    """The repetition of a touch that is due."""

    #: The number of the repetition; 0 if none is due, or for the first touch.
    number: int = 0
    #: The time of the next repetition (seconds since the epoch); None without one.
    next_at: float | None = None


def _repetition(state: JobState, shown_at: float) -> Repetition:
    """Return the repetition of the touch of `shown_at` that is due now."""
    if not any(drain.may_be_busy(state, worker) for worker in state.to_delete):
        return Repetition()
    if reminders.may_remind(state):
        return Repetition()  # a reminder brings a touch of its own
    times = [shown_at + after for after in TOUCH_AGAIN_AFTER]
    return Repetition(sum(at <= state.now for at in times), first_after(state.now, times))


def _change(state: JobState, config: Config, published: tuple[str, ...]) -> WriteConfig:
    """Return the write that publishes these pods, with the old memory."""
    view = state.view
    slots = list_text.slots_of_each(state, config)
    hosts = [list_text.host_name(state, pod) for pod in published]
    staying = set(published)
    added = tuple(pod for pod in published if pod not in view.host_of)
    removed = tuple(pod for pod in view.host_of if pod not in staying)
    line = ""  # an addition says the same as a reminder
    if removed and _has_unheard(state, published):
        line = reminders.beside_removal(state, published)
    if not (added or removed):
        line = _present_line(state, config)
    is_numbered = hosts != list(published) or line != ""
    return WriteConfig(
        ref=config.ref,
        memory=view.memory,
        script=list_text.script(state, config, published, reminder=line),
        elastic=_elastic(state, config),
        kubexec=_kubexec(config) if view.elastic and is_numbered else None,
        hostfile=_hostfile(state, config, published, slots),
        added=added,
        removed=removed,
    )


def _has_unheard(state: JobState, published: Iterable[str]) -> bool:
    """Tell whether a worker that stays listed may still be without a rank."""
    probes = [state.by_name[pod].pod.probe for pod in published if pod in state.by_name]
    unseen = [probe for probe in probes if not probe.rank_seen]
    if state.now - state.view.memory.added_at < reminders.NEW_FOR:
        return unseen != []
    return any(probe.idle_at is not None for probe in unseen)


def _present_line(state: JobState, config: Config) -> str:
    """Return the reminder that stays in a list that does not change; "" without one."""
    if config.published is None or not config.published.reminder:
        return ""
    return reminders.present(state)


def _elastic(state: JobState, config: Config) -> str | None:
    """Return elastic.sh if the ConfigMap lacks it; None if it has it, or needs none.

    The webhook adds it to the ConfigMap of a job that it knows by then. A container is not created
    before all its files are there, so a launcher waits for this write; and while a file is missing,
    a kubelet brings no other change to a launcher that runs. A job keeps the version that it has:
    of two controllers during an upgrade only one may write its own.
    """
    drivers = (state.view.driver, state.view.facts.driver)
    if config.facts.elastic or not any(driver.acknowledges for driver in drivers):
        return None
    return elastic_script.TEXT


def _kubexec(config: Config) -> str | None:
    """Return kubexec.sh with our edit, which finds every pod.

    None if it does so already, also by the edit of an earlier version, or is not the operator's.
    """
    before = config.facts.kubexec
    if kubexec.is_mapped(before):
        return None
    return kubexec.mapped(before)


def _hostfile(state: JobState, config: Config, published: tuple[str, ...], slots: int) -> str:
    view = state.view
    if not view.elastic:
        # mpirun was given its -np, and a hostfile that shrinks or grows can only do harm.
        return config.facts.hostfile
    if view.driver_running:
        # A recreated launcher waits for each worker of the hostfile, so these are workers that run.
        if published:
            return names.hostfile(list(published), slots=slots)
        return config.facts.hostfile
    return names.hostfile(list(launcher_start.awaited(state, config)), slots=slots)


def _notes(state: JobState, config: Config, change: WriteConfig) -> Iterable[Note]:
    if state.edited:
        yield warning("HostListEdited", f"{handover.changed(config)}; it is put right")
    if config.facts.cut:
        yield handover.too_long(config, elastic=True)
    before = len(state.view.host_of)
    after = before + len(change.added) - len(change.removed)
    sizes = f"{before} → {after} of {state.view.replicas} desired workers"
    if change.added:
        added = listed(list_text.host_name(state, pod) for pod in change.added)
        yield normal("HostsPublished", f"{added} added to discover_hosts.sh: {sizes}")
    if change.removed:
        yield from _removed(state, change, sizes)
    if change.added:
        yield from _renamed(state, change.added)
    if change.reminds and change.memory.reminded and change.memory.reminded.count == 1:
        yield normal("HostListRepeated", _reminder_words(state, change.reminds))


def _reminder_words(state: JobState, about: Sequence[str]) -> str:
    unused = [pod for pod in about if pod in state.view.host_of]
    busy = [pod for pod in about if pod not in state.view.host_of]
    seen = [f"{listed(unused)} listed without a rank"] if unused else []
    seen += [f"a rank may still run in {listed(busy)}"] if busy else []
    return (
        f"{', '.join(seen)}: Horovod's driver is reminded of {names.KEY_DISCOVER_HOSTS}, by a line "
        "without slots. The driver speaks of a change once, and rank 0 does not hear it while "
        "ranks start"
    )


def _removed(state: JobState, change: WriteConfig, sizes: str) -> Iterable[Note]:
    gone = [state.by_name[pod] for pod in change.removed if pod in state.by_name]
    without_rank = [worker for worker in gone if worker.rank_lost]
    cut_off = [pod for pod in change.lost if pod in state.cut_off]
    others = {*change.lost} - state.cut_off - {worker.name for worker in without_rank}
    surplus = [pod for pod in change.removed if _is_to_go(state, pod)]
    disrupted = [
        f"{worker.name} ({moves.cause(worker)})"
        for worker in gone
        if worker.wanted and worker.cause
    ]
    limit = phrases.duration(state.view.policy.drain_timeout)
    nodes = {state.by_name[pod].pod.facts.node for pod in cut_off}
    for note, reason, pods, why in (
        (normal, "Draining", surplus, f"{sizes}; draining for at most {limit}"),
        (warning, "Disruption", disrupted, sizes),
        (warning, "HostsLost", cut_off, f"node {listed(sorted(nodes))} is gone"),
        (warning, "HostsLost", [pod for pod in change.lost if pod in others], "not Ready"),
    ):
        if pods:
            yield note(reason, f"{listed(pods)} removed from discover_hosts.sh: {why}")
    yield from _without_rank(without_rank)


def _is_to_go(state: JobState, pod: str) -> bool:
    """Tell whether the size does not ask for this pod."""
    if worker := state.by_name.get(pod):
        return not worker.wanted
    index = names.worker_index(pod, job=state.view.name) or 0
    return index not in state.view.wanted


def _without_rank(workers: Sequence[WorkerState]) -> Iterable[Note]:
    died = [worker.name for worker in workers if worker.pod.probe.busy_seen]
    if died:
        yield warning(
            "RankLost",
            f"{listed(died)}: the rank was killed or crashed, because only the main process still "
            "runs while other workers train. Horovod never reuses the host name, so the worker "
            "gets a new host name",
        )
    unused = [worker.name for worker in workers if not worker.pod.probe.busy_seen]
    if unused:
        wait = phrases.duration(lost_ranks.NEVER_TRAINED_AFTER)
        message = (
            f"{listed(unused)}: no rank seen for {wait} while other workers train, although "
            "Horovod's driver was reminded of the host list. Horovod may have blacklisted the host "
            "name, so the worker gets a new host name, once"
        )
        yield normal("HostUnused", message)


def _renamed(state: JobState, added: Iterable[str]) -> Iterable[Note]:
    newcomers = [state.by_name[pod] for pod in added]
    renamed = [
        f"{worker.name} listed as {worker.host}" for worker in newcomers if worker.incarnation
    ]
    if renamed:
        yield normal(
            "HostRenamed",
            f"{listed(renamed)} in {names.KEY_DISCOVER_HOSTS}: a rank may have died under the "
            "previous host name, which Horovod never reuses",
        )
    kept = [worker.name for worker in newcomers if worker.succeeds_lost and not state.may_number]
    if kept:
        yield warning(
            "HostNameKept",
            f"{listed(kept)}: a rank may have died under this host name, but the worker cannot get "
            f"a new host name, because {names.KEY_KUBEXEC} in ConfigMap "
            f"{names.config_map(state.view.name)} was edited. If Horovod does not use the worker, "
            "revert the edit or pass --blacklist-cooldown-range MIN MAX to horovodrun",
        )
