"""The HPA that a job asks for: made, kept as it should be, paused while the job is suspended, and deleted.

Two HPAs on one job block one another (kube-controller-manager's AmbiguousSelector), so ours gives way to any other.
"""

from collections.abc import Collection, Iterator, Sequence

from mpijob_elastic.capabilities.autoscaling import facts as autoscale
from mpijob_elastic.capabilities.autoscaling.actions import ChangeAutoscaler, DeleteAutoscaler, MakeAutoscaler
from mpijob_elastic.capabilities.autoscaling.api import AUTOSCALE, autoscaler_name
from mpijob_elastic.capabilities.autoscaling.facts import Autoscaler, Scaling
from mpijob_elastic.decide.actions import Action, Note, normal, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed


def write(state: JobState, known: Sequence[Autoscaler]) -> Action | None:
    """Return the write that is due, or None."""
    view = state.view
    if state.foreign or view.facts.deleting:
        return None
    mine = next((found for found in known if _is_ours(view, found)), None)
    scaling = view.facts.of(Scaling) or Scaling()
    asked, least, most = scaling.autoscale, view.policy.min_replicas, view.policy.max_replicas
    why = _why_not(view, known)
    if why or asked is None or least is None or most is None:
        if mine is None or mine.deleting:
            return None
        note = normal("AutoscalerDeleted", f"HPA {mine.metadata.name} is deleted: {why}")
        return DeleteAutoscaler(ref=mine.metadata, note=note)
    paused, sizes = state.wishes.stop != "", view.facts.sizes
    spec = autoscale.spec(asked, view.name, least=least, most=most, paused=paused, sizes=sizes)
    if mine and mine.digest == autoscale.digest(spec):
        return None
    name = autoscaler_name(view.name)
    message = f"HPA {name}: {spec['minReplicas']} to {spec['maxReplicas']} workers by {asked.name or 'cpu'}"
    message += ", paused while the job is suspended" if paused else ""
    if mine:
        return ChangeAutoscaler(ref=mine.metadata, spec=spec, note=normal("AutoscalerChanged", message))
    return MakeAutoscaler(job=view.ref, spec=spec, note=normal("AutoscalerCreated", message))


def notes(view: JobView, known: Sequence[Autoscaler]) -> Iterator[Note]:
    """Yield what keeps a job from being scaled as it asks."""
    if others := rivals(known):
        yield warning(
            "AutoscalerYields",
            f"{AUTOSCALE} has no effect: HPA {listed(others)} scales {view.name}. Delete that HPA, with KEDA its "
            "ScaledObject, or remove the annotation",
        )
    elif manager := view.facts.size_manager:
        yield warning(
            "SizeManaged",
            f"{manager} sets Worker.replicas of {view.name} too, so it and {AUTOSCALE} may "
            "resize the job back and forth; let it ignore that field",
        )


def owner(view: JobView, known: Collection[Autoscaler]) -> str:
    """Return who sets the size of a job besides its user, and what to do instead, "" if nobody does."""
    if manager := view.facts.size_manager:
        return f"{manager} sets the size of {view.name}; change it where that reads it, such as in Git"
    asked = (view.facts.of(Scaling) or Scaling()).autoscale
    if asked:
        what = "what lies idle" if asked.fill else "an HPA"
        return f"by its annotation {AUTOSCALE}, {what} sets the size of {view.name}; edit or remove the annotation"
    found = [one.metadata.name for one in known if not one.deleting]
    advice = "edit or delete that HPA, with KEDA its ScaledObject"
    return f"HPA {listed(found)} sets the size of {view.name}; {advice}" if found else ""


def rivals(known: Sequence[Autoscaler]) -> list[str]:
    """Return the HPAs of others that scale the job."""
    # What a former job of the name has left goes by itself.
    return [
        found.metadata.name for found in known if not (found.labelled and found.metadata.job_uid) and not found.deleting
    ]


def _why_not(view: JobView, known: Sequence[Autoscaler]) -> str:
    asked = view.facts.of(Scaling) or Scaling()
    reasons = {
        "the job has finished": view.facts.finished,
        f"{AUTOSCALE} does not ask for it": asked.autoscale is None or asked.fill,
        "the job is not elastic": not view.elastic,
        "another HPA scales the job": bool(rivals(known)),
    }
    return next((why for why, holds in reasons.items() if holds), "")


def _is_ours(view: JobView, found: Autoscaler) -> bool:
    return found.labelled and found.metadata.job_uid == view.ref.uid
