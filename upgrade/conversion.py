"""Convert jobs of other kinds to elastic MPIJobs v1; pure, from text to text.

Objects of other kinds stay as they are. Each field without a counterpart is reported, on standard
error and as a comment.

mpi-operator v0.2.3, pkg/apis/kubeflow/v1alpha2/types.go and v1/types.go; et-operator,
api/v1alpha1/trainingjob_types.go
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.install.objects import own_metadata
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import horovodrun, policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.telemetry.terminal import printable
from upgrade import crd

Object = dict[str, Any]
Source = Mapping[str, Any]

ET = "kai.alibabacloud.com/v1alpha1"
# The paths of et-operator.
_PATHS = {
    f"{names.EDL_PATH}/{key}": f"{names.MOUNT_PATH}/{key}"
    for key in (names.KEY_DISCOVER_HOSTS, names.KEY_HOSTFILE)
}
_KEPT = ("slotsPerWorker", "cleanPodPolicy", "mainContainer")
_MOVED = ("backoffLimit", "activeDeadlineSeconds")
_TRAINING_JOB = frozenset(
    {
        "cleanPodPolicy",
        "etReplicaSpecs",
        "launcherAttachMode",
        "slotsPerWorker",
        "restartPolicy",
        "backoffLimit",
    }
)
_REPLICA = ("replicas", "restartPolicy", "template")
_GPU = "nvidia.com/gpu"
# Annotations of et-operator's closed supervisor, and of Arena.
_ANNOTATIONS = ("job-supervisor.kube-ai.io/", "arena.kubeflow.org/ssh-secret")
_LEFT_OUT = "has no counterpart; left out"
_SCALERS = frozenset({(ET, "ScaleIn"), (ET, "ScaleOut")})
_SCALER_ADVICE = (
    f"edit the job's replicas instead, within {names.MIN_REPLICAS} and {names.MAX_REPLICAS}; "
    "with `mpijob-elastic install --overlay et-operator` it is carried out as it is"
)
_OLD_DEFINITION = ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition")
_DEFINITION_ADVICE = (
    f"no API server takes this version since Kubernetes 1.22; apply {crd.IN_V1} instead"
)


class Note(NamedTuple):
    """A remark on a field, such as `spec.backoffLimit`."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class Notes(list[Note]):
    """Collects notes while an object is converted."""

    def add(self, name: str, text: str) -> None:
        """Add a note on a field."""
        self.append(Note(name, text))

    def unknown(self, source: Source, known: Collection[str], at: str) -> None:
        """Add a note on every unknown field of `source`, at the path `at`."""
        for name in source.keys() - known:
            self.add(f"{at}.{name}", _LEFT_OUT)


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and the notes on it."""

    #: The kind and name of the source, for messages.
    subject: str
    manifest: Source
    #: Sorted by field.
    notes: tuple[Note, ...]


def convert_text(text: str, *, where: str) -> list[Converted]:
    """Return every object of a YAML or JSON text; `where` names it in errors.

    Raises `Refused` if it is neither.
    """
    try:
        documents = kubectl_yaml.read_all(text)
    except kubectl_yaml.NotYaml as error:
        raise Refused(f"{where} is not YAML: {error}") from error
    return [convert(one) for document in documents for one in _objects(document, where=where)]


def convert(source: Source) -> Converted:
    """Convert an object; objects of other kinds stay as they are. Raises `Refused`."""
    kind = source.get("apiVersion", ""), source.get("kind", "")
    converter = _CONVERTERS.get(kind)
    source = _without_nulls(source) if converter else source
    metadata = source.get("metadata", {})
    name = "/".join(part for part in (metadata.get("namespace"), metadata.get("name", "?")) if part)
    subject = f"{source.get('kind', '?')} {name}"
    notes, manifest = Notes(), source
    if kind in _SCALERS:
        notes.add("kind", _SCALER_ADVICE)
    if kind == _OLD_DEFINITION and metadata.get("name") == crd.NAME:
        notes.add("apiVersion", _DEFINITION_ADVICE)
    if converter:
        try:
            manifest = converter(source, notes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
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


def _from_mpi_job(source: Source, notes: Notes) -> Object:
    """Return the MPIJob v1alpha2 as the same job in v1; its bounds are those for horovodrun."""
    spec = source.get("spec", {})
    notes.unknown(spec, (*_KEPT, *_MOVED, "mpiReplicaSpecs", "runPolicy"), "spec")
    replicas = spec.get("mpiReplicaSpecs", {})
    notes.unknown(replicas, ("Launcher", "Worker"), "spec.mpiReplicaSpecs")
    specs = {
        name: _replica(replicas[name], notes, f"spec.mpiReplicaSpecs.{name}")
        for name in ("Launcher", "Worker")
        if name in replicas
    }
    result = {key: spec[key] for key in _KEPT if key in spec} | {"mpiReplicaSpecs": specs}
    if run_policy := {key: spec[key] for key in _MOVED if key in spec} | spec.get("runPolicy", {}):
        result["runPolicy"] = run_policy
        kept = f"{', '.join(sorted(run_policy))} kept, but mpi-operator v0.2.3 does not act on it"
        notes.add("spec.runPolicy", f'{kept}: annotate the job {names.PREFIX}run-policy: "true"')
    bounds = _sizes(
        specs.get("Launcher", {}).get("template", {}), slots=int(spec.get("slotsPerWorker", 1))
    )
    return _mpi_job(source, result, bounds, notes)


def _from_training_job(source: Source, notes: Notes) -> Object:
    """Return the TrainingJob as an MPIJob v1 with minReplicas and maxReplicas as bounds."""
    spec = source.get("spec", {})
    notes.unknown(spec, _TRAINING_JOB, "spec")
    if spec.get("launcherAttachMode", "ssh") == "ssh":
        notes.add(
            "spec.launcherAttachMode",
            "ssh is replaced by kubexec: images need no sshd, and no keys are created",
        )
    if spec.get("restartPolicy", "Never") != "Never":
        notes.add(
            "spec.restartPolicy", "the job is not restarted as a whole; failed workers are replaced"
        )
    if "backoffLimit" in spec:
        notes.add("spec.backoffLimit", _LEFT_OUT)
    at, replicas = "spec.etReplicaSpecs", spec.get("etReplicaSpecs", {})
    worker = replicas.get("worker", {})
    notes.unknown(replicas, ("launcher", "worker"), at)
    launcher = _replica(replicas.get("launcher", {}), notes, f"{at}.launcher")
    launcher["template"] = _moved_template(
        launcher.get("template", {}), notes, f"{at}.launcher.template"
    )
    workers = _replica(worker, notes, f"{at}.worker", bounds=("minReplicas", "maxReplicas"))
    # As et-operator counts: as given, else the GPUs of a worker's first container, else 1.
    containers = _containers(worker.get("template", {}))
    gpus = containers[0].get("resources", {}).get("limits", {}).get(_GPU, 1) if containers else 1
    result = {
        "slotsPerWorker": int(spec.get("slotsPerWorker") or gpus),
        # et-operator's default, not mpi-operator's.
        "cleanPodPolicy": spec.get("cleanPodPolicy") or "Running",
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": workers},
    }
    annotations = dict(source["metadata"].get("annotations", {}))
    for key in [key for key in annotations if key.startswith(_ANNOTATIONS)]:
        notes.add(f"metadata.annotations[{key}]", _LEFT_OUT)
        del annotations[key]
    kept = {**source, "metadata": {**source["metadata"], "annotations": annotations}}
    # As in et-operator's types: the least defaults to `replicas`, the most is unlimited.
    bounds = (worker.get("minReplicas", workers["replicas"]), worker.get("maxReplicas"))
    return _mpi_job(kept, result, bounds, notes)


_CONVERTERS: Mapping[tuple[str, str], Callable[[Source, Notes], Object]] = {
    ("kubeflow.org/v1alpha2", "MPIJob"): _from_mpi_job,
    (ET, "TrainingJob"): _from_training_job,
}


def _mpi_job(
    source: Source, spec: Object, bounds: tuple[int | None, int | None], notes: Notes
) -> Object:
    """Return the MPIJob v1 with this spec, and the source's name, labels and annotations.

    bounds: the least and the most workers.
    """
    metadata = own_metadata(source)
    annotations = {
        key: value
        for key, value in metadata.get("annotations", {}).items()
        if key != crd.LAST_APPLIED
    }
    for key, bound in zip((names.MIN_REPLICAS, names.MAX_REPLICAS), bounds, strict=True):
        if bound is not None and key not in annotations:
            annotations[key] = str(min(bound, MOST_WORKERS))
    rest = {
        key: value
        for key, value in metadata.items()
        if key not in ("annotations", "ownerReferences")
    }
    if not policy.names_discovery(
        _texts(spec["mpiReplicaSpecs"].get("Launcher", {}).get("template", {}))
    ):
        notes.add(
            "spec.mpiReplicaSpecs.Launcher.template",
            "reads no host list, so the job keeps its size unless horovodrun runs with "
            f"--host-discovery-script {names.DISCOVER_HOSTS_PATH}",
        )
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": rest | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def _replica(source: Source, notes: Notes, at: str, *, bounds: tuple[str, ...] = ()) -> Object:
    """Convert a replica spec; the caller handles the fields `bounds`."""
    notes.unknown(source, (*_REPLICA, *bounds), at)
    result = {key: source[key] for key in _REPLICA if key in source}
    if result.get("restartPolicy") == "ExitCode":  # [operator] treats it as Never
        result["restartPolicy"] = "Never"
        text = (
            "ExitCode becomes Never; failed workers are replaced, see "
            f"{names.REPLACE_FAILED_WORKERS}"
        )
        notes.add(f"{at}.restartPolicy", text)
    # [operator] v0.2.3 ends silently on a replica spec without replicas.
    return {"replicas": 1, **result}


def _containers(template: Source) -> list[Object]:
    found: list[Object] = template.get("spec", {}).get("containers", [])
    return found


def _texts(template: Source) -> Iterator[str]:
    """Yield commands, arguments and environment values of a pod template."""
    for container in _containers(template):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (
            str(variable["value"]) for variable in container.get("env", []) if "value" in variable
        )


def _sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """Return the least and most workers, of `slots` each, for horovodrun; None for no bound."""
    for container in _containers(template):
        words = [str(word) for word in (*container.get("command", []), *container.get("args", []))]
        if launch := horovodrun.parse(words, _variables(container)):
            least = None if launch.min_np is None else max(1, -(-launch.min_np // slots))
            most = None if launch.max_np is None else max(1, launch.max_np // slots)
            return least, most
    return None, None


def _variables(container: Source) -> Iterator[tuple[str, str | None]]:
    """Yield the environment variables in their order; None for a value by reference."""
    for variable in container.get("env", []):
        value = variable.get("value")
        yield str(variable.get("name")), None if value is None else str(value)


def _moved_template(template: Source, notes: Notes, at: str) -> Object:
    """Return the template with et-operator's paths replaced by mpi-operator's."""
    for old, new in _PATHS.items():
        if any(old in text for text in _texts(template)):
            notes.add(at, f"{old} becomes {new}")
    found = [
        container
        | {key: _moved(container[key]) for key in ("command", "args", "env") if key in container}
        for container in _containers(template)
    ]
    return (
        {**template, "spec": {**template.get("spec", {}), "containers": found}}
        if found
        else {**template}
    )


def _moved(part: Any) -> Any:
    if isinstance(part, list):
        return [_moved(one) for one in part]
    if isinstance(part, dict):  # a variable of the environment
        return part | {"value": _moved(part["value"])} if "value" in part else part
    for old, new in _PATHS.items():
        part = part.replace(old, new) if isinstance(part, str) else part
    return part
