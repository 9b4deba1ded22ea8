"""Handover: jobs that another, elastic operator manages get no more writes, and a last notice.

Two signs. Objects of the job are such an operator's (observe.views). Or somebody else wrote discover_hosts.sh twice: a
hand edit is mended once, but if two writers alternate, we have to give way, because an operator will not. When it was
mended is remembered beside the list; that we gave way, in what is said on the job, so a restart begins no second fight.
"""

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Plan, TellUser, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import Config, JobView
from mpijob_elastic.model.phrases import listed

# Seconds after a mended script within which another foreign script is taken as intended.
MENDED_FOR = 600.0


def reason(view: JobView, *, now: float) -> str:
    """Return why a foreign or edited job is left alone, in words; "" if it is ours."""
    if view.foreign:
        return view.foreign
    if not view.handed_over and (view.finished or now - view.memory.mended_at > MENDED_FOR):
        return ""
    return f"another writer changed its {names.KEY_DISCOVER_HOSTS} again"


def is_edited(config: Config) -> bool:
    """Return True if the script is not the script that our memory was written with."""
    if config.memory is None or config.script is None:
        return False
    return config.memory.script != config.fingerprint


def farewell(state: JobState) -> Plan:
    """Return the last write: a notice on a job that was ours, once, whatever the other operator does later."""
    view = state.view
    if view.handed_over or view.finished or not (view.reported and _was_ours(view)):
        return Plan()
    message = f"{view.name} is no longer managed by mpijob-elastic: {state.foreign}. {_advice(view)}"
    note = warning(names.REASON_HANDED_OVER, message)
    return Plan(actions=(TellUser(ref=view.ref, text=note.line, notes=(note,)),))


def _was_ours(view: JobView) -> bool:
    memory = view.config and view.config.memory
    shown = view.launcher and view.launcher.refreshed
    return bool(view.notices or memory or shown)


def _advice(view: JobView) -> str:
    surplus = [worker.name for worker in view.surplus if not worker.deleting]
    back = (
        f"To have it managed again, stop the other writer and delete key {names.KEY_DISCOVER_HOSTS} from "
        f"ConfigMap {names.config_map(view.name)}"
    )
    if not surplus:
        return back
    # [v0.3.0] knows surplus workers by a label that workers of [operator] do not carry.
    return f"Delete {listed(surplus)} yourself: no controller deletes these surplus workers. {back}"
