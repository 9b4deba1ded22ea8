"""The facts of a Workload of Kueue.

https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2/workload_types.go
"""

from collections.abc import Iterable, Mapping, Set

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import Workload
from mpijob_elastic.decide.demand import WORKERS
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.wire import Owned, Wire, owned, owning_pods, seconds

# Kueue lists every reason of every flavor.
_LONGEST_SAID = 300


class _PodSet(Wire, frozen=True):
    name: str = ""
    count: int = 0


class _Spec(Wire, frozen=True):
    queue_name: str = ""
    priority: int | None = None
    active: bool | None = None
    pod_sets: list[_PodSet] | None = None


class _Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Assignment(Wire, frozen=True):
    name: str = ""
    flavors: dict[str, str] | None = None


class _Admission(Wire, frozen=True):
    pod_set_assignments: list[_Assignment] | None = None


class _Check(Wire, frozen=True):
    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: list[msgspec.Raw] | None = None


class _Status(Wire, frozen=True):
    conditions: list[_Condition] | None = None
    admission_checks: list[_Check] | None = None
    admission: _Admission | None = None
    cluster_name: str = ""


class _Workload(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Workload)


def read(raw: bytes) -> Workload:
    """Return the facts in a Workload's JSON. Raises msgspec.DecodeError if it is none."""
    found = _decoder.decode(raw)
    spec, status = found.spec or _Spec(), found.status or _Status()
    conditions = {condition.type: condition for condition in status.conditions or ()}
    true = {name for name, condition in conditions.items() if condition.status == "True"}
    assigned = (status.admission.pod_set_assignments if status.admission else None) or ()
    metadata = owned(found.metadata)
    if not metadata.job and found.metadata.name.endswith(names.launcher("")):  # MultiKueue's copy has no owner yet
        metadata = msgspec.structs.replace(metadata, job=found.metadata.name.removesuffix(names.launcher("")))
    return Workload(
        metadata=metadata,
        queue=spec.queue_name,
        priority=spec.priority or 0,
        workers=sum(pods.count for pods in spec.pod_sets or () if pods.name == WORKERS),
        reserved="QuotaReserved" in true,
        admitted="Admitted" in true,
        evicted="Evicted" in true,
        ready="PodsReady" in true,
        finished="Finished" in true,
        active=spec.active is not False,
        created_at=seconds(found.metadata.creation_timestamp) or 0.0,
        said=_said(conditions, true, status.admission_checks or ())[:_LONGEST_SAID],
        flavors={one.name: tuple(sorted({*(one.flavors or {}).values()})) for one in assigned},
        updates=any(one.pod_set_updates for one in status.admission_checks or ()),
        cluster=status.cluster_name,
        pods=owning_pods(found.metadata),
    )


def holder(raw: bytes) -> Owned | None:
    """Return the owner of a Workload that holds quota or asks for it; None of one that has finished."""
    found = read(raw)
    return None if found.finished else found.metadata


def _said(conditions: Mapping[str, _Condition], true: Set[str], checks: Iterable[_Check]) -> str:
    """Return what a Workload waits for, or why it is evicted."""
    if "QuotaReserved" in true and "Evicted" not in true:
        awaited = (one for one in checks if one.state != "Ready")
        return next((f"AdmissionCheck {one.name} is {one.state}: {one.message}" for one in awaited), "")
    telling = conditions.get("Evicted" if "QuotaReserved" in true else "QuotaReserved")
    return telling.message if telling else ""
