"""JSON patches (RFC 6902), made by the jsonpatch library and let through only where they add what we may add.

The diff is taken of the smallest subtree that changes: comparing a whole pod costs more than all the rest of a review.
"""

from __future__ import annotations

import re
from typing import Any

import jsonpatch

from mpijob_elastic import names

Operation = dict[str, Any]
Patch = tuple[Operation, ...]

# All that this webhook ever adds to somebody's object: an item of a ConfigMap volume, a key of a ConfigMap.
_ALLOWED = re.compile(
    r"/spec/volumes/(?:0|[1-9][0-9]*)/configMap/items/(?:0|[1-9][0-9]*)"
    rf"|/data/{re.escape(names.KEY_DISCOVER_HOSTS)}"
)


class ForeignField(Exception):
    """A patch would touch what is not ours; a fault in this program."""


def between(before: object, after: object, *, at: str) -> Patch:
    """The operations that turn `before` into `after`, which stand at the JSON pointer `at` of the object.

    Raises `ForeignField` where they would do anything but add to our fields.
    """
    operations = jsonpatch.make_patch(before, after).patch
    patch = tuple({**operation, "path": at + operation["path"]} for operation in operations)
    for operation in patch:
        if operation["op"] != "add" or not _ALLOWED.fullmatch(operation["path"]):
            raise ForeignField(f"{operation['op']} {operation['path']}")
    return patch
