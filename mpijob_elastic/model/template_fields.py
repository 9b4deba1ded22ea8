"""The fields of pod templates that the operator drops, and that an MPIJob wants put back; pure.

[operator] The types of mpi-operator v0.2.3 are those of Kubernetes 1.15, so later fields never
reach its pods. `template_fields.json` says what they are and of which type; `make manifests` writes
it from the Go types of k8s.io/api (lab/operator/types.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import mpijob, operator_types, policy, requests
from mpijob_elastic.model.json_parts import SchedulingGate, SchedulingGroup, Wire
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.operator_types import Dropped

# Dropped fields of a template that are looked at, and bytes of the values that are kept of a job.
MOST, MOST_BYTES = 100, 16 * 2**10
# Fields that keep a pod from other pods and from its node, as `operator_types` knows them.
ISOLATING = frozenset(
    {
        "PodSpec.hostUsers",
        "PodSecurityContext.appArmorProfile",
        "PodSecurityContext.supplementalGroupsPolicy",
        "SecurityContext.appArmorProfile",
    }
)
# Fields that later rules of the webhook read (`mutate.AdmittedSpec`), with the types of their
# values there. These types have no nulls, which the API server would take in lists.
READ = {
    "Container.restartPolicy": str,
    "PodSpec.schedulingGates": list[SchedulingGate],
    "PodSpec.schedulingGroup": SchedulingGroup,
}
_RESIZE_POLICY = "Container.resizePolicy"
# The policies of a replica spec by which its containers restart; without one they do not.
_RESTARTS = ("Always", "OnFailure")
_CLAIMS, _RESOURCE_CLAIMS = "ResourceRequirements.claims", "PodSpec.resourceClaims"
_ROLES = {names.ROLE_LAUNCHER: "Launcher", names.ROLE_WORKER: "Worker"}
# The operations of the table: the field is added, or the item that should have the field is
# replaced, because it arrives as something else.
ADD, REPLACE = "add", "replace"
_ANY_ITEM = "*"


class Row(msgspec.Struct, frozen=True):
    """A field that the operator drops."""

    #: `STRUCT.FIELD`, with the struct's name in the operator.
    known_as: str
    #: Its type in Kubernetes.
    type: str
    #: `ADD` or `REPLACE`.
    op: str


class _Table(msgspec.Struct, frozen=True):
    #: The release of Kubernetes that has these types.
    kubernetes: str
    #: By the JSON pointer in a pod, with `*` for any item of a list.
    fields: Mapping[str, Row]
    #: By the pointer of a list: the key that tells its items apart.
    keys: Mapping[str, str]
    types: operator_types.Types


TABLE = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Table)


# The JSON pointers at which the webhook may add a field, and replace an item; `*` is any item.
MAY_ADD = frozenset(pointer for pointer, row in TABLE.fields.items() if row.op == ADD)
MAY_REPLACE = frozenset(
    pointer.rpartition("/")[0] for pointer, row in TABLE.fields.items() if row.op == REPLACE
)


@dataclass
class _Place:
    """A place in a pod at which, or below which, the operator drops fields."""

    #: The key that tells the items of a list apart; "" for their position.
    key: str = ""
    row: Row | None = None
    below: dict[str, "_Place"] = field(default_factory=dict)


def _places() -> _Place:
    """Return the table as a tree; its root is the pod."""
    root = _Place()
    for pointer, row in TABLE.fields.items():
        place = root
        for step in pointer.split("/")[1:]:
            place = place.below.setdefault(step, _Place())
        place.row = row
    for pointer, key in TABLE.keys.items():
        place = root
        for step in pointer.split("/")[1:]:
            place = place.below[step]
        place.key = key
    return root


_SPEC = _places().below["spec"]


class ListItem(NamedTuple):
    """An item of a list in a template, by which the same item is found in a pod."""

    #: The key that tells the items apart; "" for their position.
    key: str
    #: The value of the key.
    value: str
    #: The position.
    at: int
    #: The number of items.
    among: int

    def position(self, items: list[Any]) -> int | None:
        """Return the position of the item among those of a pod; None if it is not certain.

        Other webhooks insert items that have a key.
        """
        if not self.key:
            return self.at if len(items) == self.among else None
        found = None
        for at, one in enumerate(items):
            if _key(one, self.key) == self.value:
                if found is not None:
                    return None
                found = at
        return found


# The keys from a pod's spec down to a field.
Steps = tuple[str | ListItem, ...]


class Lost(NamedTuple):
    """A field of a template that the operator drops."""

    #: From the pod's spec.
    steps: Steps
    row: Row
    #: The JSON of its value.
    value: bytes

    def path(self, role: str) -> str:
        """Return the path of the field in the MPIJob, as `operator_types` writes it."""
        path = f"spec.mpiReplicaSpecs.{_ROLES[role]}.template.spec"
        for step in self.steps:
            path += f"[{step.at}]" if isinstance(step, ListItem) else f".{step}"
        return path

    def faults(self) -> tuple[str, list[Dropped]]:
        """Return why Kubernetes cannot read the value, "" if it can; and the fields it drops.

        With a value of a wrong type the API server would refuse the patched pod as an internal
        error, which `failurePolicy: Ignore` does not cover.
        """
        value = msgspec.json.decode(self.value)
        why, unknown = operator_types.mismatch(value, self.row.type, TABLE.types)
        if not why and self.row.known_as in READ:
            why = _unread(value, READ[self.row.known_as])
        return why, unknown

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.row.known_as.partition(".")[2]


def lost(spec: object) -> list[Lost]:
    """Return the fields of a template's spec that the operator drops, at most `MOST`."""
    found: list[Lost] = []
    _find(spec, _SPEC, (), found)
    return found


