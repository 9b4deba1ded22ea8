"""Convert jobs of other kinds to elastic MPIJobs v1; pure, from text to text.

Objects of other kinds stay as they are. Each field without a counterpart is reported, on standard
error and as a comment, and so is all that stops an MPIJob v1 from doing what it says.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import operator_types, policy, template_fields
from mpijob_elastic.telemetry.escapes import printable
from upgrade import crd, old_names
from upgrade.converters import CONVERTERS, ET, RUN_POLICY
from upgrade.notes import ConversionNote, Notes
from upgrade.old_names import Source

_SCALERS = frozenset({(ET, "ScaleIn"), (ET, "ScaleOut")})
_SCALER_ADVICE = (
    "a cluster without et-operator's definition of {kind}s refuses it, so `kubectl apply` ends "
    "with 1 after it has created the other objects of the file. Remove it from the file, and edit "
    f"the job's replicas instead, within {names.MIN_REPLICAS} and {names.MAX_REPLICAS}; or keep "
    f"it, and install with `{names.PROGRAM} install --overlay et-operator`, which brings the "
    "definition and carries it out"
)
_OLD_DEFINITION = ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
_DEFINITION_ADVICE = (
    f"no API server takes this version since Kubernetes 1.22; apply {crd.IN_V1} instead"
)
# What a value of another type raises.
_UNLIKE_ITS_TYPE = (AttributeError, KeyError, TypeError, ValueError)
# A job that cannot be read may stand in a text like this.
_NAMES_A_JOB = re.compile(r"kind[\"']?:\s*[\"']?(MPIJob|TrainingJob)\b")
# Fields of a run policy on which the annotation makes us act.
_ACTED_ON = frozenset(
    {"activeDeadlineSeconds", "ttlSecondsAfterFinished", "backoffLimit", "suspend"}
)
# Annotations of KubeQueue and koord-queue.
_SUSPENDED = "scheduling.x-k8s.io/suspend"
_PRIORITY = "scheduling.x-k8s.io/priority"
# By whether the job was converted.
_MAY_BE_A_PATCH = {
    True: (
        ". A job without any container may be a patch: then do not use the result, because the "
        "result has fields that the patch does not have. Write the patch anew for the converted "
        f"job, an {MPI_JOBS.kind} of {MPI_JOBS.api_version}"
    ),
    False: ". A job without any container may be a patch: then nothing is to do",
}
_LAUNCHER = "spec.mpiReplicaSpecs.Launcher.template"


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and the notes on it."""

    #: The kind and name of the source, for messages.
    subject: str
    manifest: Source
    #: Sorted by field.
    notes: tuple[ConversionNote, ...]


def convert_text(text: str, *, where: str, is_patch: bool = False) -> list[Converted]:
    """Return every object of a YAML or JSON text; `where` names it in errors.

    is_patch: the text holds patches, none of them of a job that is converted. Raises `Refused` if
    the text is neither YAML nor JSON.
    """
    try:
        documents = kubectl_yaml.documents(text)
    except kubectl_yaml.NotYaml as error:
        raise Refused(f"{where} is not YAML: {error}") from error
    return [
        convert(one, twice=document.twice, is_patch=is_patch)
        for document in documents
        for one in _objects(document.value, where=where)
    ]


def names_a_job(text: str) -> bool:
    """Return True if a text, which may be no YAML, seems to hold a job."""
    return _NAMES_A_JOB.search(text) is not None


def convert(source: Source, *, twice: Iterable[str] = (), is_patch: bool = False) -> Converted:
    """Convert an object; objects of other kinds stay as they are. Raises `Refused`.

    twice: keys that stand twice in an object of its document. is_patch: the object may have a part
    of its fields only.
    """
    kind = str(source.get("apiVersion", "")), str(source.get("kind", ""))
    converter = CONVERTERS.get(kind)
    source = _without_nulls(source) if converter else source
    metadata = source.get("metadata", {})
    name = "/".join(
        str(part) for part in (metadata.get("namespace"), metadata.get("name", "?")) if part
    )
    subject = f"{source.get('kind', '?')} {name}"
    notes, manifest = Notes(), source
    for key in sorted(set(twice)):
        notes.to_do(key, "stands twice in an object; the last one counts, as for kubectl")
    if kind in _SCALERS:
        notes.to_do("kind", _SCALER_ADVICE.format(kind=kind[1]))
    if kind == _OLD_DEFINITION and metadata.get("name") == crd.NAME:
        notes.add("apiVersion", _DEFINITION_ADVICE)
    try:
        if converter:
            manifest = converter(source, notes)
        is_part = is_patch and kind == (MPI_JOBS.api_version, MPI_JOBS.kind)
        if manifest.get("kind") == MPI_JOBS.kind and not is_part:
            _about_mpi_job(manifest, notes, is_new=converter is not None)
    except (*_UNLIKE_ITS_TYPE, msgspec.MsgspecError) as error:
        raise Refused(
            f"{subject} is not a valid {source['apiVersion']} object: {error!r}"
        ) from error
    return Converted(subject=subject, manifest=manifest, notes=tuple(sorted(notes)))


def render(converted: Iterable[Converted]) -> str:
    """Return YAML with a document for each object."""
    return "---\n".join(map(_render, converted))


def _render(one: Converted) -> str:
    # The author of the object chose the names of its fields.
    comments = "".join(printable(f"# {one.subject}: {note}") + "\n" for note in one.notes)
    return comments + kubectl_yaml.dump(dict(one.manifest))


