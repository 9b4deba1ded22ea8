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
# A capability's entry stays undecoded, so a bad one costs nobody else the memory; in number and bytes:
MOST_OWN, LARGEST_OWN = 8, 1024
_FIELDS = frozenset(Memory.__struct_encode_fields__)
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder = msgspec.json.Encoder(order="sorted")


def parse(text: str | None) -> Memory | None:
    """Return the memory in an annotation's value; None if there is none or it is unreadable."""
    try:
        plain = _expanded(text) if text is not None else None
        memory = _decoder.decode(plain) if plain is not None else None
    except (msgspec.DecodeError, RecursionError, ValueError, zlib.error):
        return None
    parts = (memory.left, memory.replaced, memory.moved, memory.hosts, memory.renamed, memory.elders) if memory else ()
    if memory is None or any(len(part) > MOST_WORKERS for part in parts):
        return None
    own = {name: bytes(raw) for name, raw in _parts.decode(plain or b"{}").items() if name not in _FIELDS}
    own = {name: raw for name, raw in own.items() if len(raw) <= LARGEST_OWN}
    return msgspec.structs.replace(memory, own=dict(list(own.items())[:MOST_OWN])) if own else memory


def render(memory: Memory) -> str:
    """Return the annotation's value. The same memory always gives the same text."""
    plain = _encoder.encode(msgspec.structs.replace(memory, own={}))
    if memory.own:
        own = {name: msgspec.Raw(raw) for name, raw in memory.own.items()}
        plain = _encoder.encode({**_parts.decode(plain), **own})
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
