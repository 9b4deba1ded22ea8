"""The phase of a job in a word, for `kubectl get` and `get`: what is under way, "" at rest."""

from mpijob_elastic.decide.state import JobState, Standing

SCALING, DRAINING, QUEUED, SUSPENDED = "Scaling", "Draining", "Queued", "Suspended"
WORDS = (SCALING, DRAINING, QUEUED, SUSPENDED)


def word(state: JobState) -> str:
    """Return the phase: the first of Queued, Suspended, Draining and Scaling that holds.

    Queued or suspended: nothing of it may run. Draining: a rank may run in a worker that leaves. Scaling: the host list
    is not what the size asks for.
    """
    view, stopped_by = state.view, state.wishes.stopped_by
    if view.foreign or state.foreign or view.handed_over or view.ended or view.facts.deleting:
        return ""
    if state.wishes.stop:
        return QUEUED if stopped_by and stopped_by.queued else SUSPENDED
    if view.launcher and view.launcher.facts.held_back:
        return QUEUED if view.facts.queued else ""
    if not (view.elastic and view.driver_running and view.facts.size_known):
        return ""
    if any(worker.drain for worker in state.leaving):
        return DRAINING
    given_up = {worker.name for worker in state.workers if worker.standing in (Standing.GIVEN_UP, Standing.ENDED)}
    wanted = view.wanted_names[: view.facts.size_at_most(view.replicas)]
    return "" if set(wanted) - given_up == set(view.host_of) - given_up else SCALING
