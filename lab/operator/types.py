"""The types into which mpi-operator v0.2.3 decodes MPIJobs, and what it drops of the pods of today.

lab/binaries/mpi-operator-v0.2.3/fields tells the former, lab/binaries/pod-types the types of today.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.golang import run_go
from lab.modules import PINNED
from mpijob_elastic.model import operator_types, template_fields
from mpijob_elastic.model.template_fields import ADD, REPLACE

TABLE = Path(operator_types.__file__).with_suffix(".json")
DROPPED = Path(template_fields.__file__).with_suffix(".json")
# Fields that are not put back, each with the reason.
LEFT_OUT = {
    "PodSpec.ephemeralContainers": "a pod may not have one at its creation",
    "PodSpec.evictionResponders": "how a worker leaves is the part of the controller",
    "PodSpec.overhead": "the RuntimeClass sets it, and the API server refuses another value",
    "PodSecurityContext.seccompProfile": "the webhook puts it back for every job",
    "SecurityContext.seccompProfile": "the webhook puts it back for every job",
}
# The struct of which an item without a source arrives as an emptyDir, so it is replaced as a whole.
_REPLACED = "Volume"


def table() -> str:
    """Return the table of `model.operator_types`. Raise LabError if Go cannot make it."""
    return _run("mpi-operator-v0.2.3", "./fields")


def dropped() -> str:
    """Return the table of `model.template_fields`. Raise LabError if Go cannot make it."""
    old = json.loads(table())
    new = json.loads(_run("pod-types", "."))
    keys: dict[str, str] = {}
    fields = dict(_dropped(old, new, "PodSpec", "PodSpec", "/spec", keys))
    types: dict[str, dict[str, str]] = {}
    for row in fields.values():
        _add_types(new, row["type"], types)
    lines = [
        f'"kubernetes": {json.dumps(_release())}',
        _object("fields", fields),
        _object("keys", {path: key for path, key in keys.items() if _is_used(path, fields)}),
        _object("types", types),
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def errors(jobs: Sequence[bytes]) -> list[str]:
    """Return why the operator cannot decode each of these MPIJobs, "" where it can.

    Raise LabError as `table` does.
    """
    return _run("mpi-operator-v0.2.3", "./fields", "decode", given=b"\n".join(jobs)).splitlines()


def _dropped(
    old: Mapping[str, Mapping[str, str]],
    new: Mapping[str, Mapping[str, tuple[str, str]]],
    known: str,
    struct: str,
    path: str,
    keys: dict[str, str],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the path of each field that the operator drops, with its row.

    `known` is the operator's struct there, and `struct` that of today. `keys` gets the key of the
    items of each list on the way.
    """
    for field, (kind, key) in sorted(new[struct].items()):
        at = f"{path}/{field}"
        before = old[known].get(field)
        if before is None:
            name = f"{known}.{field}"
            if name not in LEFT_OUT:
                op = REPLACE if known == _REPLACED else ADD
                yield at, {"known_as": name, "type": kind, "op": op}
            continue
        depth = _depth(kind)
        inner, inner_before = kind[2 * depth :], before[2 * depth :]
        if key:
            keys[at] = key
        if inner_before in old:
            yield from _dropped(old, new, inner_before, inner, at + "/*" * depth, keys)


def _depth(kind: str) -> int:
    """Return in how many lists and maps the values of a type are."""
    depth = 0
    while kind[2 * depth :].startswith(("[]", "{}")):
        depth += 1
    return depth


def _is_used(path: str, fields: Mapping[str, Any]) -> bool:
    return any(field.startswith(f"{path}/") for field in fields)


def _add_types(
    new: Mapping[str, Mapping[str, tuple[str, str]]], kind: str, types: dict[str, dict[str, str]]
) -> None:
    """Add the structs of which a value of this type consists."""
    struct = kind[2 * _depth(kind) :]
    if struct not in new or struct in types:
        return
    types[struct] = {field: inner for field, (inner, _) in new[struct].items()}
    for inner in types[struct].values():
        _add_types(new, inner, types)


def _object(name: str, values: Mapping[str, Any]) -> str:
    """Return the JSON of a member, with a line for each of its values."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(values.items())]
    return f'"{name}": {{\n' + ",\n".join(lines) + "\n}"


def _release() -> str:
    """Return the release of Kubernetes of which lab/binaries/pod-types has the types."""
    listed = run_go("list", "-m", "k8s.io/api", directory=PINNED / "pod-types")
    version = listed.split()[-1]
    return version.replace("v0.", "v1.")


def _run(module: str, package: str, *arguments: str, given: bytes = b"") -> str:
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/program"
        # As `lab.build` builds the operator, so most of it is in Go's cache.
        run_go(
            "build",
            "-trimpath",
            "-mod=readonly",
            "-o",
            program,
            package,
            directory=PINNED / module,
        )
        return subprocess.run(
            [program, *arguments], input=given, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
