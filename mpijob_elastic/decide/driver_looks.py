"""Looks for the acknowledgement of elastic.sh, while a worker drains (model/acknowledgement)."""

from mpijob_elastic.decide import drain
from mpijob_elastic.decide.actions import LookAtDriver
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.decide.step import NO_STEP, Step
from mpijob_elastic.model.acknowledgement import Acknowledgement

# The longest pause between two looks into a launcher that does not answer.
LOOKS_APART = 30.0


def look(state: JobState) -> Step[LookAtDriver]:
    """Return the look that is due of a driver that acknowledges, or when the next look is due."""
    launcher = state.view.launcher
    if launcher is None:
        return NO_STEP
    busy = [worker.drain for worker in state.to_delete if drain.may_be_busy(state, worker)]
    began = [one.began for one in busy if one and one.began is not None]
    if not began:
        return NO_STEP
    at = _at(launcher.acknowledged, began=max(began), now=state.now)
    if at > state.now:
        return Step(again_at=at)
    return Step(LookAtDriver(launcher=launcher))


def _at(last: Acknowledgement, *, began: float, now: float) -> float:
    """Return the time of the next look: often in the first seconds of a drain, then seldom."""
    if not began <= last.asked_at <= now:
        return began
    usual = drain.PROBE_LATER
    if last.asked_at - began < drain.PROBE_SOON_FOR:
        usual = drain.PROBE_SOON
    return last.asked_at + drain.probe_pause(usual, last.failed, most=LOOKS_APART)
