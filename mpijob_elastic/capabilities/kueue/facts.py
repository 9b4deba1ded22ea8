"""Kueue's side of a job: its names, and the Workloads which ask a queue for quota.

The base asks for all at once that the job needs to start: the launcher and the least workers. Each
further worker, an extra, asks for itself, so that Kueue can grant and take back workers one by one.
A Workload has the name of its pod, the base that of the launcher.

The names of labels and annotations are those in Kueue's packages apis/../constants and
pkg/controller/constants; for the Workload see
https://github.com/kubernetes-sigs/kueue/blob/main/apis/kueue/v1beta2/workload_types.go
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import msgspec

from mpijob_elastic import names
from mpijob_elastic.decide.demand import WORKERS
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.json_parts import Owned, Wire, owned, owning_pods, seconds
from mpijob_elastic.model.mpijob import MPIJob

# On an MPIJob, written by users.
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
# The LocalQueue of a new job without the first label, where its namespace has such a LocalQueue;
# for its own kinds of jobs Kueue does this by default since 0.12.
DEFAULT_QUEUE = "default"
# The WorkloadPriorityClass of a job without that label, where the class exists; for its own kinds
# of jobs Kueue does this by default since 0.20.
DEFAULT_PRIORITY_CLASS = "default"
# On an MPIJob, written by MultiKueue in the cluster that it has chosen: an annotation, before Kueue
# 0.19 a label. MULTIKUEUE is the value of spec.managedBy in the cluster where the user created the
# job.
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# On a Workload that MultiKueue has sent to the cluster that it has chosen.
MULTIKUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
# On a Workload: the uid of its job, which Kueue tells the jobs that it preempts for the Workload.
LABEL_JOB_UID = "kueue.x-k8s.io/job-uid"

# Kueue before 0.15 serves v1beta1 alone, and is not supported.
WORKLOADS = Resource(group="kueue.x-k8s.io", version="v1beta2", plural="workloads", kind="Workload")
FLAVORS = Resource(
    group="kueue.x-k8s.io", version="v1beta2", plural="resourceflavors", kind="ResourceFlavor"
)
LOCAL_QUEUES = Resource(
    group="kueue.x-k8s.io", version="v1beta2", plural="localqueues", kind="LocalQueue"
)
WORKLOAD_PRIORITIES = Resource(
    group="kueue.x-k8s.io",
    version="v1beta2",
    plural="workloadpriorityclasses",
    kind="WorkloadPriorityClass",
)

# The uid of the Workload for which Kueue preempts another, in Kueue's words.
_UID = re.compile(r"\(UID: ([^\s,)]+)")
# The reason, since Kueue 0.20, of a Workload that no queue of its kind could admit even if it were
# empty.
_EXCEEDS = "ExceedsMaxQuota"
# The reason of an eviction because pods were not ready in the time that waitForPodsReady of Kueue's
# configuration allows.
_LATE = "PodsReadyTimeout"
# Characters of Kueue's message that are kept: it lists every reason for every flavor.
_LONGEST_SAID = 300
# Seconds. Kueue says within a second or two what a new Workload waits for.
ANSWERS_WITHIN = 30.0


@dataclass(frozen=True, kw_only=True)
class Asked(CapabilityFacts):
    """What an MPIJob asks of Kueue, or Kueue of the MPIJob."""

    #: "" without.
    queue: str = ""
    #: "" without.
    priority_class: str = ""
    #: The Workload that MultiKueue made for the job here, "" without.
    prebuilt: str = ""
    #: MultiKueue runs the job in another cluster.
    elsewhere: bool = False

    @property
    def gate(self) -> str:
        """The gate of a job that waits for quota."""
        return names.GATE_QUEUED if self.queue or self.elsewhere else ""

    @property
    def queued(self) -> bool:
        """True if it waits for quota, here or elsewhere."""
        return self.gate != ""

    def findings(self, job: JobFacts) -> Iterable[str]:
        """Yield a warning if workers that stay after the job's end run without quota."""
        if self.queue and job.clean_pod_policy not in ("Running", "All"):
            yield (
                "workers stay when this job has ended, but others get its quota; set "
                "spec.cleanPodPolicy to Running"
            )


def asked(job: MPIJob) -> Asked | None:
    """Return the queue that an MPIJob asks for."""
    labels, annotations = job.metadata.labels, job.metadata.annotations
    found = Asked(
        queue=labels.get(LABEL_QUEUE, ""),
        priority_class=labels.get(LABEL_PRIORITY_CLASS, ""),
        prebuilt=annotations.get(PREBUILT) or labels.get(PREBUILT, ""),
        elsewhere=job.spec is not None and job.spec.managed_by == MULTIKUEUE,
    )
    return None if found == Asked() else found


