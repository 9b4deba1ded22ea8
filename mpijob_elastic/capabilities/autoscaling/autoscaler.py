"""The HPA that a job asks for: created, kept up to date, paused during a suspension, and deleted.

Two HPAs on one job block one another (kube-controller-manager's AmbiguousSelector), so ours gives
way to any other.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling import change_pause, facts
from mpijob_elastic.capabilities.autoscaling.facts import (
    AUTOSCALE,
    AUTOSCALERS,
    TOLERANCE,
    Autoscale,
    Spec,
    digest,
    scaling,
)
from mpijob_elastic.decide.actions import (
    Action,
    Create,
    Delete,
    Note,
    Noted,
    Object,
    Patch,
    normal,
    warning,
)
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.kube.meta import Identity, ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import Owned, Reference, Wire, controller, owned
from mpijob_elastic.model.phrases import listed

# On the HPA that the controller keeps for a job: the digest of the spec that it was given.
SPEC_DIGEST = f"{names.PREFIX}spec"


def autoscaler_name(job: str) -> str:
    """Return the name of the HPA that we create for a job [ours].

    It is not the job's name, because a user's own HPA often has that.
    """
    return f"mpijob-{job}"


class _Spec(Wire, frozen=True):
    scale_target_ref: Reference = Reference()


class _Autoscaler(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


_decoder = msgspec.json.Decoder(_Autoscaler)


class Autoscaler(msgspec.Struct, frozen=True, kw_only=True):
    """An HPA."""

    #: `job`: the MPIJob that it scales, "" if it scales something else; `job_uid`: of the MPIJob
    #: that controls it.
    metadata: Owned
    #: It has our label.
    labelled: bool = False
    deleting: bool = False
    #: The digest of the spec that we wrote.
    digest: str = ""


def read(raw: bytes) -> Autoscaler:
    """Return the facts in an HPA's JSON. Raises msgspec.DecodeError for anything else."""
    found = _decoder.decode(raw)
    target, metadata = found.spec.scale_target_ref, found.metadata
    # An HPA uses only the group of apiVersion.
    scales = target.kind == MPI_JOBS.kind and target.api_version.partition("/")[0] == MPI_JOBS.group
    return Autoscaler(
        metadata=msgspec.structs.replace(owned(metadata), job=target.name if scales else ""),
        labelled=metadata.labels.get(names.LABEL_MANAGED_BY) == names.PROGRAM,
        deleting=metadata.deleting,
        digest=metadata.annotations.get(SPEC_DIGEST, ""),
    )


@dataclass(frozen=True, kw_only=True)
class _OfAutoscaler(Noted):
    """A write of the HPA of a job.

    The answer must hold its digest: the API server adds defaults to its spec.
    """

    resource: Resource = AUTOSCALERS
    spec: Spec

    def kept(self) -> Object:
        return {"metadata": {"annotations": {SPEC_DIGEST: digest(self.spec)}}}


@dataclass(frozen=True, kw_only=True)
class MakeAutoscaler(_OfAutoscaler, Create):
    """Create the HPA of a job, controlled by it."""

    job: Identity

    def content(self) -> Object:
        """The HPA."""
        metadata = {
            "name": autoscaler_name(self.job.name),
            "labels": {names.LABEL_MANAGED_BY: names.PROGRAM},
            "ownerReferences": [controller(self.job)],
            **self.kept()["metadata"],
        }
        return {"metadata": metadata, "spec": self.spec}


@dataclass(frozen=True, kw_only=True)
class ChangeAutoscaler(_OfAutoscaler, Patch):
    """Change the HPA of a job, whose status its controller writes all the time."""

    at_version = False

    def change(self) -> Object:
        """The spec of the HPA, and the digest of the spec.

        A tolerance that is not asked for any more must go: a merge keeps what it does not name.
        """
        spec = dict(self.spec)
        if rules_by_direction := self.spec.get("behavior"):
            spec["behavior"] = {
                direction: {"tolerance": None, **rules}
                for direction, rules in rules_by_direction.items()
            }
        return {**self.kept(), "spec": spec}


@dataclass(frozen=True, kw_only=True)
class DeleteAutoscaler(Noted, Delete):
    """Delete the HPA of a job."""

    at_version = False

    resource: Resource = AUTOSCALERS


