"""Topology-aware scheduling: what pods ask for, and the nodes that Kueue assigns to them; pure.

Kueue assigns domains, most often nodes, to a set of pods of a Workload. For its own jobs it then
binds each pod itself, and takes its own scheduling gate off. Our pods exist, without that gate,
before anybody knows whether their queue assigns nodes, and no gate can be added later. So we bind
the pods by the same rules when our gate comes off. Kueue counts a pod that does not say that its
node is assigned as load of others, besides the quota of its Workload.
https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2/topology_types.go
https://github.com/kubernetes-sigs/kueue/blob/main/pkg/controller/tas/topology_ungater.go
"""

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model.json_parts import Wire

Object = dict[str, Any]
T = TypeVar("T")

# On the pods of a template, written by users: annotations of Kueue.
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
SLICES = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
GROUP = "kueue.x-k8s.io/podset-group-name"
# Kueue knows a pod whose node it has assigned by one of these annotations (pkg/util/tas, IsTAS).
_ASKING = (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE, SLICES)
# On a pod, as Kueue writes it: the Workload by which its node is assigned. Kueue replaces a node
# that fails once no such pod runs there any more.
WORKLOAD = "kueue.x-k8s.io/workload"
# On a worker, written by us with its node: the domain that the worker takes.
DOMAIN = f"{names.PREFIX}topology-domain"
# The label of nodes by which most topologies end, and the only one by which a domain is a node.
HOSTNAME = "kubernetes.io/hostname"
# Words for "true" that Kueue accepts (strconv.ParseBool).
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
# A number of pods, which Kueue keeps in 32 bits.
_SIZE = re.compile(r"[1-9][0-9]{0,8}")
# Characters of a domain that an annotation holds as they are; the watch keeps no more of them.
_LONGEST_DOMAIN = 63


class _Constraint(Wire, frozen=True):
    """A level of the topology, and how many pods each of its slices has."""

    topology: str
    size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


def request(annotations: Mapping[str, str], *, extra: bool) -> Object:
    """Return the `topologyRequest` of a set of pods with these annotations; {} for none.

    An extra asks for one worker. So it has no slices, and no group with the launcher. See
    `podSetTopologyRequestBuilder` in Kueue's pkg/controller/jobframework/tas.go.
    """
    asked = _level(annotations)
    if extra:
        return asked
    group = annotations.get(GROUP)
    if group and ("required" in asked or "preferred" in asked):
        asked["podSetGroupName"] = group
    return asked | _slices(annotations)


def _level(annotations: Mapping[str, str]) -> Object:
    """Return the level of the topology that pods ask for; the strictest annotation counts."""
    for key, field in ((REQUIRED, "required"), (PREFERRED, "preferred")):
        if key in annotations:
            return {field: annotations[key]}
    if UNCONSTRAINED in annotations:
        return {"unconstrained": annotations[UNCONSTRAINED] in _TRUE}
    return {}


