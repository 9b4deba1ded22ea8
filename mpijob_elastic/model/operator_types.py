"""What mpi-operator v0.2.3 makes of an MPIJob's JSON, by its Go types.

[operator] decodes all jobs at once into these types, so a job that it cannot work with holds up
the others. Fields that its types do not know are dropped.
`operator_types.json` has the fields of each struct and their types; `make manifests` writes it from
the Go code.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mpijob_elastic.kube import meta
from mpijob_elastic.model import near_names
from mpijob_elastic.model.json_parts import seconds

# Dropped fields that the webhook gives back to the pods.
PUT_BACK = frozenset({"PodSecurityContext.seccompProfile", "SecurityContext.seccompProfile"})

# The roles of a job, whatever other keys the map has, and the name of the map in `Dropped`.
ROLES = "ReplicaSpecs"
_ROLES = frozenset({"Launcher", "Worker"})
_WHY = "mpi-operator v0.2.3 cannot work with such a job, and others wait with it"
# The search ends after so many faults, and after so many dropped fields of a job.
MOST = 100
# Characters of a key or a value that a message shows.
_SHOWN = 64
# The keys from the object down to a value, as a linked list with the last key first.
_Path = tuple[Any, str | int] | None


class Fault(NamedTuple):
    """A fault for which the webhook refuses a job, for the sake of all jobs."""

    #: The path of the field.
    field: str
    #: What is wrong, and the remedy.
    message: str
    #: The same for this fault in another item of a list.
    kind: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class Dropped(NamedTuple):
    """A field that the operator drops."""

    #: The path of the field.
    field: str
    #: `STRUCT.FIELD`.
    known_as: str


def _absent(field: str, advice: str) -> Fault:
    return Fault(field=field, message=f"is missing; {advice} {_WHY}", kind=field)


_NO_LAUNCHER = _absent("spec.mpiReplicaSpecs.Launcher", "describe the launcher there.")
_NO_CONTAINER = _absent(
    "spec.mpiReplicaSpecs.Launcher.template.spec.containers", "give the launcher a container."
)
NO_SIZE = _absent("spec.mpiReplicaSpecs.Worker.replicas", "write the number of workers.")

# The fields of structs and their types, by the name of the struct.
Types = Mapping[str, Mapping[str, str]]
_TYPES: Types = msgspec.json.decode(
    Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, dict[str, str]]
)
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')

# [operator] apimachinery v0.15.10: pkg/api/resource/quantity.go and suffix.go.
_QUANTITY = re.compile(
    r"(?=.)[+-]?[0-9]*+(?:\.[0-9]*+)?([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]{1,18})"
)
_TIME = re.compile(
    r"[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
)


def is_quantity(value: object) -> bool:
    """Tell whether the operator reads a value as a quantity."""
    return type(value) in (int, float) or (
        type(value) is str and _QUANTITY.fullmatch(value.strip(" \xa0")) is not None
    )


def _is_int(value: object, bits: int) -> bool:
    return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


def _is_time(value: object) -> bool:
    return type(value) is str and _TIME.fullmatch(value) is not None and seconds(value) is not None


_OBJECT = (lambda value: type(value) is dict, "an object; write its fields below it")
# For each type: a test of a value, and what to write instead. Lists and maps are looked up by the
# first two characters of their type.
_TAKES: dict[str, tuple[Callable[[object], bool], str]] = {
    "any": (lambda _: True, ""),
    "string": (lambda value: type(value) is str, "a string; put it in quotes"),
    "bool": (lambda value: type(value) is bool, "a boolean; write true or false, without quotes"),
    "int32": (
        lambda value: _is_int(value, 32),
        "a whole number of 32 bits; write it in digits, without quotes",
    ),
    "int64": (
        lambda value: _is_int(value, 64),
        "a whole number of 64 bits; write it in digits, without quotes",
    ),
    "quantity": (is_quantity, "a quantity; write one like 500m, 2 or 1Gi"),
    "int-or-string": (
        lambda value: type(value) is str or _is_int(value, 32),
        "a number of 32 bits or a quoted name",
    ),
    "time": (_is_time, "a time; write one like 2020-05-14T12:00:00Z"),
    "[]": (lambda value: type(value) is list, "a list; begin each item with a dash"),
    "{}": _OBJECT,
}


def judge(raw: bytes | msgspec.Raw) -> tuple[list[Fault], list[Dropped]]:
    """Return the faults of an MPIJob and the fields that the operator drops, up to `MOST` of each.

    The API server knows the types of `metadata` itself. Raises msgspec.DecodeError if reading would
    take long.
    """
    text = bytes(raw)
    if _values(text) > meta.MOST_VALUES < _values(_TEXT.sub(b"", text)):
        raise meta.TooLarge(f"it has more than {meta.MOST_VALUES:,} values")
    job = _decoder.decode(text)
    parts = {name: msgspec.json.decode(job.get(name, b"null")) for name in ("spec", "status")}
    faults, dropped = list[Fault](), _other_roles(parts["spec"])
    _walk(parts, "MPIJob", None, faults, dropped)
    return [*_missing(parts["spec"], dropped), *faults][:MOST], dropped


def _values(text: bytes) -> int:
    """Return the number of values in JSON without texts.

    JSON with texts gives that number or more. An empty list or object counts twice: each bracket
    counts for the first value in it, which has no comma before it.
    """
    return sum(map(text.count, (b",", b"{", b"[")))


def _missing(spec: object, dropped: Iterable[Dropped]) -> Iterator[Fault]:
    """Yield a fault for each missing field that the operator uses without a check.

    The message names a dropped field that seems to be the missing one. See syncHandler and
    newLauncher in the operator's mpi_job_controller.go.
    """
    roles = at(spec, "mpiReplicaSpecs")
    launcher, worker = at(roles, "Launcher"), at(roles, "Worker")
    found = []
    if launcher is None:
        found.append(_NO_LAUNCHER)
    elif not at(launcher, "template", "spec", "containers"):
        found.append(_NO_CONTAINER)
    if worker is not None and at(worker, "replicas") is None:
        found.append(NO_SIZE)
    unknown = [one.field for one in dropped]
    for fault in found:
        near = near_names.stand_in(fault.field, unknown)
        yield _absent(fault.field, near.question) if near else fault


def _other_roles(spec: object) -> list[Dropped]:
    """Return the entries of the map of roles that the operator does not look at, up to `MOST`.

    [operator] takes any key, and reads Launcher and Worker.
    """
    roles = at(spec, "mpiReplicaSpecs")
    others = [key for key in roles if key not in _ROLES] if isinstance(roles, dict) else []
    path: _Path = ((None, "spec"), "mpiReplicaSpecs")
    return [
        Dropped(field=_rendered((path, key)), known_as=f"{ROLES}.{key[:_SHOWN]}")
        for key in others[:MOST]
    ]


def fields(struct: str) -> frozenset[str]:
    """Return the names of the fields of a struct of the operator's; empty for another name."""
    return frozenset(_TYPES.get(struct, ()))