def _objects(document: Any, *, where: str) -> Iterator[Source]:
    if (
        not isinstance(document, dict)
        or not document.get("kind")
        or not isinstance(document.get("metadata", {}), dict)
    ):
        raise Refused(
            f"{where} holds a document that is no Kubernetes object; each needs "
            "apiVersion, kind and metadata"
        )
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(item, where=where)
    else:
        yield document


def _without_nulls(value: Any) -> Any:
    """Drop null values, which mean absent to the API server.

    https://kubernetes.io/docs/reference/using-api/api-concepts/
    """
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def _about_mpi_job(job: Source, notes: Notes, *, is_new: bool) -> None:
    """Say what of an MPIJob does not do what it says; `is_new` if it was converted.

    Raises ValueError and its kind for a job that is not as its type says.
    """
    version = str(job.get("apiVersion", ""))
    if version != MPI_JOBS.api_version:
        if version.partition("/")[0] == MPI_JOBS.group:
            notes.to_do(
                "apiVersion",
                f"{version} is not converted, and mpi-operator v0.2.3 does not know it; write the "
                f"job as {MPI_JOBS.api_version}",
            )
        return
    metadata = job.get("metadata", {})
    _about_metadata(metadata, notes)
    if not _is_readable(job, notes, is_new=is_new) and not is_new:
        return
    spec = job.get("spec") or {}
    if not is_new:
        _about_run_policy(spec.get("runPolicy") or {}, metadata.get("annotations") or {}, notes)
    launcher = (spec.get("mpiReplicaSpecs") or {}).get("Launcher") or {}
    _about_launcher(launcher.get("template") or {}, notes, is_new=is_new)


def _is_readable(job: Source, notes: Notes, *, is_new: bool) -> bool:
    """Return True if mpi-operator v0.2.3 can read the job.

    Adds a note for each field that it cannot read, or drops.
    """
    text = msgspec.json.encode(job)
    faults, dropped = operator_types.judge(text)
    back = template_fields.restorable(text)
    advice = "" if _has_container(job) else _MAY_BE_A_PATCH[is_new]
    for fault in faults:
        # The launcher stands first, and is missing or has no container.
        notes.to_do(fault.field, fault.message + (advice if fault is faults[0] else ""))
    for one in dropped:
        # The run policy has notes of its own.
        if one.field.startswith("spec.runPolicy.") or not one.field.startswith("spec."):
            continue
        if one.field in back:
            notes.add(
                one.field,
                "mpi-operator v0.2.3 drops this field; the webhook puts it back on the pods",
            )
        elif one.known_as not in operator_types.PUT_BACK:
            notes.to_do(one.field, "mpi-operator v0.2.3 drops this field; the job does without it")
    return not faults


def _has_container(job: Source) -> bool:
    """Return True if a role of the job has a container."""
    roles = operator_types.at(job, "spec", "mpiReplicaSpecs")
    replicas = roles.values() if isinstance(roles, dict) else ()
    return any(operator_types.at(one, "template", "spec", "containers") for one in replicas)


def _about_metadata(metadata: Source, notes: Notes) -> None:
    """Add a note for each name, label and annotation that the API server does not take."""
    named = {f"metadata.{key}": metadata.get(key) for key in ("name", "namespace")}
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if isinstance(values, dict):
            named |= {f"metadata.{field}[{key}]": value for key, value in values.items()}
    for place, value in named.items():
        if value is not None and not isinstance(value, str):
            shown = msgspec.json.encode(value).decode()[:64]
            notes.to_do(place, f"{shown} is not a string; put it in quotes")
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return
    if annotations.get(_SUSPENDED) == "true":
        notes.to_do(
            f"metadata.annotations[{_SUSPENDED}]",
            "the job waits until KubeQueue or koord-queue takes it away; without one of them, "
            "remove it",
        )
    if _PRIORITY in annotations:
        notes.to_do(
            f"metadata.annotations[{_PRIORITY}]",
            "has no effect; the priority of the pods counts: write priorityClassName in both "
            "templates",
        )


# Where, or with whom, a field of the run policy has an effect.
_ELSEWHERE = {
    "cleanPodPolicy": "; write it below spec, where mpi-operator v0.2.3 reads it",
    "schedulingPolicy": ", unless the scheduler KAI reads it (docs/kai.md)",
}


def _about_run_policy(run_policy: Source, annotations: Source, notes: Notes) -> None:
    """Add a note for each field of the run policy of a job in v1 that has no effect."""
    given = {key for key, value in run_policy.items() if value is not None}
    acts = annotations.get(RUN_POLICY) == "true"
    for key in sorted(given - _ACTED_ON):
        notes.to_do(f"spec.runPolicy.{key}", f"has no effect{_ELSEWHERE.get(key, '')}")
    for key in sorted(given & _ACTED_ON):
        if not acts:
            notes.to_do(
                f"spec.runPolicy.{key}",
                f'mpi-operator v0.2.3 does not act on it; annotate the job {RUN_POLICY}: "true"',
            )


def _about_launcher(template: Source, notes: Notes, *, is_new: bool) -> None:
    """Say whether the launcher reads the host list."""
    script = old_names.other_script(template)
    if script:
        notes.to_do(
            _LAUNCHER,
            f"--host-discovery-script is {script}, which the image must have; the list of the "
            f"workers is {names.DISCOVER_HOSTS_PATH}",
        )
    elif is_new and not policy.names_discovery(old_names.texts(template)):
        notes.add(
            _LAUNCHER,
            "reads no host list, so the job keeps its size; a job that is to change its size "
            f"starts with horovodrun and --host-discovery-script {names.DISCOVER_HOSTS_PATH}, or "
            f"its mpirun by {names.ELASTIC_PATH} (docs/mpi.md)",
        )
