"""The HPA that a job asks for: made, kept as it should be, paused while the job is suspended, and deleted.

Two HPAs on one job block one another (kube-controller-manager's AmbiguousSelector), so ours gives way to any other.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.decide.actions import (
    AutoscalerAction,
    ChangeAutoscaler,
    DeleteAutoscaler,
    MakeAutoscaler,
    Note,
    normal,
    warning,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import autoscale
from mpijob_elastic.model.autoscale import Autoscaler
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed


def write(state: JobState) -> AutoscalerAction | None:
    """Return the write that is due, or None."""
    view = state.view
    if view.autoscalers is None or state.foreign or view.facts.deleting:
        return None
    mine = next((found for found in view.autoscalers if _is_ours(view, found)), None)
    asked, least, most = view.policy.autoscale, view.policy.min_replicas, view.policy.max_replicas
    why = _why_not(view)
    if why or asked is None or least is None or most is None:
        if mine is None or mine.deleting:
            return None
        note = normal("AutoscalerDeleted", f"HPA {mine.metadata.name} is deleted: {why}")
        return DeleteAutoscaler(ref=mine.metadata, note=note)
    spec = autoscale.spec(asked, view.name, least=least, most=most, paused=bool(view.suspended_by))
    if mine and mine.digest == autoscale.digest(spec):
        return None
    name = names.autoscaler(view.name)
    message = f"HPA {name}: {least} to {most} workers by {asked.name or 'cpu'}"
    paused = ", paused while the job is suspended" if view.suspended_by else ""
    if mine:
        return ChangeAutoscaler(ref=mine.metadata, spec=spec, note=normal("AutoscalerChanged", message + paused))
    return MakeAutoscaler(job=view.ref, spec=spec, note=normal("AutoscalerCreated", message + paused))


def notes(view: JobView) -> Iterator[Note]:
    """Yield what keeps a job from being scaled as it asks."""
    if others := rivals(view):
        yield warning(
            "AutoscalerYields",
            f"{names.AUTOSCALE} has no effect: HPA {listed(others)} scales {view.name}. Delete that HPA, with KEDA its "
            "ScaledObject, or remove the annotation",
        )
    elif view.facts.size_manager:
        yield warning(
            "SizeManaged",
            f"{view.facts.size_manager} sets Worker.replicas of {view.name} too, so it and {names.AUTOSCALE} may "
            "resize the job back and forth; let it ignore that field",
        )


def rivals(view: JobView) -> list[str]:
    """Return the HPAs of others that scale the job."""
    # What a former job of the name has left goes by itself.
    return [
        found.metadata.name
        for found in view.autoscalers or ()
        if not (found.labelled and found.metadata.job_uid) and not found.deleting
    ]


def _why_not(view: JobView) -> str:
    reasons = {
        "the job has finished": view.facts.finished,
        f"{names.AUTOSCALE} does not ask for it": view.policy.autoscale is None or view.policy.fill,
        "the job is not elastic": not view.elastic,
        "another HPA scales the job": bool(rivals(view)),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _is_ours(view: JobView, found: Autoscaler) -> bool:
    return found.labelled and found.metadata.job_uid == view.ref.uid