def at(value: object, *keys: str) -> object:
    """Return what stands below these keys, one in the other; None if nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def mismatch(value: object, kind: str, types: Types) -> tuple[str, list[Dropped]]:
    """Return why a value is none of that type, "" if it is; and its fields that the types lack."""
    faults, unknown = list[Fault](), list[Dropped]()
    _walk(value, kind, None, faults, unknown, types)
    first = str(faults[0]) if faults else ""
    return first.removesuffix(f". {_WHY}").removeprefix(": "), unknown


def _walk(
    value: object,
    kind: str,
    path: _Path,
    faults: list[Fault],
    dropped: list[Dropped],
    types: Types = _TYPES,
) -> None:
    """Compare a value with a type of the table, as deep as the table goes.

    A null is allowed everywhere.
    """
    if value is None or len(faults) == MOST:
        return
    takes, wanted = _TAKES.get(kind) or _TAKES.get(kind[:2], _OBJECT)
    if not takes(value):
        faults.append(_unlike(value, wanted, path))
    elif kind not in _TAKES:
        fields = types.get(kind)
        for key, item in _items(value):
            inner = kind[2:] if fields is None else fields.get(str(key))
            if inner is not None:
                _walk(item, inner, (path, key), faults, dropped, types)
            elif item is not None and len(dropped) < MOST:
                dropped.append(
                    Dropped(field=_rendered((path, key)), known_as=f"{kind}.{str(key)[:_SHOWN]}")
                )


def _items(value: object) -> Iterable[tuple[str | int, object]]:
    if isinstance(value, list):
        return enumerate(value)
    return value.items() if isinstance(value, dict) else ()


def _unlike(value: object, wanted: str, path: _Path) -> Fault:
    shown = msgspec.json.encode(value).decode()
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    message = f"{shown} is not {wanted}. {_WHY}"
    return Fault(
        field=_rendered(path), message=message, kind=_rendered(path, any_item=True) + wanted
    )


def _rendered(path: _Path, *, any_item: bool = False) -> str:
    parts = []
    while path:
        path, key = path
        if isinstance(key, int):
            parts.append("[]" if any_item else f"[{key}]")
        else:
            parts.append(f".{key[:_SHOWN]}" if key.isidentifier() else f"[{key[:_SHOWN]}]")
    return "".join(reversed(parts)).removeprefix(".")
