"""The facts of a ConfigMap or a Role between two looks: long texts compressed.

A host list of 1,000 workers is 140 KiB of text that differs in its numbers alone, and takes 7 KiB.
"""

import zlib
from typing import TypeVar

import msgspec

from mpijob_elastic.model.job import ConfigFacts, Role

F = TypeVar("F", ConfigFacts, Role)

# Bytes that are kept as they are: so much a job of 100 workers has, and most are smaller.
PLAIN = 16 * 2**10
# Three times as fast as the usual level, for a tenth more bytes.
_LEVEL = 1


def packed(facts: F) -> F:
    """Return the facts as they are kept."""
    plain = msgspec.msgpack.encode(facts)
    if len(plain) <= PLAIN:
        return facts
    return type(facts)(metadata=facts.metadata, packed=zlib.compress(plain, _LEVEL))


def unpacked(facts: F) -> F:
    """Return the facts as they were read."""
    return msgspec.msgpack.decode(zlib.decompress(facts.packed), type=type(facts)) if facts.packed else facts


def size(*texts: str) -> int:
    """Return the bytes that texts take when they are packed."""
    return len(zlib.compress("".join(texts).encode(), _LEVEL))
