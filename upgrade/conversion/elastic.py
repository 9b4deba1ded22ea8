"""Shared by all conversions to an elastic MPIJob v1: notes, the job, and the command of its launcher."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install.objects import own_metadata
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import horovodrun, policy
from mpijob_elastic.model.bounds import MOST_WORKERS
from upgrade.crd import LAST_APPLIED

Object = dict[str, Any]
Source = Mapping[str, Any]

# The paths of et-operator.
_PATHS = {
    f"{names.EDL_PATH}/{key}": f"{names.MOUNT_PATH}/{key}" for key in (names.KEY_DISCOVER_HOSTS, names.KEY_HOSTFILE)
}
# [operator] treats ExitCode as Never.
_EXIT_CODE = "ExitCode"
_REPLICA_FIELDS = frozenset({"replicas", "template", "restartPolicy"})


@dataclass(frozen=True, kw_only=True, order=True)
class Note:
    """A remark on a field, such as `spec.backoffLimit`."""

    field: str
    text: str

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


class Notes(list[Note]):
    """Collects notes while an object is converted."""

    def add(self, name: str, text: str) -> None:
        """Add a note on a field."""
        self.append(Note(field=name, text=text))

    def unknown(self, source: Source, known: frozenset[str], at: str) -> None:
        """Add a note on every unknown field of `source`, at the path `at`."""
        for name in source.keys() - known:
            self.add(f"{at}.{name}", "has no counterpart; left out")


@dataclass(frozen=True, kw_only=True)
class Converted:
    """An object and the notes on it, sorted by field. subject: the source's kind and name, for messages."""

    subject: str
    manifest: Source
    notes: tuple[Note, ...]


def mpi_job(source: Source, spec: Object, bounds: tuple[int | None, int | None], notes: Notes) -> Object:
    """Return the MPIJob v1 with this spec, and the source's name, labels and annotations; bounds: of its workers."""
    metadata = own_metadata(source)
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != LAST_APPLIED}
    for key, bound in zip((names.MIN_REPLICAS, names.MAX_REPLICAS), bounds, strict=True):
        if bound is not None and key not in annotations:
            annotations[key] = str(min(bound, MOST_WORKERS))
    rest = {key: value for key, value in metadata.items() if key not in ("annotations", "ownerReferences")}
    if not policy.names_discovery(texts(spec["mpiReplicaSpecs"].get("Launcher", {}).get("template", {}))):
        notes.add(
            "spec.mpiReplicaSpecs.Launcher.template",
            f"reads no host list, so the job keeps its size unless horovodrun runs with --host-discovery-script "
            f"{names.DISCOVER_HOSTS_PATH}",
        )
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": rest | ({"annotations": annotations} if annotations else {}),
        "spec": spec,
    }


def replica(source: Source, notes: Notes, at: str, *, known: frozenset[str] = frozenset()) -> Object:
    """Convert a replica spec; the caller handles the fields `known`."""
    notes.unknown(source, _REPLICA_FIELDS | known, at)
    result = {key: source[key] for key in ("replicas", "restartPolicy", "template") if key in source}
    if result.get("restartPolicy") == _EXIT_CODE:
        result["restartPolicy"] = "Never"
        notes.add(
            f"{at}.restartPolicy",
            f"ExitCode becomes Never; failed workers are replaced, see {names.REPLACE_FAILED_WORKERS}",
        )
    # [operator] v0.2.3 ends silently on a replica spec without replicas.
    return {"replicas": 1, **result}


def containers(template: Source) -> list[Object]:
    """Return the containers of a pod template."""
    found: list[Object] = template.get("spec", {}).get("containers", [])
    return found


def texts(template: Source) -> Iterator[str]:
    """Return commands, arguments and environment values of a pod template."""
    for container in containers(template):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (str(variable["value"]) for variable in container.get("env", []) if "value" in variable)


def sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """Return the least and the most workers, of `slots` each, for horovodrun; None without a bound."""
    for container in containers(template):
        words = [str(word) for word in (*container.get("command", []), *container.get("args", []))]
        if launch := horovodrun.parse(words):
            least = None if launch.min_np is None else max(1, -(-launch.min_np // slots))
            most = None if launch.max_np is None else max(1, launch.max_np // slots)
            return least, most
    return None, None


def moved(template: Source, notes: Notes, at: str) -> Object:
    """Return the template with et-operator's paths replaced by mpi-operator's."""
    for old, new in _PATHS.items():
        if any(old in text for text in texts(template)):
            notes.add(at, f"{old} becomes {new}")
    found = [
        container | {key: _moved(container[key]) for key in ("command", "args", "env") if key in container}
        for container in containers(template)
    ]
    return {**template, "spec": {**template.get("spec", {}), "containers": found}} if found else {**template}


def _moved(part: Any) -> Any:
    if isinstance(part, list):
        return [_moved(one) for one in part]
    if isinstance(part, dict):  # a variable of the environment
        return part | {"value": _moved(part["value"])} if "value" in part else part
    for old, new in _PATHS.items():
        part = part.replace(old, new) if isinstance(part, str) else part
    return part
