"""Handover: the decision whose a job is when another program also writes its discover_hosts.sh.

A writer with the marks of an elastic operator (observe.views) will not give way, so we do: the job
gets a notice and no further write. But that operator may stop. So once it has been silent for a
while, a single write puts our list in the place of its list. If the operator lives, it replaces our
list at once, and the next try comes after twice as long; if our list stays for a minute, the job is
ours again. The time to wait is in the notice, which the operator leaves alone. The time is doubled
before the try, so a crash between the two writes costs time only. A user may give the job back to
us at any time by deleting the key.

An edit by any other writer is put right, because the driver would take garbage, or a list without a
worker, for the truth. The first edits are put right at once, later edits after ever longer pauses,
because two programs that never tire must not keep the API server busy.
"""

import math
import re
from dataclasses import replace

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note, Plan, TellUser, WriteConfig, warning
from mpijob_elastic.decide.state import MENDED, JobState, honest
from mpijob_elastic.decide.step import NOTHING_TOLD, Step, Told
from mpijob_elastic.decide.wishes import Manage
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.memory import Mended
from mpijob_elastic.model.phrases import listed

# Seconds for which another operator must be silent before its job is taken back; doubled after each
# vain try, up to LONGEST_SILENCE.
SILENT_FOR = 600.0
LONGEST_SILENCE = 86_400.0
# Seconds for which our list must then stay. An operator that lives replaces the list within one or
# two seconds.
PROVEN_AFTER = 60.0
# An edit so many seconds after the last edit has nothing to do with the last.
FORGIVEN_AFTER = 600.0
# Seconds for which an edit stays if its writer also dropped our memory: then the edits cannot be
# counted.
UNCOUNTED_PAUSE = 5.0

_WAIT = re.compile(r"not written to it for (?P<wait>[0-9a-z.]+)")


def reason(view: JobView, *, stops: bool, now: float) -> str:
    """Return the reason why a job is left alone; "" if it is ours, or is to be taken back now.

    stops: the job is to be stopped.
    """
    # A job that is over gets no write of any operator, so its silence proves nothing. It gets no
    # write of our list either, so it would never be ours, and a notice on its end would take turns
    # with the notice HandedOver for ever.
    if not view.handed_over or view.is_over(stops=stops):
        return view.foreign
    if _is_given_back(view) or _back_at(view) <= now:
        return ""
    return view.foreign


def farewell(state: JobState) -> Plan:
    """Return the plan with one notice on a job that was ours, and the time to take it back."""
    view = state.view
    if view.facts.finished:
        return Plan()
    if state.wishes.manage:
        return _told_once(view, state.wishes.manage)
    if view.handed_over:
        is_over = view.is_over(stops=state.wishes.suspend is not None)
        if is_over or math.isinf(view.foreign_at):
            return Plan()
        return Plan(wake_at=_back_at(view))
    if not view.facts.reported or not _was_ours(view):
        return Plan()
    return Plan(actions=(_notice(view, why=state.foreign, wait=SILENT_FOR),))


def _told_once(view: JobView, manage: Manage) -> Plan:
    """Return the plan with the notice of a capability on a job that another controller manages."""
    note = manage.note
    if note is None or note.line == view.facts.notices:
        return Plan()
    return Plan(actions=(TellUser(ref=view.ref, text=note.line, notes=(note,)),))


def take_back(state: JobState, config: Config, change: Step[WriteConfig]) -> Plan | None:
    """Return the plan for a job that was handed over; None once the job is ours.

    `change` is the due write of our list.
    """
    view, now, write = state.view, state.now, change.write
    if view.foreign:
        if write is None:
            return Plan(wake_at=change.again_at)
        if _is_given_back(view):
            return None
        notice = _notice(view, why=view.foreign, wait=min(2 * _wait(view), LONGEST_SILENCE))
        return Plan(
            actions=(TellUser(ref=view.ref, text=notice.text), replace(write, takes_back=True))
        )
    last = view.memory.mended
    if last is None or not config.signed:
        return None
    proven_at = honest(last.at, now=now) + PROVEN_AFTER
    if proven_at <= now:
        return None
    return Plan(wake_at=proven_at)


def mends_at(config: Config, *, now: float) -> float:
    """Return the time from which another writer's script may be replaced; 0 if at once."""
    if config.memory is None:
        as_created = config.facts.script in (None, names.discover_hosts([], slots=1))
        if as_created:
            return 0.0
        return honest(config.facts.written_at, now=now) + UNCOUNTED_PAUSE
    last = config.memory.mended
    if last:
        return MENDED.due_at(last, now=now)
    return 0.0


def mended(state: JobState) -> Mended | None:
    """Return the count of replaced scripts to store with the next write."""
    config, old, now = state.view.config, state.view.memory.mended, state.now
    if old and now - old.at >= FORGIVEN_AFTER:
        old = None
    if config is None or not _replaces_script(state, config):
        if old:
            return msgspec.structs.replace(old, at=min(old.at, now))
        return None
    writer = config.facts.writer
    if _wrote_script(config):
        writer = ""
    before = old.count if old else 0
    return Mended(count=before + 1, at=now, writer=writer)