def _find(value: object, place: _Place, steps: Steps, found: list[Lost]) -> None:
    if place.row is not None:
        if value is not None and len(found) < MOST:
            found.append(Lost(steps=steps, row=place.row, value=msgspec.json.encode(value)))
        return
    of_items = place.below.get(_ANY_ITEM)
    if isinstance(value, list) and of_items:
        for at, item in enumerate(value):
            one = ListItem(key=place.key, value=_key(item, place.key), at=at, among=len(value))
            _find(item, of_items, (*steps, one), found)
    if isinstance(value, dict) and not of_items:
        for step, below in place.below.items():
            _find(value.get(step), below, (*steps, step), found)


def _key(item: object, key: str) -> str:
    """Return the text at a key of an item; "" if there is none."""
    value = item.get(key) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


class _Template(Wire, frozen=True):
    spec: Any = None


class _Replica(Wire, frozen=True):
    template: _Template | None = None


class _Replicas(Wire, frozen=True, rename="pascal"):
    launcher: _Replica | None = None
    worker: _Replica | None = None


class _Spec(Wire, frozen=True):
    mpi_replica_specs: _Replicas | None = None


class _Job(Wire, frozen=True):
    spec: _Spec | None = None


_decoder = msgspec.json.Decoder(_Job)


def templates(job: MPIJob) -> Mapping[str, Any]:
    """Return the spec of each pod template of a job, by role, with the operator's restartPolicy."""
    spec = _decoder.decode(job.text).spec or _Spec()
    replicas = spec.mpi_replica_specs or _Replicas()
    by_role = {names.ROLE_LAUNCHER: replicas.launcher, names.ROLE_WORKER: replicas.worker}
    found: dict[str, Any] = {}
    for role, replica in by_role.items():
        template = replica.template if replica else None
        found[role] = template.spec if template else None
        if isinstance(found[role], dict):
            # [operator] The policy of the replica spec counts, and not that of the template.
            found[role]["restartPolicy"] = job.restart_policy(role)
    return found


def lost_by_role(specs: Mapping[str, Any]) -> Mapping[str, list[Lost]]:
    """Return the fields of each template's spec that the operator drops; `specs`: by role."""
    return {role: lost(spec) for role, spec in specs.items()}


