"""The cost of reading an object: bounded before it is read, because reading holds up everything else.

msgspec skips what nobody asked for in 2 ms a MiB. A field or an item that it keeps costs up to a hundred times as much.
"""

from collections.abc import Iterable

import msgspec

# Fields of an object. A Role of 10,000 workers has as many names; to read 15,000 takes up to 5 ms.
MOST_VALUES = 15_000
# What stands before a field, a text or an object in a list. Rare in texts, where quotes are escaped.
_FIELDS = (b',"', b",{")


class TooLarge(msgspec.DecodeError):
    """An object would take too long to read."""


def check(raw: bytes | msgspec.Raw, *, most: int = MOST_VALUES, marks: Iterable[bytes] = _FIELDS) -> None:
    """Raise `TooLarge` if an object has more than `most` of the `marks`."""
    if len(memoryview(raw)) > most and sum(map(bytes(raw).count, marks)) > most:
        raise TooLarge(f"it has more than {most:,} fields or list items")
