"""JSON patches (RFC 6902), made by the jsonpatch library, only for fields that we may change.

Patches are not found by comparison: a diff of two pods costs more than the rest of a review, and a hostile, deep pod
makes it worse.
"""

import re
from typing import Any

import jsonpatch

from mpijob_elastic import names

Operation = dict[str, Any]
Patch = tuple[Operation, ...]

# The only replaceable field: the hosts that a launcher waits for.
_REPLACEABLE = re.compile(rf"/data/{re.escape(names.KEY_HOSTFILE)}")
# Fields that may be added: an item of a ConfigMap volume, a key of a ConfigMap, the selector of a job's workers, and a
# label.
_ALLOWED = re.compile(
    r"/spec/volumes/(?:0|[1-9][0-9]*)/configMap/items/(?:0|[1-9][0-9]*)"
    rf"|/data/{re.escape(names.KEY_DISCOVER_HOSTS)}"
    r"|/status/replicaStatuses/Worker/selector"
    r"|/metadata/labels/(?:[a-z0-9.-]+~1)?[A-Za-z0-9._-]+"
)


class ForeignField(Exception):
    """A patch would touch a field that is not ours; a fault in this program."""


def adding(*, at: str, value: object) -> Patch:
    """Return a patch that adds `value` at a JSON pointer: under a new key, or after a list's last item.

    Raises `ForeignField` if the field is not ours.
    """
    return _patch("add", _ALLOWED, at, value)


def labelling(key: str, value: str) -> Patch:
    """Return a patch that adds a label to an object that has labels. Raises `ForeignField` if `key` is malformed."""
    return adding(at=f"/metadata/labels/{key.replace('/', '~1')}", value=value)


def replacing(*, at: str, value: object) -> Patch:
    """Return a patch that replaces the value at a JSON pointer. Raises `ForeignField` as `adding` does."""
    return _patch("replace", _REPLACEABLE, at, value)


def _patch(kind: str, allowed: re.Pattern[str], at: str, value: object) -> Patch:
    if not allowed.fullmatch(at):
        raise ForeignField(at)
    return tuple(jsonpatch.JsonPatch([{"op": kind, "path": at, "value": value}]).patch)