def _unread(value: object, kind: Any) -> str:
    """Return why a value is not of a type that we read; "" if it is."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


class Sorted(NamedTuple):
    """The fields of a job's templates that the operator drops, by role of the pod."""

    #: Those that the webhook puts back if the job wants it.
    good: Mapping[str, tuple[Lost, ...]]
    #: Those that stay dropped, each with the reason.
    bad: Mapping[str, tuple[tuple[Lost, str], ...]]


def sort(specs: Mapping[str, Any]) -> Sorted:
    """Return which of the fields that the operator drops can be put back; `specs`: by role."""
    good: dict[str, list[Lost]] = {role: [] for role in specs}
    bad: dict[str, list[tuple[Lost, str]]] = {role: [] for role in specs}
    left = MOST_BYTES
    for role, fields in lost_by_role(specs).items():
        for one in fields:
            why, _ = one.faults()
            why = why or _refusal(one, specs[role])
            left -= len(one.value)
            if left < 0:
                why = f"the templates have more than {MOST_BYTES:,} bytes of such fields"
            if why:
                bad[role].append((one, why))
            else:
                good[role].append(one)
    for role, fields in good.items():
        for one in _unclaimed(fields):
            fields.remove(one)
            bad[role].append((one, "without the resourceClaims of its pod"))
    return Sorted(
        good={role: tuple(found) for role, found in good.items()},
        bad={role: tuple(found) for role, found in bad.items()},
    )


def _refusal(one: Lost, spec: Any) -> str:
    """Return why the API server would refuse a pod that has its field back; "" if it would not.

    [v1.37.2] A container of a pod that never restarts cannot be restarted to resize it.
    """
    restarts = spec.get("restartPolicy") in _RESTARTS
    if one.row.known_as == _RESIZE_POLICY and not restarts and b'"RestartContainer"' in one.value:
        return "only NotRequired is possible in a pod that never restarts"
    return ""


def _unclaimed(fields: Sequence[Lost]) -> list[Lost]:
    """Return the claims of containers, if those of their pod do not come back.

    The API server refuses a pod with claims that it does not have.
    """
    if any(one.row.known_as == _RESOURCE_CLAIMS for one in fields):
        return []
    return [one for one in fields if one.row.known_as == _CLAIMS]


def names_of(job: MPIJob) -> list[str]:
    """Return the names of the fields of a job that the operator drops and that could come back."""
    found = sort(templates(job)).good
    return list(dict.fromkeys(one.name for fields in found.values() for one in fields))


def restorable(raw: bytes) -> frozenset[str]:
    """Return the paths of the fields of a new job that the operator drops and that come back.

    raw: the JSON of an MPIJob. Empty if the job does not want them, or cannot be read.
    """
    try:
        job = mpijob.decode(raw)
    except msgspec.DecodeError:
        return frozenset()
    wants = wanted(job)
    if wants is None:
        wants = job.metadata.annotations.get(names.ENABLED) != "false"
    if not wants:
        return frozenset()
    found = sort(templates(job)).good
    return frozenset(one.path(role) for role, fields in found.items() for one in fields)


@dataclass(frozen=True, kw_only=True)
class TemplateFields:
    """The fields that the webhook puts back on the pods of a job."""

    #: By role of the pod.
    fields: Mapping[str, tuple[Lost, ...]]
    #: True if the webhook reads one of the fields later, when it decides about the pod.
    are_read: bool
    #: What the sidecars of a worker count for in a ResourceQuota, by the quota's keys.
    sidecar_counts: Mapping[str, int]
    #: What a worker as a whole asks for, instead of its containers; likewise.
    pod_counts: Mapping[str, int]

    @property
    def names(self) -> Mapping[str, list[str]]:
        """The names of the fields, each once, by the role of the pods that have any."""
        return {
            role: list(dict.fromkeys(one.name for one in found))
            for role, found in self.fields.items()
            if found
        }

    @property
    def isolates(self) -> frozenset[str]:
        """The roles of the pods that a field keeps from other pods and from their node."""
        return frozenset(
            role
            for role, found in self.fields.items()
            if any(one.row.known_as in ISOLATING for one in found)
        )

    def worker_counts(self, found: Mapping[str, int]) -> Mapping[str, int]:
        """Return what a worker counts for, given what its containers count for."""
        keys = {**found, **self.sidecar_counts}
        summed = {key: found.get(key, 0) + self.sidecar_counts.get(key, 0) for key in keys}
        return {**summed, **self.pod_counts}

    def effects(self) -> Iterator[str]:
        """Yield warnings on fields that decide whether a worker starts."""
        for role, found in self.fields.items():
            for one in found:
                for said in _EFFECTS.get(one.row.known_as, _no_effect)(one):
                    yield f"{one.path(role)}: {said}"


