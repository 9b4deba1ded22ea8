"""Template fields at admission: they come back on new pods, and new MPIJobs are marked; pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, role_of
from mpijob_elastic.model import phrases
from mpijob_elastic.model import template_fields as fields
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.template_fields import ListItem, Lost

# What the API server makes of a volume whose source the operator has dropped.
_NO_SOURCE: Mapping[str, Any] = {"emptyDir": {}}
# On a new job with such fields, and on each pod that has got them back.
MARK = {names.PUT_BACK: "true"}


def marks(job: MPIJob, new: JobFacts) -> Mapping[str, str]:
    """Return the annotation of a new job with such fields.

    Older jobs do not have it: a worker that they grow by would get a spread, a claim or a gate that
    the other workers lack.
    """
    if names.PUT_BACK in job.metadata.annotations or new.policy.enabled is False:
        return {}
    return MARK if fields.names_of(job) else {}


def restored(spec: dict[str, Any], pod: AdmittedPod, job: JobFacts) -> Patch:
    """Return a patch that puts the fields back, and put them into `spec`, too.

    Later rules read the result.
    """
    asked = job.template_fields
    role = role_of(pod, job) if asked else ""
    # [v0.3.0] numbers its workers, and knows more fields.
    if asked is None or not role or names.LABEL_REPLICA_INDEX in pod.metadata.labels:
        return ()
    patch = json_patch.annotating(pod.metadata.annotations, MARK)
    for one in asked.fields[role]:
        patch += _put_back(spec, one)
    return patch


def told(job: MPIJob) -> frozenset[str]:
    """Return the paths of the fields that come back, and of those told by `findings`."""
    if not fields.wanted(job):
        return frozenset()
    found = fields.lost_by_role(fields.templates(job))
    return frozenset(one.path(role) for role, lost in found.items() for one in lost)


def findings(job: MPIJob, about: JobFacts) -> Iterator[str]:
    """Yield a warning on each field that decides whether pods start, or that stays dropped.

    After an edit, the fields of a job that does not say what it wants are told as well.
    """
    wanted = fields.wanted(job)
    if about.template_fields:
        yield from about.template_fields.effects()
    if wanted:
        found = fields.sort(fields.templates(job))
        yield from _staying(found)
        yield from _unknown(found)
    elif wanted is None and about.reported:
        yield from _unmarked(job)


def _staying(found: fields.Sorted) -> Iterator[str]:
    """Yield a warning on each field that cannot come back."""
    for role, staying in found.bad.items():
        for one, why in staying:
            yield f"{one.path(role)} stays dropped: {why}"


def _unknown(found: fields.Sorted) -> Iterator[str]:
    """Yield a warning on each field in a value that comes back, and that Kubernetes drops."""
    for role, lost in found.good.items():
        for one in lost:
            _, unknown = one.faults()
            for inner in unknown[:1]:
                below = f"{one.path(role)}.{inner.field}".replace(".[", "[")
                yield f"{below}: Kubernetes {fields.TABLE.kubernetes} does not know this field"


def _unmarked(job: MPIJob) -> Iterator[str]:
    """Yield a warning on the fields of a job that is older than the webhook that puts them back."""
    found = fields.names_of(job)
    if found:
        yield (
            f"mpi-operator v0.2.3 drops {phrases.listed(found)}; annotate the job "
            f'{names.PUT_BACK}: "true" to put back what it drops, on pods that are made from '
            "then on"
        )


def _put_back(spec: dict[str, Any], one: Lost) -> Patch:
    """Return the patch for a field.

    Nothing is done where the pod differs from its template: another webhook may have changed it.
    """
    *above, last = one.steps
    found: Any = spec
    pointer = "/spec"
    for step in above:
        at = _at(found, step)
        if at is None:
            return ()
        found = found[at]
        pointer += f"/{at}"
    if not isinstance(found, dict) or last in found:
        return ()
    if one.row.op == fields.REPLACE:
        return _filled(found, pointer, one)
    found[str(last)] = msgspec.json.decode(one.value)
    at_field = f"{pointer}/{last}"
    return json_patch.restoring(
        at=at_field, value=msgspec.Raw(one.value), op="add", allowed=fields.MAY_ADD
    )


def _at(found: Any, step: str | ListItem) -> str | int | None:
    """Return where an object or a list of a pod has what a template has at `step`; None if not."""
    if isinstance(step, ListItem):
        return step.position(found) if isinstance(found, list) else None
    is_there = isinstance(found, dict) and found.get(step) is not None
    return step if is_there else None


def _filled(volume: dict[str, Any], pointer: str, one: Lost) -> Patch:
    """Return the patch that gives a volume the source that the operator dropped."""
    name = volume.get("name")
    if volume != {"name": name, **_NO_SOURCE}:
        return ()
    source = str(one.steps[-1])
    del volume["emptyDir"]
    volume[source] = msgspec.json.decode(one.value)
    return json_patch.restoring(
        at=pointer,
        value={"name": name, source: msgspec.Raw(one.value)},
        op="replace",
        allowed=fields.MAY_REPLACE,
    )
