"""A memory as an annotation's value: plain JSON for people to read, packed where there is much of it.

All annotations of an object together hold 256 KiB. What would still be too long is made shorter, first by what costs
least: times of leaving that agree less exactly (later, so that drains only last longer), then what was tried how often,
then the names of hosts that are gone (so that some may be given again).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mpijob_elastic.model import packing
from mpijob_elastic.model.memory import Host, Left, Memory, Tries
from mpijob_elastic.model.packing import Entry, Group

# Characters: up to here plain; and what is not exceeded, so that something is left for others' annotations.
PLAIN = 32 * 1024
LONGEST = 248 * 1024
# Stands for the uid that the pod has in `left`, for one that failed has left; no uid is that.
SAME = "="
# So many different times of leaving are kept where there is no room for all.
TIMES = 64
_TRIES = ("moved", "renamed", "replaced")
_BY_POD = ("left", "hosts", *_TRIES)


class _Stored(Memory, frozen=True, kw_only=True, omit_defaults=True):
    """packed: by field, the entries of pods whose names are `before` and an index."""

    before: str = ""
    packed: Mapping[str, list[Group]] = msgspec.field(default_factory=dict)


def parse(text: str | None) -> Memory | None:
    """The memory in an annotation's value; None where there is none or somebody made it unreadable."""
    if text is None:
        return None
    try:
        return _unpacked(msgspec.json.decode(text, type=_Stored))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def render(memory: Memory) -> str:
    """The annotation's value: the same memory gives the same text."""
    text = _encode(memory)
    if len(text) <= PLAIN:
        return text
    for less in _ever_less(memory):
        text = _encode(_packed(less))
        if len(text) <= LONGEST:
            break
    return text


def _encode(memory: Memory) -> str:
    return msgspec.json.encode(memory, order="sorted").decode()


def _ever_less(memory: Memory) -> Iterator[Memory]:
    yield memory
    memory = msgspec.structs.replace(memory, left=_coarse(memory.left))
    yield memory
    for field in (*_TRIES, "hosts"):
        memory = msgspec.structs.replace(memory, **{field: {}})
        yield memory


def _coarse(left: Mapping[str, Left]) -> Mapping[str, Left]:
    """The same with fewer times: each the last of those that are put together."""
    pods = sorted(left, key=lambda pod: left[pod].at)
    size = -(-len(pods) // TIMES)
    runs = [pods[start : start + size] for start in range(0, len(pods), size)]
    return {pod: one for run in runs for pod, one in _together(run, left)}


def _together(run: list[str], left: Mapping[str, Left]) -> Iterator[tuple[str, Left]]:
    known = [left[pod].known_at for pod in run]
    at, known_at = left[run[-1]].at, max(known) if all(known) else 0.0
    return ((pod, Left(uid=left[pod].uid, at=at, known_at=known_at)) for pod in run)


def _packed(memory: Memory) -> Memory:
    fields: dict[str, Any] = {field: getattr(memory, field) for field in Memory.__struct_fields__}
    before = packing.prefix(pod for field in _BY_POD for pod in fields[field])
    packed = {}
    for field in _BY_POD:
        mine = {pod: one for pod, one in fields[field].items() if packing.is_packable(pod, before=before)}
        if mine:
            packed[field] = packing.pack((_entry(pod, one, memory.left) for pod, one in mine.items()), before=before)
            fields[field] = {pod: one for pod, one in fields[field].items() if pod not in mine}
    return _Stored(**fields, before=before, packed=packed)


def _unpacked(stored: _Stored) -> Memory:
    fields = {field: getattr(stored, field) for field in Memory.__struct_fields__}
    for field in _BY_POD:
        found = packing.unpack(stored.packed.get(field, ()), before=stored.before)
        fields[field] = {**fields[field], **{one.pod: _value(field, one, fields["left"]) for one in found}}
    return Memory(**fields)


def _entry(pod: str, value: Left | Host | Tries, left: Mapping[str, Left]) -> Entry:
    match value:
        case Left():
            return Entry(pod=pod, numbers=(value.at, value.known_at), text=value.uid)
        case Host():
            return Entry(pod=pod, numbers=(value.incarnation,), text=value.pod)
        case Tries():
            is_same = pod in left and left[pod].uid == value.uid
            return Entry(pod=pod, numbers=(value.at, value.count), text=SAME if is_same else value.uid)


def _value(field: str, entry: Entry, left: Mapping[str, Left]) -> Left | Host | Tries:
    """Raises ValueError or msgspec.DecodeError where it cannot be of that field."""
    if field == "left":
        at, known_at = entry.numbers
        return Left(uid=entry.text, at=at, known_at=known_at)
    if field == "hosts":
        (incarnation,) = entry.numbers
        return msgspec.convert({"pod": entry.text, "incarnation": int(incarnation)}, type=Host)
    at, count = entry.numbers
    uid = entry.text
    if uid == SAME and entry.pod in left:
        uid = left[entry.pod].uid
    return msgspec.convert({"uid": uid, "at": at, "count": int(count)}, type=Tries)
