"""The formats of `get` that name fields: `jsonpath`, `custom-columns` and the order of `--sort-by`.

Paths are those of `-o json`. Beside them each job has `metadata` with its name, namespace and time
of creation, because fingers that know kubectl type `.metadata.name`. Other fields of an MPIJob are
refused: to print nothing for `.spec` would look like an answer.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import UnionType
from typing import Any, get_args, get_origin

import msgspec

from mpijob_elastic.cli.jobs import json_path, table
from mpijob_elastic.cli.jobs.json_path import JsonPath, PartOfObject
from mpijob_elastic.cli.jobs.report import JobReport
from mpijob_elastic.cli.jobs.show import Write
from mpijob_elastic.install import Refused

#: Returns jobs in another order.
Arrange = Callable[[Sequence[JobReport]], list[JobReport]]
# What a column shows where a job lacks the field, as kubectl writes it.
_NO_VALUE = "<none>"
_DIGITS = re.compile(r"(\d+)")


_OF_THE_MPIJOB = (
    "{} is a field of the MPIJob alone: type `kubectl get mpijobs` with the same options"
)
_OF_ITEMS = "a list of jobs has no {}: begin with .items[*]"


def _absent(says: str, *paths: str) -> dict[str, str]:
    """Return what to say of fields that people look for and that are not here, by their names."""
    return {path.rpartition(".")[2]: says.format(path) for path in paths}


# The fields of a report that stand in its metadata, too, with their names there.
_METADATA = {"name": "name", "namespace": "namespace", "created": "creationTimestamp"}
_NOT_OF_A_JOB = _absent(_OF_THE_MPIJOB, ".apiVersion", ".kind", ".spec", ".status")
_NOT_OF_A_LIST = _absent(_OF_ITEMS, ".apiVersion", ".kind", ".metadata", ".spec", ".status")
_NOT_OF_METADATA = _absent(
    _OF_THE_MPIJOB,
    *(
        f".metadata.{name}"
        for name in (
            "annotations",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generateName",
            "generation",
            "labels",
            "managedFields",
            "ownerReferences",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    ),
)


class _AnyField(defaultdict[str, Any]):
    """The example of an object whose names the cluster chooses: it has each field."""

    def __contains__(self, name: object) -> bool:
        return True


def writer(output: str) -> Write:
    """Return what writes `jsonpath=TEMPLATE` or `custom-columns=SPEC`.

    Raises ValueError if the text behind the equals sign is none. The writer raises Refused where
    the jobs do not have what a path wants, such as an element of a list.
    """
    kind, _, text = output.partition("=")
    write = _by_template(text) if kind == "jsonpath" else _by_columns(text)

    def checked(reports: Sequence[JobReport], *, single: bool, headers: bool) -> str:
        with _refusing(f"-o {kind}"):
            return write(reports, single=single, headers=headers)

    return checked


def sorter(text: str) -> Arrange:
    """Return what sorts jobs by a field; jobs without the field come first.

    Raises ValueError if the text is no path. The sorter raises Refused if jobs have no such field
    at all, or if a job does not have what the path wants, such as an element of a list.
    """
    steps = json_path.path(text)

    def arranged(reports: Sequence[JobReport]) -> list[JobReport]:
        if not reports:
            return []
        with _refusing("--sort-by"):
            found = [json_path.values(steps, fields(report)) for report in reports]
            is_known = any(found) or bool(json_path.values(steps, example()))
        if not is_known:
            raise Refused(f"--sort-by: jobs have no field {text}; -o json shows the fields")
        keys = [_order(values[0] if values else None) for values in found]
        order = sorted(range(len(reports)), key=keys.__getitem__)
        return [reports[index] for index in order]

    return arranged


def fields(report: JobReport) -> dict[str, Any]:
    """Return what a path finds in a job."""
    return _with_metadata(msgspec.to_builtins(report))


def example() -> dict[str, Any]:
    """Return a job with all fields that jobs may have, by which a path is known without such a job.

    Its texts, numbers and times are "".
    """
    found: dict[str, Any] = _example(JobReport)
    return _with_metadata(found)


def _with_metadata(found: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {to: found[name] for name, to in _METADATA.items()}
    whole = {**found, "metadata": PartOfObject(metadata, _NOT_OF_METADATA)}
    return PartOfObject(whole, _NOT_OF_A_JOB)


def _example(kind: Any) -> Any:
    """Return an example of a type that a report has: of its first alternative, without null."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is UnionType:
        return _example(inner[0])
    if outer is list:
        return json_path.AnyElement([_example(inner[0])])
    if outer is dict:
        return _AnyField(partial(_example, inner[1]))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        parts = msgspec.structs.fields(kind)
        return {part.encode_name: _example(part.type) for part in parts}
    return ""


@contextmanager
def _refusing(option: str) -> Iterator[None]:
    """Raise Refused for what a path cannot find in values."""
    try:
        yield
    except ValueError as error:
        raise Refused(f"{option}: {error}") from None


def _by_template(text: str) -> Write:
    parts = json_path.template(text)

    def write(reports: Sequence[JobReport], *, single: bool, headers: bool) -> str:  # noqa: ARG001
        found = [fields(report) for report in reports]
        jobs = PartOfObject({"items": found}, _NOT_OF_A_LIST)
        return json_path.rendered(parts, found[0] if single and found else jobs)

    return write


def _by_columns(text: str) -> Write:
    columns = [_column(part) for part in text.split(",")]
    header = [name for name, _ in columns]

    def write(reports: Sequence[JobReport], *, single: bool, headers: bool) -> str:  # noqa: ARG001
        rows = [[_cell(steps, fields(report)) for _, steps in columns] for report in reports]
        lines = table.columns(header, rows)[0 if headers else 1 :]
        return "".join(f"{line}\n" for line in lines)

    return write


def _column(text: str) -> tuple[str, JsonPath]:
    """Return the name and the path of a column such as `NAME:.name`. Raises ValueError."""
    name, colon, steps = text.partition(":")
    if not (name and colon and steps):
        raise ValueError(f"{text} is no HEADER:PATH, such as NAME:.name")
    return name, json_path.path(steps)


def _cell(steps: JsonPath, found: dict[str, Any]) -> str:
    values = json_path.values(steps, found)
    return ",".join(map(_shown, values)) or _NO_VALUE


def _shown(value: Any) -> str:
    return _NO_VALUE if value is None else json_path.printed(value)


def _order(value: Any) -> tuple[int, Any]:
    """Return a key by which all values can be compared: nothing, then numbers, then texts.

    Numbers within texts count as numbers, so that `train-10` comes behind `train-9`.
    """
    if value is None:
        return 0, 0
    if isinstance(value, int | float):
        return 1, value
    parts = _DIGITS.split(json_path.printed(value))
    return 2, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
