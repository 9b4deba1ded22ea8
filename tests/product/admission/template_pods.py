"""Pods as the operator makes them of templates: without the fields that its types do not have."""

import json
from typing import Any

import jsonpatch
import msgspec

from lab.operator import objects
from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import template_fields
from mpijob_elastic.admission.mutate import AdmittedPod, AdmittedSpec
from mpijob_elastic.model import operator_types
from tests.product.webhook.objects import Object, mpi_job

WANTED = {names.PUT_BACK: "true"}


def job(
    worker: Object | None = None,
    launcher: Object | None = None,
    *,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Object:
    """A job whose templates have these fields besides their container."""
    made = mpi_job(annotations=WANTED if annotations is None else annotations, **more)
    roles = made["spec"]["mpiReplicaSpecs"]
    roles["Worker"]["template"]["spec"] |= worker or {}
    roles["Launcher"]["template"]["spec"] |= launcher or {}
    return made


def without_dropped(made: Object) -> Object:
    """The job as the operator decodes it; a volume without a source becomes an emptyDir, as on the API server."""
    copy: Object = json.loads(json.dumps(made))
    _, dropped = operator_types.judge(json.dumps(copy).encode())
    for one in dropped:
        _remove(copy, one.field)
    for role in copy["spec"]["mpiReplicaSpecs"].values():
        for volume in role["template"]["spec"].get("volumes") or ():
            if volume.keys() == {"name"}:
                volume["emptyDir"] = {}
    return copy


def _remove(found: Any, path: str) -> None:
    *above, last = path.replace("[", ".[").split(".")
    for step in above:
        found = found[int(step[1:-1])] if step.startswith("[") else found[step]
    del found[last]


def worker_of(made: Object, index: int = 0) -> Object:
    """A worker pod that the operator makes of the job."""
    known = without_dropped(made)
    return _with_template(objects.worker(known, index), known, "Worker")


def launcher_of(made: Object) -> Object:
    """The launcher pod likewise."""
    known = without_dropped(made)
    return _with_template(objects.launcher(known), known, "Launcher")


def _with_template(pod: Object, known: Object, role: str) -> Object:
    """The pod with all of its template: the operator copies it, and adds its own volumes and init containers."""
    template = known["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    spec = pod["spec"]
    lists = {
        key: [*template.get(key, []), *spec.get(key, [])]
        for key in ("volumes", "initContainers")
        if key in template
    }
    pod["spec"] = {**spec, **template, **lists, "containers": spec["containers"]}
    return pod


def restored(pod: Object, made: Object) -> Object:
    """The pod after the patch; what later rules read is changed in `spec`, and a second call changes nothing."""
    once = _patched(pod, made)
    assert _patched(once, made) == once
    return once


def _patched(pod: Object, made: Object) -> Object:
    facts = capabilities.read(json.dumps(made).encode())
    copy: Object = json.loads(json.dumps(pod))
    patch = template_fields.restored(copy["spec"], msgspec.convert(pod, AdmittedPod), facts)
    sent = json.loads(msgspec.json.encode(patch))
    stored: Object = jsonpatch.apply_patch(pod, sent)
    assert msgspec.convert(stored["spec"], AdmittedSpec) == msgspec.convert(
        copy["spec"], AdmittedSpec
    )
    return stored


def holds(found: Any, wanted: Any) -> bool:
    """Tell whether an object has all that is wanted: defaults, and items that others add, may come on top."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(key), wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return isinstance(found, list) and all(
            any(holds(item, one) for item in found) for one in wanted
        )
    return bool(found == wanted)