def write(state: JobState, known: Sequence[Autoscaler], *, minor: int | None) -> Action | None:
    """Return the write that is due, or None.

    minor: the minor version of Kubernetes 1; None while it is not known.
    """
    view = state.view
    if state.foreign or view.facts.deleting:
        return None
    mine = next(
        (found for found in known if found.labelled and found.metadata.job_uid == view.ref.uid),
        None,
    )
    asked, least, most = (
        scaling(view.facts).autoscale,
        view.policy.min_replicas,
        view.policy.max_replicas,
    )
    why = _why_not(view, known)
    if why or asked is None or least is None or most is None:
        return _deletion(mine, why)
    paused = state.wishes.suspend is not None
    spec = _spec(view, asked, least=least, most=most, paused=paused, minor=minor)
    if spec is None or (mine and mine.digest == digest(spec)):
        return None
    name = autoscaler_name(view.name)
    message = (
        f"HPA {name}: {spec['minReplicas']} to {spec['maxReplicas']} "
        f"workers by {asked.name or 'cpu'}"
    )
    message += ", paused while the job is suspended" if paused else ""
    if mine:
        return ChangeAutoscaler(
            ref=mine.metadata, spec=spec, note=normal("AutoscalerChanged", message)
        )
    return MakeAutoscaler(job=view.ref, spec=spec, note=normal("AutoscalerCreated", message))


def _deletion(mine: Autoscaler | None, why: str) -> DeleteAutoscaler | None:
    """Return the deletion of our HPA, or None."""
    if mine is None or mine.deleting:
        return None
    note = normal("AutoscalerDeleted", f"HPA {mine.metadata.name} is deleted: {why}")
    return DeleteAutoscaler(ref=mine.metadata, note=note)


def _spec(
    view: JobView, asked: Autoscale, *, least: int, most: int, paused: bool, minor: int | None
) -> Spec | None:
    """Return the spec of our HPA; None while the version that decides about it is not known."""
    tolerance = scaling(view.facts).tolerance
    if tolerance and minor is None:
        return None
    is_served = minor is not None and minor >= facts.TOLERANCE_SINCE
    return facts.spec(
        asked,
        view.name,
        least=least,
        most=most,
        paused=paused,
        sizes=view.facts.sizes,
        tolerance=tolerance if is_served else None,
        pause=change_pause.pause(view),
    )


def notes(view: JobView, known: Sequence[Autoscaler], *, minor: int | None) -> Iterator[Note]:
    """Yield notices on what keeps a job from being scaled as it asks."""
    asked = scaling(view.facts)
    if asked.tolerance and not asked.fill and minor is not None and minor < facts.TOLERANCE_SINCE:
        yield warning(
            "ToleranceUnavailable",
            f"{TOLERANCE} has no effect: HPAs have a tolerance of their own since Kubernetes "
            f"1.{facts.TOLERANCE_SINCE}, and this cluster is older or does not tell its version",
        )
    if others := rivals(known):
        yield warning(
            "AutoscalerYields",
            f"{AUTOSCALE} has no effect: HPA {listed(others)} scales {view.name}. Delete that "
            "HPA, with KEDA its ScaledObject, or remove the annotation",
        )
    elif manager := view.facts.size_manager:
        yield warning(
            "SizeManaged",
            f"{manager} sets Worker.replicas of {view.name} too, so it and {AUTOSCALE} may "
            "resize the job back and forth; let it ignore that field",
        )


def owner(view: JobView, known: Collection[Autoscaler]) -> str:
    """Return the owner of a job's size besides its user, with what to do instead; "" for none."""
    if manager := view.facts.size_manager:
        return (
            f"{manager} sets the size of {view.name}; change the size at its source, such as in Git"
        )
    if asked := scaling(view.facts).autoscale:
        what = "idle nodes" if asked.fill else "an HPA"
        return (
            f"the annotation {AUTOSCALE} lets {what} set the size of {view.name}; "
            "edit or remove the annotation"
        )
    found = listed(one.metadata.name for one in known if not one.deleting)
    advice = "edit or delete that HPA, with KEDA its ScaledObject"
    return f"HPA {found} sets the size of {view.name}; {advice}" if found else ""


def rivals(known: Sequence[Autoscaler]) -> list[str]:
    """Return the HPAs of others that scale the job."""
    # An HPA that a former job of the same name left goes by itself.
    others = (
        found
        for found in known
        if not ((found.labelled and found.metadata.job_uid) or found.deleting)
    )
    return [found.metadata.name for found in others]


def _why_not(view: JobView, known: Sequence[Autoscaler]) -> str:
    asked = scaling(view.facts)
    reasons = {
        "the job has finished": view.facts.finished,
        f"{AUTOSCALE} does not ask for it": asked.autoscale is None or asked.fill,
        "the job is not elastic": not view.elastic,
        "another HPA scales the job": bool(rivals(known)),
    }
    return next((why for why, holds in reasons.items() if holds), "")
