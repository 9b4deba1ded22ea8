"""The memory as an annotation's value: JSON for people to read, compressed when it is long.

All annotations of an object together hold 256 KiB (TotalAnnotationSizeLimitB in Kubernetes'
apimachinery/pkg/api/validation/objectmeta.go). 10,000 leaving workers and 2,000 host names take at most 200 KiB.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from mpijob_elastic.model.memory import Left, Memory

# Marks a compressed value; no JSON begins like this.
COMPRESSED = "zlib:"
# Characters: the longest plain value, and the longest value of all, which leaves room for other annotations.
PLAIN = 32 * 1024
LONGEST = 240 * 1024
# Bytes of JSON in a compressed value. Anybody who may edit the ConfigMap may write a value that expands without end.
LARGEST = 4 * 1024 * 1024
# If a memory is too long, it keeps at most about this many different times of leaving.
TIMES = 64

_decoder = msgspec.json.Decoder(Memory)
_encoder = msgspec.json.Encoder(order="sorted")


def parse(text: str | None) -> Memory | None:
    """Return the memory in an annotation's value; None if there is none or it is unreadable."""
    try:
        return _decoder.decode(_expanded(text)) if text is not None else None
    except (msgspec.DecodeError, RecursionError, ValueError, zlib.error):
        return None


def render(memory: Memory) -> str:
    """Return the annotation's value. The same memory always gives the same text."""
    plain = _encoder.encode(memory)
    if len(plain) <= PLAIN:
        return plain.decode()
    for shorter in _ever_shorter(memory):
        plain = _encoder.encode(shorter)
        text = COMPRESSED + base64.b64encode(zlib.compress(plain)).decode()
        if len(plain) <= LARGEST and len(text) <= LONGEST:
            break
    return text


def _expanded(text: str) -> str | bytes:
    if not text.startswith(COMPRESSED):
        return text
    stream = zlib.decompressobj()
    plain = stream.decompress(base64.b64decode(text.removeprefix(COMPRESSED), validate=True), LARGEST)
    if not stream.eof:
        raise ValueError(f"the compressed memory is cut off, or larger than {LARGEST} bytes")
    return plain


def _ever_shorter(memory: Memory) -> Iterator[Memory]:
    """Yield the memory with ever less in it, first without what costs least."""
    yield memory
    memory = msgspec.structs.replace(memory, left=_with_fewer_times(memory.left))
    yield memory
    for field in ("moved", "renamed", "replaced", "hosts"):
        memory = msgspec.structs.replace(memory, **{field: {}})
        yield memory


def _with_fewer_times(left: Mapping[str, Left]) -> Mapping[str, Left]:
    at = _later(entry.at for entry in left.values())
    known_at = _later(entry.known_at for entry in left.values() if entry.known_at)
    return {
        pod: Left(pod=entry.pod, at=at[entry.at], known_at=known_at.get(entry.known_at, 0.0))
        for pod, entry in left.items()
    }


def _later(times: Iterable[float]) -> Mapping[float, float]:
    """Map each time to one of a few later times, so that drains only last longer."""
    ordered = sorted(set(times))
    run = -(-len(ordered) // TIMES)
    return {time: ordered[min(at - at % run + run, len(ordered)) - 1] for at, time in enumerate(ordered)}
