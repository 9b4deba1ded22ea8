"""What of a kustomization no longer fits its jobs once they are converted; pure.

A patch has only some fields of a job. Converted as a job it would have others, too, such as the
number of workers, and would change them. kustomize 5.5.0, api/types/kustomization.go, patch.go and
selector.go; read here are the fields that name a patch or select objects.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.resources import MPI_JOBS
from upgrade.converters import CONVERTERS
from upgrade.notes import ConversionNote, Notes
from upgrade.old_names import Source

# api/konfig/general.go
FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")

# Lists of objects with `path` or `patch`.
_PATCHES = ("patches", "patchesJson6902")
# A list of paths and of patches.
_MERGES = "patchesStrategicMerge"
# Fields that select objects below these fields of a kustomization.
_SELECTING = (*_PATCHES, "replacements", "vars")
_SELECTORS = frozenset({"target", "select", "source", "objref"})
# No other kind has this field.
_FIELD_OF_TRAINING_JOBS = "etReplicaSpecs"
_MPI_JOB = (MPI_JOBS.api_version, MPI_JOBS.kind)
_SELECTS_NOTHING = (
    "selects jobs of the old kind, and kustomize says nothing if a selector finds no object; "
    f"select group {MPI_JOBS.group}, version {MPI_JOBS.version} and kind {MPI_JOBS.kind} instead"
)


@dataclass(frozen=True, kw_only=True)
class Kustomization:
    """What a kustomization says of patches."""

    #: The text is YAML.
    readable: bool
    #: Files that it names as patches, relative to its folder.
    paths: tuple[str, ...] = ()
    #: What in it no longer fits a converted job, in its order.
    notes: tuple[ConversionNote, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Patch:
    """An entry of a list of patches; it has a path or a text."""

    #: Where the text stands, such as `patches[0].patch`.
    field: str
    path: str
    text: str


def read(text: str) -> Kustomization:
    """Return what a kustomization says of patches; nothing of a field of another type."""
    try:
        values = kubectl_yaml.read_all(text)
    except kubectl_yaml.NotYaml:
        return Kustomization(readable=False)
    documents = [value for value in values if isinstance(value, dict)]
    patches = [patch for document in documents for patch in _patches(document)]
    notes = Notes()
    for patch in patches:
        if job := job_of(patch.text):
            notes.to_do(patch.field, advice(job))
    for field, selector in _selectors(documents):
        if _is_old(selector):
            notes.to_do(field, _SELECTS_NOTHING)
    # No path of a file has a NUL.
    paths = tuple(patch.path for patch in patches if patch.path and "\0" not in patch.path)
    return Kustomization(readable=True, paths=paths, notes=tuple(notes))


def job_of(text: str) -> str:
    """Return the jobs of an old kind that a patch is for, as `TrainingJob mnist`; "" for none."""
    named = [
        f"{document['kind']} {_name(document)}"
        for document in _objects(text)
        if (document.get("apiVersion"), document.get("kind")) in CONVERTERS
    ]
    if named:
        return ", ".join(named)
    return "a TrainingJob" if _FIELD_OF_TRAINING_JOBS in text else ""


def advice(job: str) -> str:
    """Return what to do with a patch for this job, which is of an old kind."""
    return (
        f"the patch is for {job} and has the fields of the old kind; write the patch anew for the "
        f"converted job, an {MPI_JOBS.kind} of {MPI_JOBS.api_version}"
    )


def _patches(document: Source) -> Iterator[_Patch]:
    for key in _PATCHES:
        for index, entry in enumerate(_listed(document.get(key))):
            if isinstance(entry, dict):
                path, text = _text(entry.get("path")), _text(entry.get("patch"))
                yield _Patch(field=f"{key}[{index}].patch", path=path, text=text)
    for index, entry in enumerate(_listed(document.get(_MERGES))):
        field, text = f"{_MERGES}[{index}]", _text(entry)
        if any(_objects(text)):
            yield _Patch(field=field, path="", text=text)
        else:
            yield _Patch(field=field, path=text, text="")


def _selectors(documents: Iterable[Source]) -> Iterator[tuple[str, Source]]:
    """Yield each selector, with its field."""
    for document in documents:
        for key in _SELECTING:
            yield from _selectors_in(document.get(key), key)


def _selectors_in(value: Any, at: str) -> Iterator[tuple[str, Source]]:
    for index, item in enumerate(_listed(value)):
        yield from _selectors_in(item, f"{at}[{index}]")
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if key in _SELECTORS and isinstance(item, dict):
            yield f"{at}.{key}", item
        yield from _selectors_in(item, f"{at}.{key}")


def _is_old(selector: Source) -> bool:
    """Return True if a selector selects a job that is converted, and not the converted job."""
    if _selects(selector, *_MPI_JOB):
        return False
    return any(_selects(selector, *old) for old in CONVERTERS)


def _selects(selector: Source, api_version: str, kind: str) -> bool:
    group, _, version = api_version.partition("/")
    values = {"apiVersion": api_version, "group": group, "version": version, "kind": kind}
    return all(_fits(selector.get(key), value) for key, value in values.items())


def _fits(pattern: Any, value: str) -> bool:
    """Return True if a value fits a part of a selector, which kustomize anchors at both ends."""
    if pattern is None or pattern == "":
        return True
    try:
        return re.fullmatch(str(pattern), value) is not None
    except re.error:
        return False


def _objects(text: str) -> list[Source]:
    try:
        return [value for value in kubectl_yaml.read_all(text) if isinstance(value, dict)]
    except kubectl_yaml.NotYaml:
        return []


def _name(document: Source) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