class Workload(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Workload as last seen."""

    metadata: Owned
    queue: str = ""
    priority: int = 0
    #: How many workers it asks for.
    workers: int = 0
    #: Quota is set aside for it, and stays so until we clear that.
    reserved: bool = False
    #: Its pods may start.
    admitted: bool = False
    #: Kueue wants the quota back.
    evicted: bool = False
    #: Kueue wants the quota back, or took it, because its pods were not ready in time.
    late: bool = False
    #: We said that its pods run.
    ready: bool = False
    finished: bool = False
    #: Nobody has taken it out of its queue.
    active: bool = True
    #: Seconds since the epoch.
    created_at: float = 0.0
    #: What it waits for, or why it is evicted, in the words of Kueue or of a check.
    said: str = ""
    #: The kinds of nodes that were chosen, by set of pods.
    flavors: dict[str, tuple[str, ...]] = {}
    #: The nodes that Kueue has assigned, as JSON of a `topologyAssignment`, by set of pods; {} if
    #: the queue assigns none. A large job has many nodes, and few looks at a job need them.
    topology: dict[str, bytes] = {}
    #: Assigned nodes that have failed, until Kueue has assigned others instead.
    unhealthy: tuple[str, ...] = ()
    #: Checks add something to its pods.
    updates: bool = False
    #: The cluster that MultiKueue has chosen, "" without.
    cluster: str = ""
    #: The uids of the pods that own it, besides the job.
    pods: tuple[str, ...] = ()

    @property
    def granted(self) -> bool:
        """True if its pods may start."""
        return self.admitted and self.reserved and not self.evicted and not self.finished

    @property
    def preempted(self) -> bool:
        """True if its quota is to be given back as soon as its pods are gone."""
        return self.evicted and self.reserved and not self.finished

    @property
    def checked(self) -> bool:
        """True if quota is set aside for it, and an admission check has yet to answer."""
        return (
            self.reserved
            and self.said != ""
            and not (self.admitted or self.evicted or self.finished)
        )

    @property
    def waits(self) -> bool:
        """True if it is in the queue."""
        return self.active and not self.reserved and not self.finished

    def is_unanswered(self, *, now: float) -> bool:
        """Tell whether Kueue has long said nothing of it; `now` in seconds since the epoch."""
        if not self.waits or self.said or not self.created_at:
            return False
        return now - self.created_at > ANSWERS_WITHIN

    @property
    def line(self) -> str:
        """`said` on a single line."""
        return " ".join(self.said.split())


@dataclass(frozen=True, kw_only=True)
class Queue:
    """The queue of a job, and its Workloads."""

    #: The queue that the job asks for; "" if it asks for none, or if there is no Kueue.
    name: str = ""
    #: The queue that the job asks for if there is no Kueue.
    ignored: str = ""
    #: The Workloads of the job, by name.
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    #: MultiKueue makes the first Workload of the job.
    prebuilt: bool = False
    #: MultiKueue runs the job in another cluster.
    elsewhere: bool = False
    #: The places of waiting Workloads, by uid, where known.
    places: Mapping[str, int] = field(default_factory=dict)

    def base(self, job: str) -> Workload | None:
        """Return the Workload of the launcher and the least workers."""
        return self.workloads.get(names.launcher(job))


NO_QUEUE = Queue()


def of(job: JobFacts, found: Iterable[Workload], *, all_known: Iterable[Workload]) -> Queue:
    """Return what Kueue says of a job.

    found: Workloads that may be the job's own; all_known: Workloads whose names may help. The
    Workload that MultiKueue made for the job may have no owner yet.
    """
    asked = job.of(Asked) or Asked()
    mine = (
        one
        for one in found
        if one.metadata.job_uid == job.metadata.uid
        or (not one.metadata.job_uid and one.metadata.name == asked.prebuilt)
    )
    return Queue(
        name=asked.queue,
        workloads={one.metadata.name: one for one in named(mine, all_known)},
        prebuilt=bool(asked.prebuilt),
        elsewhere=asked.elsewhere,
    )


def places(found: Iterable[Workload]) -> dict[str, int]:
    """Return the place of each Workload that waits, by uid: 1 is the next in its LocalQueue.

    Kueue takes the higher priority first, then the older (pkg/cache/queue/cluster_queue.go,
    queueOrderingFunc).
    """
    result: dict[str, int] = {}
    ahead: Counter[tuple[str, str]] = Counter()
    for one in sorted(
        (one for one in found if one.waits), key=lambda one: (-one.priority, one.created_at)
    ):
        local = one.metadata.namespace, one.queue
        ahead[local] += 1
        result[one.metadata.uid] = ahead[local]
    return result


def named(found: Iterable[Workload], among: Iterable[Workload]) -> list[Workload]:
    """Return the Workloads; a preempted one names the Workload for which Kueue wants its quota.

    Kueue itself gives only the uid of that Workload.
    """
    found = list(found)
    matches = [_UID.search(one.said) if one.preempted else None for one in found]
    wanted = {match[1] for match in matches if match}
    if not wanted:
        return found
    others = {one.metadata.uid: one.metadata for one in among if one.metadata.uid in wanted}
    return [
        _naming(one, other) if match and (other := others.get(match[1])) else one
        for one, match in zip(found, matches, strict=True)
    ]


def _naming(found: Workload, other: Owned) -> Workload:
    said = found.said.replace("(UID:", f"({other.namespace}/{other.name}, UID:", 1)
    return msgspec.structs.replace(found, said=said)


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
    reason: str = ""
    message: str = ""


class _Assignment(Wire, frozen=True):
    name: str = ""
    flavors: dict[str, str] | None = None
    topology_assignment: msgspec.Raw = msgspec.Raw()


class _Admission(Wire, frozen=True):
    pod_set_assignments: list[_Assignment] | None = None


class _UnhealthyNode(Wire, frozen=True):
    name: str = ""


class _Check(Wire, frozen=True):
    name: str = ""
    state: str = ""
    message: str = ""
    pod_set_updates: list[msgspec.Raw] | None = None


class _Status(Wire, frozen=True):
    conditions: list[_Condition] | None = None
    admission_checks: list[_Check] | None = None
    admission: _Admission | None = None
    unhealthy_nodes: list[_UnhealthyNode] | None = None
    cluster_name: str = ""


class _Workload(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Workload)


def read(raw: bytes) -> Workload:
    """Return the facts in a Workload's JSON. Raises msgspec.DecodeError for anything else."""
    found = _decoder.decode(raw)
    spec, status = found.spec or _Spec(), found.status or _Status()
    conditions = {condition.type: condition for condition in status.conditions or ()}
    true = {name for name, condition in conditions.items() if condition.status == "True"}
    checks = status.admission_checks or ()
    assigned = _assigned(status)
    return Workload(
        metadata=_of_job(owned(found.metadata)),
        queue=spec.queue_name,
        priority=spec.priority or 0,
        workers=sum(pods.count for pods in spec.pod_sets or () if pods.name == WORKERS),
        reserved="QuotaReserved" in true,
        admitted="Admitted" in true,
        evicted="Evicted" in true,
        late=_is_late(conditions, true),
        ready="PodsReady" in true,
        finished="Finished" in true,
        active=spec.active is not False,
        created_at=seconds(found.metadata.creation_timestamp) or 0.0,
        said=_said(conditions, true, checks)[:_LONGEST_SAID],
        flavors={one.name: tuple(sorted({*(one.flavors or {}).values()})) for one in assigned},
        topology=_topology(assigned),
        unhealthy=_unhealthy(status),
        updates=any(one.pod_set_updates for one in checks),
        cluster=status.cluster_name,
        pods=owning_pods(found.metadata),
    )


def _is_late(conditions: Mapping[str, _Condition], true: Set[str]) -> bool:
    return "Evicted" in true and conditions["Evicted"].reason == _LATE


def _assigned(status: _Status) -> Sequence[_Assignment]:
    """Return what Kueue has assigned to the sets of pods; () without an admission."""
    return (status.admission.pod_set_assignments if status.admission else None) or ()


def _unhealthy(status: _Status) -> tuple[str, ...]:
    return tuple(node.name for node in status.unhealthy_nodes or ())


def _topology(assigned: Iterable[_Assignment]) -> dict[str, bytes]:
    """Return the assignments of nodes by set of pods; {} for a queue that assigns none."""
    found = {one.name: bytes(one.topology_assignment) for one in assigned}
    return {name: raw for name, raw in found.items() if raw not in (b"", b"null")}


def _of_job(metadata: Owned) -> Owned:
    """Return the metadata with the name of the job; MultiKueue's copy has no owner yet."""
    suffix = names.launcher("")
    if metadata.job or not metadata.name.endswith(suffix):
        return metadata
    return msgspec.structs.replace(metadata, job=metadata.name.removesuffix(suffix))


def holder(raw: bytes) -> Owned | None:
    """Return the metadata of a Workload that holds quota or asks for it.

    None if the Workload has finished.
    """
    found = read(raw)
    return None if found.finished else found.metadata


def _said(conditions: Mapping[str, _Condition], true: Set[str], checks: Iterable[_Check]) -> str:
    """Return the message on what a Workload waits for, or why it is evicted."""
    if "QuotaReserved" in true and "Evicted" not in true:
        awaited = (one for one in checks if one.state != "Ready")
        return next(
            (f"AdmissionCheck {one.name} is {one.state}: {one.message}" for one in awaited), ""
        )
    telling = conditions.get("Evicted" if "QuotaReserved" in true else "QuotaReserved")
    if telling is None:
        return ""
    if telling.reason == _EXCEEDS:
        return f"it asks for more than its queue can ever give: {telling.message}"
    return telling.message
