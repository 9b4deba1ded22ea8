"""The memory as an annotation's value: JSON for people to read, compressed when it is long.

All annotations of an object together hold 256 KiB (TotalAnnotationSizeLimitB in Kubernetes'
apimachinery/pkg/api/validation/objectmeta.go). 10,000 leaving workers and 2,000 host names take at most 240 KiB.
"""

import base64
import zlib

import msgspec

from mpijob_elastic.model.bounds import LARGEST_MEMORY, MOST_WORKERS
from mpijob_elastic.model.memory import Memory

# Marks a compressed value; no JSON begins like this.
COMPRESSED = "zlib:"
# Bytes of the longest plain value.
PLAIN = 32 * 1024

_decoder = msgspec.json.Decoder(Memory)
_encoder = msgspec.json.Encoder(order="sorted")


def parse(text: str | None) -> Memory | None:
    """Return the memory in an annotation's value; None if there is none or it is unreadable."""
    try:
        memory = _decoder.decode(_expanded(text)) if text is not None else None
    except (msgspec.DecodeError, RecursionError, ValueError, zlib.error):
        return None
    parts = (memory.left, memory.replaced, memory.moved, memory.hosts, memory.renamed, memory.elders) if memory else ()
    return memory if all(len(part) <= MOST_WORKERS for part in parts) else None


def render(memory: Memory) -> str:
    """Return the annotation's value. The same memory always gives the same text."""
    plain = _encoder.encode(memory)
    if len(plain) <= PLAIN:
        return plain.decode()
    return COMPRESSED + base64.b64encode(zlib.compress(plain)).decode()


def _expanded(text: str) -> str | bytes:
    if not text.startswith(COMPRESSED):
        return text
    stream = zlib.decompressobj()
    plain = stream.decompress(base64.b64decode(text.removeprefix(COMPRESSED), validate=True), LARGEST_MEMORY)
    if not stream.eof:
        raise ValueError(f"the compressed memory is cut off, or larger than {LARGEST_MEMORY} bytes")
    return plain
