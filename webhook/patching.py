"""JSON patches (RFC 6902), made by the jsonpatch library and let through only where they add what we may add.

Only the part that is added is compared: a diff of two whole pods costs more than all the rest of a review, and more
still where a hostile one is deep.
"""

from __future__ import annotations

import re
from typing import Any

import jsonpatch

from mpijob_elastic import names

Operation = dict[str, Any]
Patch = tuple[Operation, ...]

# All that this webhook ever adds to somebody's object: an item of a ConfigMap volume, that the volume's keys may be
# missing, a key of a ConfigMap.
_ALLOWED = re.compile(
    r"/spec/volumes/(?:0|[1-9][0-9]*)/configMap/(?:items/(?:0|[1-9][0-9]*)|optional)"
    rf"|/data/{re.escape(names.KEY_DISCOVER_HOSTS)}"
)


class ForeignField(Exception):
    """A patch would touch what is not ours; a fault in this program."""


def adding(key: str, value: object, *, at: str) -> Patch:
    """The operations that add `value` under a key that is not there yet, or at the index after a list's last one.

    `at` is the JSON pointer of the object or list. Raises `ForeignField` where this is not one of our fields.
    """
    operations = jsonpatch.make_patch({}, {key: value}).patch
    patch = tuple({**operation, "path": at + operation["path"]} for operation in operations)
    for operation in patch:
        if operation["op"] != "add" or not _ALLOWED.fullmatch(operation["path"]):
            raise ForeignField(f"{operation['op']} {operation['path']}")
    return patch
