"""Refuse an MPIJob that stops mpi-operator v0.2.3 for all jobs, and name the fields that it drops; pure.

This holds for every MPIJob, elastic or not, finished or not: the operator lists them all. As everywhere, only what the
request brings in is refused.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from mpijob_elastic.model import operator_types, phrases
from mpijob_elastic.model.operator_types import MOST, PUT_BACK, Dropped
from webhook.rules import lint
from webhook.rules.review import CREATE, Refusal, Request, Verdict

# What the loss of an important field means, by `STRUCT.FIELD`.
_MEANS = {
    "Container.restartPolicy": "a sidecar becomes an init container, and its pod waits until that ends",
    "Container.startupProbe": "the other probes begin at once",
    "Handler.sleep": "no handler is left, so the pods are refused",
    "PodSpec.resourceClaims": "the pods get none of these devices",
    "PodSpec.topologySpreadConstraints": "the pods are not spread",
    "Probe.grpc": "no handler is left, so the pods are refused",
    "Volume.ephemeral": "the volume becomes an emptyDir",
}


def judged(created: Callable[[Request], Verdict], updated: Callable[[Request], Verdict], request: Request) -> Verdict:
    """Return what the operator makes of an MPIJob, or if that is no fault, the verdict of the handler of the request.

    A job that is mended is checked as a new one: its former version may not be readable.
    """
    is_new = request.operation == CREATE
    faults, lost = operator_types.judge(request.object)
    before = [] if is_new else operator_types.judge(request.old_object)[0]
    if not faults:
        found = created(request) if is_new or before else updated(request)
        return replace(found, warnings=(*found.warnings, *dropped(lost))) if is_new and lost else found
    known = {fault.kind for fault in before}
    brought = [] if len(before) == MOST else [fault for fault in faults if fault.kind not in known]
    if brought:
        return Verdict(refusals=tuple(Refusal(field=one.field, message=one.message) for one in brought[: lint.MOST]))
    return Verdict(warnings=tuple(map(str, faults))[: lint.MOST])


def dropped(fields: Iterable[Dropped]) -> tuple[str, ...]:
    """Return a warning for each field that the operator drops from the pods, and nobody puts back."""
    places: dict[str, list[str]] = {}
    for one in fields:
        if one.field.startswith("spec.mpiReplicaSpecs") and one.known_as not in PUT_BACK:
            places.setdefault(one.known_as, []).append(one.field)
    said = [_words(kind, *where) for kind, where in places.items()][: lint.MOST]
    rest = [kind.partition(".")[2] for kind in list(places)[lint.MOST :]]
    return (*said, f"mpi-operator v0.2.3 also drops {phrases.listed(rest)}") if rest else tuple(said)


def _words(kind: str, first: str, *others: str) -> str:
    more = f" and {len(others)} more" if others else ""
    return f"{first}{more}: mpi-operator v0.2.3 drops this field: {_MEANS.get(kind, 'the pods do without')}"
