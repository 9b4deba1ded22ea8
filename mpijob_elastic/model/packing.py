"""Entries of a memory by pod, packed: a large job's would not fit into an annotation otherwise.

All annotations of an object together hold 256 KiB (TotalAnnotationSizeLimitB in Kubernetes'
apimachinery/pkg/api/validation/objectmeta.go). As JSON a pod's entry takes some 180 bytes, of which 22 are its own: a
uid has 122 random bits (RFC 9562). Names differ by the index alone, and pods that leave together have their times in
common.
"""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec

# More pods than any job has: a range in somebody else's text must not become a billion names.
MOST = 100_000
_NAME = re.compile(r"(?P<prefix>.+-worker-)(?P<index>0|[1-9][0-9]{0,8})")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_ENCODED = 22  # characters of base64 for a uid


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What is remembered of a pod: numbers and a text, mostly a uid."""

    pod: str
    numbers: tuple[float, ...]
    text: str


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Pods that agree in `numbers`: their indices ("0-3,7"), and a text of each, all of one length, put together.

    uids: the same where the texts are uids, as base64.
    """

    pods: str
    numbers: tuple[Annotated[float, msgspec.Meta(ge=0.0, le=1e11)], ...]
    uids: str = ""
    texts: str = ""


def prefix(pods: Iterable[str]) -> str:
    """What comes before the index in the names of workers, "" where none is of one."""
    return next((found["prefix"] for pod in pods if (found := _NAME.fullmatch(pod))), "")


def pack(entries: Iterable[Entry], *, before: str) -> list[Group]:
    """The groups of these entries, in a settled order; every pod's name is that prefix and an index."""
    kinds: dict[tuple[tuple[float, ...], bool, int], list[tuple[int, str]]] = {}
    for entry in entries:
        short = _short(entry.text)
        kind = (entry.numbers, short is not None, len(short or entry.text))
        kinds.setdefault(kind, []).append((int(entry.pod.removeprefix(before)), short or entry.text))
    return [_group(numbers, sorted(pods), are_uids=uids) for (numbers, uids, _), pods in sorted(kinds.items())]


def unpack(groups: Iterable[Group], *, before: str) -> Iterator[Entry]:
    """The entries again. Raises ValueError where somebody else wrote that."""
    for group in groups:
        indices = _indices(group.pods)
        texts = (
            [_long(one) for one in _cut(group.uids, len(indices))] if group.uids else _cut(group.texts, len(indices))
        )
        for index, text in zip(indices, texts, strict=True):
            yield Entry(pod=f"{before}{index}", numbers=group.numbers, text=text)


def is_packable(pod: str, *, before: str) -> bool:
    """Whether the pod's name is that prefix and an index."""
    found = _NAME.fullmatch(pod)
    return found is not None and found["prefix"] == before


def _group(numbers: tuple[float, ...], pods: list[tuple[int, str]], *, are_uids: bool) -> Group:
    texts = "".join(text for _, text in pods)
    ranges = _ranges(index for index, _ in pods)
    return Group(pods=ranges, numbers=numbers, uids=texts if are_uids else "", texts="" if are_uids else texts)


def _ranges(indices: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in indices:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _indices(ranges: str) -> list[int]:
    runs = [_run(one) for one in ranges.split(",")]
    if sum(map(len, runs)) > MOST:
        raise ValueError(f"{ranges[:40]} are more than {MOST} pods")
    return [index for run in runs for index in run]


def _run(text: str) -> range:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no range of indices")
    return range(int(found[1]), int(found[2] or found[1]) + 1)


def _cut(texts: str, count: int) -> list[str]:
    if count == 0 or len(texts) % count:
        raise ValueError(f"{len(texts)} characters are not of {count} pods")
    width = len(texts) // count
    return [texts[start * width : (start + 1) * width] for start in range(count)]


def _short(text: str) -> str | None:
    """A uid in base64; None where the text is none that comes back the same."""
    try:
        number = uuid.UUID(text)
    except ValueError:
        return None
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=") if str(number) == text else None


def _long(text: str) -> str:
    if len(text) != _ENCODED:
        raise ValueError(f"{text[:40]!r} is no uid")
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{text}==")))
