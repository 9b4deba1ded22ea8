"""Convert every object of a text; other objects stay as they are. Notes become comments."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.telemetry.terminal import printable
from upgrade import crd
from upgrade.conversion import jobs
from upgrade.conversion.elastic import Converted, Notes, Object, Source

ET = "kai.alibabacloud.com/v1alpha1"
_CONVERTERS: Mapping[tuple[str, str], Callable[[Source, Notes], Object]] = {
    ("kubeflow.org/v1alpha2", "MPIJob"): jobs.from_mpi_job,
    (ET, "TrainingJob"): jobs.from_training_job,
}
_SCALERS = frozenset({(ET, "ScaleIn"), (ET, "ScaleOut")})
_SCALER_ADVICE = (
    f"edit the job's replicas instead, within {names.MIN_REPLICAS} and {names.MAX_REPLICAS}; "
    "with `mpijob-elastic install --overlay et-operator` it is carried out as it is"
)
_OLD_DEFINITION = ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
_DEFINITION_ADVICE = f"no API server takes this version since Kubernetes 1.22; apply {crd.IN_V1} instead"


def convert_text(text: str, *, where: str) -> list[Converted]:
    """Return every object of a YAML or JSON text; `where` names it in errors. Raises `Refused` if it is neither."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise Refused(f"{where} is not YAML: {error}") from error
    return [convert(one) for document in documents for one in _objects(document, where=where)]


def convert(source: Source) -> Converted:
    """Convert an object; objects of other kinds stay as they are. Raises `Refused`."""
    kind = source.get("apiVersion", ""), source.get("kind", "")
    converter = _CONVERTERS.get(kind)
    notes = Notes()
    if converter is None:
        if kind in _SCALERS:
            notes.add("kind", _SCALER_ADVICE)
        if kind == _OLD_DEFINITION and source.get("metadata", {}).get("name") == crd.NAME:
            notes.add("apiVersion", _DEFINITION_ADVICE)
        return Converted(subject=_subject(source), manifest=source, notes=tuple(notes))
    source = _without_nulls(source)
    try:
        manifest = converter(source, notes)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{_subject(source)} is not a valid {source['apiVersion']} object: {error!r}") from error
    return Converted(subject=_subject(source), manifest=manifest, notes=tuple(sorted(notes)))


def _subject(source: Source) -> str:
    metadata = source.get("metadata", {})
    name = "/".join(part for part in (metadata.get("namespace"), metadata.get("name", "?")) if part)
    return f"{source.get('kind', '?')} {name}"


def _without_nulls(value: Any) -> Any:
    """Null means absent to the API server (https://kubernetes.io/docs/reference/using-api/api-concepts/)."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def render(converted: Iterable[Converted]) -> str:
    """Return YAML with a document for each object."""
    return "---\n".join(map(_render, converted))


def _render(one: Converted) -> str:
    # The author of the object chose the names of its fields.
    comments = "".join(printable(f"# {one.subject}: {note}") + "\n" for note in one.notes)
    return comments + yaml.safe_dump(dict(one.manifest), sort_keys=False, width=120)


def _objects(document: Any, *, where: str) -> Iterator[Source]:
    if not isinstance(document, dict) or not document.get("kind") or not isinstance(document.get("metadata", {}), dict):
        raise Refused(
            f"{where} holds a document that is no Kubernetes object; each needs apiVersion, kind and metadata"
        )
    if str(document["kind"]).endswith("List") and isinstance(document.get("items"), list):
        for item in document["items"]:
            yield from _objects(item, where=where)
    else:
        yield document
