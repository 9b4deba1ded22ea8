"""History: what changed the number of a job's workers, and what is under way.

See decide.state and model.history.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from mpijob_elastic import names
from mpijob_elastic.capabilities.history import changes
from mpijob_elastic.capabilities.history.changes import Sized
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.decide.capability import Capability, Record
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.wishes import Wish
from mpijob_elastic.model import history
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.json_parts import Managed, shared
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Policy, Problem

# [operator] After each event of a pod, the operator writes the status. A write of ours in between
# is a conflict for it, after which it may put the job off for minutes. So marks wait this many
# seconds after the last event that the operator follows.
QUIET = 5.0
# The field manager of the HPA controller, and the subresource that it writes to.
_HPA_MANAGER = ("kube-controller-manager", "scale")
# Characters of our annotations that are kept; our own texts are shorter.
_LONGEST_PHASE, _LONGEST_CHANGE = 32, 512


class History(Capability):
    """The history of an elastic job, and the phase of any job that has one."""

    name = "history"

    @classmethod
    def asked(cls, job: MPIJob, known: Policy) -> tuple[CapabilityFacts | None, Sequence[Problem]]:  # noqa: ARG003
        """Return the author of the size; None if no author is known."""
        found = job.sized
        if found is None:
            return None, ()
        said = job.metadata.annotations
        parks = names.PARKED in said
        edited = job.annotated(names.PARKED) if parks else job.edited
        sized = Sized(
            by=_manager(found),
            at=found.at,
            parks=parks,
            edited_by=_manager(edited) if edited else "",
            edited_at=edited.at if edited else 0.0,
            is_hpa=(found.manager, found.subresource) == _HPA_MANAGER,
            phase=shared(said.get(names.PHASE, "")[:_LONGEST_PHASE]),
            change=said.get(names.CHANGE, "")[:_LONGEST_CHANGE],
        )
        return sized, ()

    @classmethod
    def told(cls, view: JobView) -> Capability | None:
        """Return the capability for a job that can change or wait, or has our marks from before."""
        job = view.facts.of(Sized)
        can_change = view.facts.elastic or view.elastic or view.facts.queued
        return cls() if job and (can_change or job.phase or job.change) else None

    def remember(self, state: JobState, published: Collection[str]) -> Iterable[Record]:
        """Yield the changes that are followed, and with new ones the history that has them."""
        sized = state.view.facts.of(Sized)
        followed = changes.following(state, sized, published) if sized else None
        if followed is None:
            return
        entry = changes.rendered(followed)
        annotations = _annotations(state.view, followed, entry)
        notes = _notes(state.view, followed)
        yield Record(name=changes.NAME, json=entry, annotations=annotations, notes=notes)

    def wishes(self, view: JobView, *, now: float) -> Iterable[Wish]:
        """Yield a wish to see the job again when a mark may be written."""
        at = _quiet_at(view)
        if now < at < math.inf:
            yield Wish(by=self.name, until=at)

    def marks(self, state: JobState) -> Iterable[tuple[str, str]]:
        """Yield the phase, and the change that the history does not have yet."""
        view, said = state.view, state.view.facts.of(Sized)
        is_held = view.launcher is not None and view.launcher.facts.held_back
        # The operator loses a condition if somebody writes to the job before the operator has
        # written the job's status (see decide.notices).
        if (
            not said
            or view.facts.deleting
            or view.handed_over
            or not (view.facts.reported or is_held)
        ):
            return
        if state.now < _quiet_at(view):
            return
        change = None if state.foreign or view.ended else changes.unrecorded(state, said)
        due = {
            names.PHASE: (said.phase, state.phase),
            names.CHANGE: (said.change, changes.rendered(change).decode() if change else ""),
        }
        yield from ((key, text) for key, (before, text) in due.items() if text != before)


def _notes(view: JobView, followed: changes.Followed) -> tuple[Note, ...]:
    """Return what the changes have cost that the memory does not have yet."""
    if view.ledger is None:
        return ()
    before = changes.remembered(view.memory.own.get(changes.NAME))
    return tuple(changes.told(before, followed, in_gpus=view.ledger.in_gpus))


def _annotations(view: JobView, followed: changes.Followed, entry: bytes) -> Mapping[str, str]:
    """Return the history with these changes; nothing if the memory has this entry already."""
    config = view.config
    if config is None or not followed.changes:
        return {}
    if config.memory and config.memory.own.get(changes.NAME) == entry:
        return {}
    return {names.HISTORY: history.merged(config.facts.history.decode(), followed.changes)}


def _manager(found: Managed) -> str:
    return shared(history.short(found.manager, most=history.LONGEST_MANAGER))


def _quiet_at(view: JobView) -> float:
    """Return the time from which the operator has nothing to do for the job.

    It is inf while the operator still has to create pods.
    """
    if view.missing and not view.ended:
        return math.inf
    sized = view.facts.of(Sized)
    times = [at for pod in view.workers for at in (pod.facts.created_at, pod.facts.ready_at or 0.0)]
    return max((sized.at if sized else 0.0, *times)) + QUIET
