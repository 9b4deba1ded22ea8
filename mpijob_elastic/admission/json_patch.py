"""JSON patches (RFC 6902), only for fields that we may change.

Patches are not found by comparison: a diff of two pods costs more than the rest of a review, and a
hostile, deep pod makes it worse.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from mpijob_elastic import names

Operation = dict[str, Any]
Patch = tuple[Operation, ...]

# Fields that may be replaced: the hosts that a launcher waits for, whether its kubelet restarts it,
# a worker's main process, and the size in a scale.
_REPLACEABLE = re.compile(
    rf"/data/{re.escape(names.KEY_HOSTFILE)}|/spec/(?:restartPolicy|replicas)|/spec/containers/[0-9]+/(?:command|args)"
)


def _escaped(key: str) -> str:
    """Return the key of a label or annotation as a part of a JSON pointer (RFC 6901).

    No such key holds a tilde.
    """
    return key.replace("/", "~1")


_NEW_KEYS = (names.KEY_DISCOVER_HOSTS, names.KEY_ELASTIC, names.KEY_HYDRA_HOSTFILE)
_KEY = r"(?:[a-z0-9.-]+~1)?[A-Za-z0-9._-]+"
# Fields that may be added: a volume, an item of a ConfigMap volume, a mount, environment variables,
# keys of a ConfigMap, the selector of a job's workers, the deadline of a launcher, the grace period
# of a worker, scheduling gates, a label, an annotation, a pod's scheduler and group, nodes that a
# pod prefers, what a placeholder asks for, and a seccomp profile, or a security context where there
# is none.
_ALLOWED = re.compile(
    r"/spec/volumes/(?:0|[1-9][0-9]*)(?:/configMap/items/(?:0|[1-9][0-9]*))?"
    r"|/spec/containers/(?:0|[1-9][0-9]*)/volumeMounts/(?:0|[1-9][0-9]*)"
    r"|/spec/containers/(?:0|[1-9][0-9]*)/env(?:/(?:0|[1-9][0-9]*))?"
    rf"|/data/(?:{'|'.join(map(re.escape, _NEW_KEYS))})"
    r"|/status/replicaStatuses/Worker/selector"
    r"|/spec/(?:activeDeadline|terminationGracePeriod)Seconds"
    r"|/spec/schedulingGates(?:/-)?"
    rf"|/metadata/(?:labels|annotations)(?:/{_KEY})?"
    r"|/spec/schedulerName|/spec/schedulingGroup"
    r"|/spec/affinity(?:/nodeAffinity(?:/preferredDuringSchedulingIgnoredDuringExecution(?:/-)?)?)?"
    r"|/spec/(?:initC|c)ontainers/(?:0|[1-9][0-9]*)/resources"
    r"|/spec(?:/(?:initC|c)ontainers/(?:0|[1-9][0-9]*))?/securityContext(?:/seccompProfile)?"
)

# The position of an item in a JSON pointer.
_INDEX = re.compile(r"/(?:0|[1-9][0-9]*)(?=/|$)")


class ForeignField(Exception):
    """A patch would touch a field that is not ours; a fault in this program."""


def adding(*, at: str, value: object) -> Patch:
    """Return a patch that adds `value` at a JSON pointer.

    The value goes under a new key, or after a list's last item. Raises `ForeignField` if the field
    is not ours.
    """
    return _patch("add", _ALLOWED, at, value)


def labelling(key: str, value: str) -> Patch:
    """Return a patch that adds a label to an object that has labels.

    Raises `ForeignField` if `key` is malformed.
    """
    return adding(at=f"/metadata/labels/{_escaped(key)}", value=value)


def labelling_new(found: Mapping[str, str], key: str, value: str) -> Patch:
    """Return a patch that sets a label of an object whose labels are `found`, if it has any.

    Raises `ForeignField` as `labelling` does.
    """
    if not found:
        return adding(at="/metadata/labels", value={key: value})
    return labelling(key, value)


def annotating(found: Mapping[str, str], wanted: Mapping[str, str]) -> Patch:
    """Return a patch that adds the `wanted` annotations that are not among those `found`."""
    lacking = {key: value for key, value in wanted.items() if key not in found}
    if not found and lacking:
        return adding(at="/metadata/annotations", value=lacking)
    return tuple(
        operation
        for key, value in lacking.items()
        for operation in adding(at=f"/metadata/annotations/{_escaped(key)}", value=value)
    )


def scheduling(scheduler: str) -> Patch:
    """Return a patch that gives a pod to a scheduler."""
    return adding(at="/spec/schedulerName", value=scheduler)


def grouping(group: str) -> Patch:
    """Return a patch that puts a pod into a group of Kubernetes."""
    return adding(at="/spec/schedulingGroup", value={"podGroupName": group})


def replacing(*, at: str, value: object) -> Patch:
    """Return a patch that replaces the value at a JSON pointer.

    Raises `ForeignField` as `adding` does.
    """
    return _patch("replace", _REPLACEABLE, at, value)


def restoring(*, at: str, value: object, op: str, allowed: Collection[str]) -> Patch:
    """Return a patch (`op`: add or replace) of a field that the operator has dropped.

    allowed: the JSON pointers of such fields, with `*` for any item. Raises `ForeignField` for
    another one.
    """
    if _INDEX.sub("/*", at) not in allowed:
        raise ForeignField(at)
    return ({"op": op, "path": at, "value": value},)


def _patch(kind: str, allowed: re.Pattern[str], at: str, value: object) -> Patch:
    if not allowed.fullmatch(at):
        raise ForeignField(at)
    return ({"op": kind, "path": at, "value": value},)
