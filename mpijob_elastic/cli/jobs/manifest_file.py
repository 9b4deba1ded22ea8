"""Read the MPIJob that `submit -f` creates. Everything else in a file is kubectl's."""

import json
import sys
from pathlib import Path
from typing import Any

from mpijob_elastic.install import Refused
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.kube.resources import MPI_JOBS

Object = dict[str, Any]
# The file that stands for standard input.
STDIN = "-"
# What the API server writes into an object, and `kubectl get -o yaml` prints. It refuses to create
# an object with a resourceVersion, and a status would be that of another job.
_OF_THE_SERVER = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_STATUS = "status"
# The parts of the metadata by which we find the job.
_TEXTS = ("name", "generateName", "namespace")


def read(file: str) -> Object:
    """Return the only MPIJob of a file, or of standard input, without what an API server wrote.

    Raises Refused if there is none or another object, or for a file that is no YAML, and OSError.
    """
    try:
        text = sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
        found = [one for one in kubectl_yaml.read_all(text) if one]
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None
    kinds = [_kind(one) for one in found]
    wanted = f"{MPI_JOBS.kind} {MPI_JOBS.api_version}"
    if kinds != [wanted]:
        there = ", ".join(kinds) or "nothing"
        raise Refused(f"{file} has {there}, and not one {wanted}; `kubectl create -f` takes all")
    job: Object = found[0]
    metadata = job.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise Refused(f"{file}: the MPIJob has no metadata.name")
    _refuse_other_types(metadata, file)
    kept = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
    return {key: value for key, value in job.items() if key != _STATUS} | {"metadata": kept}


def _refuse_other_types(metadata: Object, file: str) -> None:
    """Raise Refused for a name that YAML reads as a number, for example."""
    for key in _TEXTS:
        value = metadata.get(key)
        if value is not None and not isinstance(value, str):
            raise Refused(
                f"{file}: metadata.{key} is {json.dumps(value)}, which is no text: quote it"
            )


def namespace(job: Object, given: str | None, file: str) -> str | None:
    """Return the namespace for a job: that of the file, or the given one.

    Raises Refused if both are there and differ, as kubectl does.
    """
    own: str | None = job["metadata"].get("namespace")
    if own and given and own != given:
        raise Refused(f"{file}: metadata.namespace is {own}, and not {given} as --namespace says")
    return own or given


def launcher_line(job: Object) -> list[str]:
    """Return the command of the launcher, with its arguments; nothing if there is none."""
    found: Any = job
    for key in ("spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    first = found[0] if isinstance(found, list) and found else {}
    parts = [first.get(key) for key in ("command", "args")] if isinstance(first, dict) else []
    return [str(word) for part in parts if isinstance(part, list) for word in part]


def _kind(found: Any) -> str:
    """Return kind and version of an object."""
    if not isinstance(found, dict):
        return "no object"
    return f"{found.get('kind', 'an object without a kind')} {found.get('apiVersion', '')}".strip()