def _replaces_script(state: JobState, config: Config) -> bool:
    """Tell whether a write of our list replaces what another program wrote."""
    if state.edited:
        return True
    if not state.view.foreign:
        return False
    return config.facts.script is not None


def too_long(config: Config, *, elastic: bool) -> Note:
    """Return the warning on texts of the ConfigMap that are too long to keep."""
    keys, name = listed(config.facts.cut), config.ref.name
    step = f"kubectl -n {config.ref.namespace} get configmap {name} --show-managed-fields -o yaml"
    consequence = (
        "What is too long counts as changed by another program and is put right; stop that program"
        if elastic
        else "The job goes on, and nothing in the ConfigMap is changed; shorten what is too long"
    )
    message = f"ConfigMap {name} has more text than its workers need, in {keys}. {consequence}"
    return warning("ConfigTooLarge", message, next_step=step)


def changed(config: Config) -> str:
    """Return the words for what another program changed, if script and memory do not match."""
    if _wrote_script(config):
        return (
            f"annotation {names.MEMORY} of ConfigMap {config.ref.name} was changed by another "
            "program"
        )
    return f"{names.KEY_DISCOVER_HOSTS} was changed by {config.facts.writer or 'another program'}"


def _wrote_script(config: Config) -> bool:
    """Tell whether we were the last to write the script, so that only the memory was changed."""
    if config.facts.script is None:
        return False
    return config.facts.writer == names.PROGRAM


def contested(state: JobState) -> Told:
    """Return the notice while another program keeps changing the script, and when it ends."""
    last = state.view.memory.mended
    if last is None or last.count <= 1:
        return NOTHING_TOLD
    over_at = last.at + FORGIVEN_AFTER
    if over_at <= state.now:
        return NOTHING_TOLD
    longest = phrases.duration(MENDED.delays[-1])
    message = (
        f"{last.writer or 'another program'} keeps changing {names.KEY_DISCOVER_HOSTS} in "
        f"ConfigMap {names.config_map(state.view.name)}. It is put right each time, after a pause "
        f"that grows up to {longest}; stop the other writer"
    )
    step = f"kubectl -n {state.view.namespace} get configmap {names.config_map(state.view.name)}"
    step = f"{step} --show-managed-fields -o yaml"
    return Told((warning("HostListContested", message, next_step=step),), (over_at,))


def outlook(view: JobView) -> str:
    """Return, in words, when a job that is left alone becomes ours."""
    if not (view.handed_over or _was_ours(view)):
        return "It has never been ours, and is managed once these are gone."
    return _outlook(view, wait=_wait(view))


def _outlook(view: JobView, *, wait: float) -> str:
    if math.isinf(view.foreign_at):
        return "It is managed again when these are gone."
    return (
        "It is taken back once the other operator has not written to it for "
        f"{phrases.duration(wait)}."
    )


def _is_given_back(view: JobView) -> bool:
    if view.config is None or math.isinf(view.foreign_at):
        return False
    return view.config.facts.script is None


def _back_at(view: JobView) -> float:
    return view.foreign_at + _wait(view)


def _wait(view: JobView) -> float:
    found = _WAIT.search(view.facts.notices)
    if found is None:
        return SILENT_FOR
    return phrases.parse_duration(found["wait"].rstrip(".")) or SILENT_FOR


def _notice(view: JobView, *, why: str, wait: float) -> TellUser:
    advice = (
        "To have it managed again at once, stop that operator and delete key "
        f"{names.KEY_DISCOVER_HOSTS} from ConfigMap {names.config_map(view.name)}"
    )
    if surplus := [worker.name for worker in view.surplus if not worker.facts.deleting]:
        # [v0.3.0] knows surplus workers by a label that the workers of [operator] lack.
        advice = (
            f"Delete {listed(surplus)} yourself: no controller deletes these surplus workers. "
            f"{advice}"
        )
    if view.driver.acknowledges:
        # [v0.3.0] writes all keys of the ConfigMap anew. The launcher mounts elastic.sh as a key
        # that must exist, and the kubelet changes none of its files while the key is missing.
        advice = (
            f"Without {names.KEY_ELASTIC} in ConfigMap {names.config_map(view.name)}, as v0.3.0 "
            "leaves it, the running launcher learns of no other size, and a new one does not "
            f"start: create the job again. {advice}"
        )
    message = (
        f"{view.name} is no longer managed by mpijob-elastic: {why}. "
        f"{_outlook(view, wait=wait)} {advice}"
    )
    note = warning(names.REASON_HANDED_OVER, message)
    return TellUser(ref=view.ref, text=note.line, notes=(note,))


def _was_ours(view: JobView) -> bool:
    """Tell whether a trace of ours shows that we managed the job."""
    if view.facts.notices:
        return True
    if view.config and view.config.memory:
        return True
    return view.launcher is not None and bool(view.launcher.facts.refreshed)