def _no_effect(_one: Lost) -> Iterator[str]:
    return iter(())


def _gates(one: Lost) -> Iterator[str]:
    gates = msgspec.json.decode(one.value)
    shown = ", ".join(str(gate.get("name", ""))[:64] for gate in gates[:4] if gate)
    if shown:
        yield f"each pod waits until somebody removes its gates ({shown})"


def _spreads(one: Lost) -> Iterator[str]:
    rules = (rule for rule in msgspec.json.decode(one.value) if rule)
    keys = [
        str(rule.get("topologyKey", ""))[:64]
        for rule in rules
        if rule.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    if keys:
        yield (
            f"a worker that would break the required spread over {', '.join(keys[:4])} stays "
            "Pending; ScheduleAnyway only prefers it"
        )


def _claims(one: Lost) -> Iterator[str]:
    named = [claim for claim in msgspec.json.decode(one.value) if claim]
    if any(claim.get("resourceClaimName") for claim in named):
        yield "all pods share a ResourceClaim; with resourceClaimTemplateName each gets its own"
    if named:
        yield "each pod stays Pending until its claims are allocated"


# What some fields mean for the start of pods.
_EFFECTS = {
    "PodSpec.schedulingGates": _gates,
    "PodSpec.topologySpreadConstraints": _spreads,
    "PodSpec.resourceClaims": _claims,
}


def wanted(job: MPIJob) -> bool | None:
    """Return the value of the job's annotation; None if it is absent or cannot be used."""
    return policy.boolean(job.metadata.annotations.get(names.PUT_BACK, ""))


def of(job: MPIJob) -> TemplateFields | None:
    """Return the fields that are put back on the pods of a job; None if there are none."""
    if not wanted(job):
        return None
    specs = templates(job)
    found = sort(specs).good
    if not any(found.values()):
        return None
    worker = specs[names.ROLE_WORKER] if found[names.ROLE_WORKER] else {}
    are_read = any(one.row.known_as in READ for lost in found.values() for one in lost)
    return TemplateFields(
        fields=found,
        are_read=are_read,
        sidecar_counts=_sidecar_counts(worker),
        pod_counts=_pod_counts(worker),
    )


def _sidecar_counts(spec: Any) -> Mapping[str, int]:
    """Return what the sidecars of a template's spec count for."""
    counted: dict[str, int] = {}
    containers = spec.get("initContainers") if isinstance(spec, dict) else None
    for one in containers if isinstance(containers, list) else ():
        if isinstance(one, dict) and one.get("restartPolicy") == "Always":
            for key, amount in _counts(one.get("resources")).items():
                counted[key] = counted.get(key, 0) + amount
    return counted


def _pod_counts(spec: Any) -> Mapping[str, int]:
    """Return what a template asks for the pod as a whole."""
    return _counts(spec.get("resources")) if isinstance(spec, dict) else {}


def _counts(resources: Any) -> Mapping[str, int]:
    if not isinstance(resources, dict):
        return {}
    limits, given = (
        requests.readable(found if isinstance(found, dict) else None)
        for found in (resources.get("limits"), resources.get("requests"))
    )
    return requests.quota_counts(limits=limits, given=given)
