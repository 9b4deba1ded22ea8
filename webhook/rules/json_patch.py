"""JSON patches (RFC 6902), made by the jsonpatch library and let through only where they change what we may change.

They are written down, not found by comparing: a diff of two pods costs more than all the rest of a review, and more
still where a hostile one is deep.
"""

from __future__ import annotations

import re
from typing import Any

import jsonpatch

from mpijob_elastic import names

Operation = dict[str, Any]
Patch = tuple[Operation, ...]

# All that this webhook ever replaces: the hosts that a launcher waits for.
_REPLACEABLE = re.compile(rf"/data/{re.escape(names.KEY_HOSTFILE)}")
# All that it ever adds to somebody's object: an item of a ConfigMap volume, that the volume's keys may be missing,
# a key of a ConfigMap, how a job's workers are found.
_ALLOWED = re.compile(
    r"/spec/volumes/(?:0|[1-9][0-9]*)/configMap/(?:items/(?:0|[1-9][0-9]*)|optional)"
    rf"|/data/{re.escape(names.KEY_DISCOVER_HOSTS)}"
    r"|/status/replicaStatuses/Worker/selector"
)


class ForeignField(Exception):
    """A patch would touch what is not ours; a fault in this program."""


def adding(*, at: str, value: object) -> Patch:
    """The patch that adds `value` at a JSON pointer: under a new key, or at the index after a list's last one.

    Raises `ForeignField` where this is not one of our fields.
    """
    return _patch("add", _ALLOWED, at, value)


def replacing(*, at: str, value: object) -> Patch:
    """The patch that puts `value` in the place of another at a JSON pointer. Raises `ForeignField` as `adding` does."""
    return _patch("replace", _REPLACEABLE, at, value)


def _patch(kind: str, allowed: re.Pattern[str], at: str, value: object) -> Patch:
    if not allowed.fullmatch(at):
        raise ForeignField(at)
    return tuple(jsonpatch.JsonPatch([{"op": kind, "path": at, "value": value}]).patch)