def _slices(annotations: Mapping[str, str]) -> Object:
    """Return the request for slices; {} for none, and for what Kueue could not read."""
    if SLICES in annotations:
        try:
            constraints = msgspec.json.decode(annotations[SLICES], type=list[_Constraint])
        except (msgspec.DecodeError, RecursionError):
            return {}
        if not constraints:
            return {}
        return {"podsetSliceRequiredTopologyConstraints": msgspec.to_builtins(constraints)}
    size = annotations.get(SLICE_SIZE, "")
    if SLICE in annotations and _SIZE.fullmatch(size):
        return {"podSetSliceRequiredTopology": annotations[SLICE], "podSetSliceSize": int(size)}
    return {}


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A domain that Kueue has assigned to some pods of a set."""

    #: The labels of its nodes, from the widest level to the narrowest.
    labels: Mapping[str, str]
    #: How many of the pods it takes.
    pods: int

    @property
    def mark(self) -> str:
        """The domain in an annotation of a pod."""
        text = ",".join(self.labels.values())
        if len(text) <= _LONGEST_DOMAIN:
            return text
        return hashlib.sha256(text.encode()).hexdigest()[:_LONGEST_DOMAIN]

    @property
    def node(self) -> str:
        """The node that the domain is; "" for a domain of several nodes."""
        return self.labels.get(HOSTNAME, "")


class _Individual(Wire, frozen=True):
    prefix: str | None = None
    suffix: str | None = None
    roots: list[str] | None = None


class _Values(Wire, frozen=True):
    universal: str | None = None
    individual: _Individual | None = None


class _Counts(Wire, frozen=True):
    universal: int | None = None
    individual: list[int] | None = None


class _Slice(Wire, frozen=True):
    values_per_level: list[_Values] | None = None
    pod_counts: _Counts | None = None


class _Assignment(Wire, frozen=True):
    levels: list[str] | None = None
    slices: list[_Slice] | None = None


_decoder = msgspec.json.Decoder(_Assignment | None)


def domains(raw: bytes) -> list[Domain]:
    """Return the domains in the JSON of a `topologyAssignment`, in Kueue's order.

    [] for anything else: its pods then wait.
    """
    try:
        found = _decoder.decode(raw) or _Assignment()
    except msgspec.DecodeError:
        return []
    levels = found.levels or []
    return [domain for part in found.slices or () for domain in _of_slice(levels, part)]


def _of_slice(levels: Sequence[str], part: _Slice) -> Iterator[Domain]:
    """Yield the domains of a slice: as many as its longest list, or one without a list."""
    columns = [_texts(values) for values in part.values_per_level or ()]
    counts = part.pod_counts or _Counts()
    pods = [counts.universal or 0] if counts.individual is None else counts.individual
    length = max([len(pods), *map(len, columns)])
    rows = zip(*(_repeated(column, length) for column in columns), strict=False)
    for values, count in zip(rows, _repeated(pods, length), strict=False):
        yield Domain(labels=dict(zip(levels, values, strict=False)), pods=count)


def _texts(values: _Values) -> list[str]:
    """Return the values of a level; a single one if all domains share it."""
    if values.individual is None:
        return [values.universal or ""]
    prefix, suffix = values.individual.prefix or "", values.individual.suffix or ""
    return [f"{prefix}{root}{suffix}" for root in values.individual.roots or ()]


def _repeated(column: list[T], length: int) -> list[T]:
    """Return the column, where a value that all domains share stands for each of them."""
    return column * length if len(column) == 1 else column


def places(
    assigned: Sequence[Domain],
    ranks: Mapping[str, int],
    *,
    taken: Iterable[str],
    closed: Collection[str],
) -> dict[str, Domain]:
    """Return the domain of each pod that is to start, by the pod's name.

    ranks: the place of each such pod in its set. taken: the domain of each pod of the set that has
    started. closed: domains where no pod can start now; Kueue assigns another instead.

    A pod gets the domain of its rank, so that ranks which follow each other are near each other. If
    others fill that domain, because Kueue has replaced a node since, the pod gets the first free
    one. A pod for which none is free, or whose domain is closed, is left out.
    """
    marks = [domain.mark for domain in assigned]
    free = Counter({domain.mark: domain.pods for domain in assigned})
    free.subtract(mark for mark in taken if mark in free)
    ends = list(accumulate(domain.pods for domain in assigned))
    result: dict[str, Domain] = {}
    for pod, rank in sorted(ranks.items(), key=lambda item: item[1]):
        place = bisect_right(ends, rank)
        if place < len(assigned) and free[marks[place]] > 0:
            free[marks[place]] -= 1
            result[pod] = assigned[place]
    rest = (domain for domain, mark in zip(assigned, marks, strict=True) for _ in _left(free, mark))
    others = [pod for pod in sorted(ranks, key=ranks.__getitem__) if pod not in result]
    result |= dict(zip(others, rest, strict=False))
    return {pod: domain for pod, domain in result.items() if domain.mark not in closed}


def _left(free: Counter[str], mark: str) -> Iterator[None]:
    """Yield once for each pod that a domain can still take."""
    while free[mark] > 0:
        free[mark] -= 1
        yield None


def additions(domain: Domain, *, workload: str, annotations: Mapping[str, str]) -> Object:
    """Return what a pod gets with its domain, in the form of a PodSetUpdate.

    workload: the name of its Workload. annotations: those of the pod.
    """
    added = {WORKLOAD: workload, DOMAIN: domain.mark}
    if not any(key in annotations for key in _ASKING):
        # As Kueue does for jobs that ask for nothing in a queue that assigns nodes.
        added[UNCONSTRAINED] = "true"
    return {"nodeSelector": dict(domain.labels), "annotations": added}
