"""Gangs: what a job asks of a gang scheduler, and how that scheduler knows the job's pods; pure.

A gang scheduler binds no pod of a PodGroup before `minMember` of them fit. The operator tells
Volcano so only if its flag --gang-scheduling asks for that, for all jobs; the annotation
`mpijob-elastic/gang` asks for it for one job.

https://github.com/volcano-sh/apis/blob/master/pkg/apis/scheduling/v1beta1/types.go
https://github.com/kubernetes/api/blob/v0.37.2/scheduling/v1beta1/types.go
https://github.com/kubernetes/api/blob/v0.36.3/scheduling/v1alpha2/types.go
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import CapabilityFacts
from mpijob_elastic.model.json_parts import Owned, Wire, owned
from mpijob_elastic.model.mpijob import MPIJob, PodSpec
from mpijob_elastic.model.policy import Annotation

# On an MPIJob, written by users: the gang scheduler that takes the job's pods.
GANG = f"{names.PREFIX}gang"
# volcano.sh/apis: pkg/apis/scheduling/v1beta1/labels.go, pkg/apis/batch/v1alpha1/labels.go; the
# operator uses these names, too
VOLCANO = "volcano"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
VOLCANO_TASK = "volcano.sh/task-spec"
VOLCANO_PREEMPTABLE = "volcano.sh/preemptable"
# volcano.sh/volcano: pkg/scheduler/plugins/task-topology/util.go, on a PodGroup
VOLCANO_TOPOLOGY_PREFIX = "volcano.sh/task-topology-"
# sigs.k8s.io/scheduler-plugins: apis/scheduling/v1alpha1/types.go, a label
COSCHEDULING = "coscheduling"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
# koordinator v1.8.0: apis/extension/coscheduling.go and elastic_quota.go,
# config/manager/scheduler-config.yaml. The group is a label of pods, the gang is an annotation of
# pods (later versions read only the gang), the policy is an annotation of a PodGroup.
KOORDINATOR = "koordinator"
KOORDINATOR_SCHEDULER = "koord-scheduler"
KOORDINATOR_GROUP = "pod-group.scheduling.sigs.k8s.io"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh/name"
KOORDINATOR_MATCH_POLICY = "gang.scheduling.koordinator.sh/match-policy"
# The first is a label of an MPIJob, written by users, and of its pods; the second is a label of
# pods.
KOORDINATOR_QUOTA = "quota.scheduling.koordinator.sh/name"
KOORDINATOR_PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"
# kubernetes v1.37 and v1.36 know pods by a field of their spec. KUBERNETES_FLAGS says what their
# PodGroups need: the feature gates, and the option of the API server that serves them.
KUBERNETES = "kubernetes"
# The value of the annotation that leaves the launcher outside the gang.
KUBERNETES_WORKERS = "kubernetes-workers"
KUBERNETES_FLAGS = (
    "Kubernetes 1.37 serves them with the gate GenericWorkload and "
    "--runtime-config=scheduling.k8s.io/v1beta1=true; 1.36 with the gates GenericWorkload and "
    "GangScheduling and --runtime-config=scheduling.k8s.io/v1alpha2=true"
)
# The labels and annotations by which the schedulers know the pods of a gang.
GROUPS = frozenset({VOLCANO_GROUP, COSCHEDULING_GROUP, KOORDINATOR_GROUP})

VOLCANO_POD_GROUPS = Resource(
    group="scheduling.volcano.sh", version="v1beta1", plural="podgroups", kind="PodGroup"
)
VOLCANO_QUEUES = Resource(
    group="scheduling.volcano.sh", version="v1beta1", plural="queues", kind="Queue"
)
COSCHEDULING_POD_GROUPS = Resource(
    group="scheduling.x-k8s.io", version="v1alpha1", plural="podgroups", kind="PodGroup"
)
KOORDINATOR_POD_GROUPS = Resource(
    group="scheduling.sigs.k8s.io", version="v1alpha1", plural="podgroups", kind="PodGroup"
)
KUBERNETES_POD_GROUPS = Resource(
    group="scheduling.k8s.io", version="v1beta1", plural="podgroups", kind="PodGroup"
)
# [v1.36.3] minCount cannot change, and a gang may have several priorities.
KUBERNETES_POD_GROUPS_OF_1_36 = Resource(
    group="scheduling.k8s.io", version="v1alpha2", plural="podgroups", kind="PodGroup"
)

# The PodGroups of each scheduler, those of its newest version first. A cluster serves one of them.
POD_GROUPS: Mapping[str, Sequence[Resource]] = {
    VOLCANO: (VOLCANO_POD_GROUPS,),
    COSCHEDULING: (COSCHEDULING_POD_GROUPS,),
    KOORDINATOR: (KOORDINATOR_POD_GROUPS,),
    KUBERNETES: (KUBERNETES_POD_GROUPS, KUBERNETES_POD_GROUPS_OF_1_36),
}
_VALUES = (*POD_GROUPS, KUBERNETES_WORKERS)
ANNOTATION = Annotation(
    GANG, {each: each for each in _VALUES}.get, " or ".join(f'"{each}"' for each in _VALUES)
)
# [koordinator] The gang starts as a whole; each start of the launcher is such a start, also after a
# suspension.
TOGETHER = {KOORDINATOR_MATCH_POLICY: "waiting-and-running"}
# [koordinator] The gang has started: each further pod is scheduled alone. With TOGETHER, v1.8.0
# tries one of the pods that wait, and forgets the others: PreEnqueue of its plugin Coscheduling
# refuses them, and no event wakes them.
ONE_BY_ONE = {KOORDINATOR_MATCH_POLICY: "once-satisfied"}


@dataclass(frozen=True, kw_only=True)
class Gang(CapabilityFacts):
    """What a job asks of a gang scheduler."""

    scheduler: str
    #: "" for the scheduler's own.
    queue: str = ""
    #: The quota of Koordinator, "" if the job names none.
    quota: str = ""
    #: "" for the scheduler's own.
    priority_class: str = ""
    #: For the PodGroup.
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: False: the gang is the workers alone.
    with_launcher: bool = True
    #: What launcher and workers of one gang have, where Kubernetes wants it equal and it is not:
    #: (the launcher's, the workers') in words. Empty if all is equal.
    unequal: tuple[str, ...] = ()


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The PodGroup of a job."""

    metadata: Owned
    #: Its pods are scheduled once this many of them fit; 0 if it waits for none.
    min_member: int
    queue: str = ""
    #: Those that we write.
    annotations: Mapping[str, str] = {}


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a pod."""

    #: For `schedulerName`, if the template names none; "" to leave it.
    scheduler: str = ""
    #: For `schedulingGroup`, by which Kubernetes' own scheduler knows the pod.
    group: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def pod_groups(asked: Gang | None) -> Sequence[Resource]:
    """Return the PodGroups of a job's scheduler; those of Volcano are also the operator's."""
    return POD_GROUPS[asked.scheduler if asked else VOLCANO]


def asked(job: MPIJob, scheduler: str) -> Gang:
    """Return the gang that an MPIJob asks for; `scheduler`: the value of its annotation."""
    if scheduler in (KUBERNETES, KUBERNETES_WORKERS):
        return _of_kubernetes(job, with_launcher=scheduler == KUBERNETES)
    if scheduler == KOORDINATOR:
        quota = job.metadata.labels.get(KOORDINATOR_QUOTA, "")
        return Gang(scheduler=scheduler, quota=quota, annotations=TOGETHER)
    if scheduler != VOLCANO:
        return Gang(scheduler=scheduler)
    said = job.metadata.annotations
    # [operator] newPodGroup takes the launcher's, else the workers'.
    roles = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    return Gang(
        scheduler=VOLCANO,
        queue=said.get(VOLCANO_QUEUE, ""),
        priority_class=next(
            filter(None, (job.pod(role).priority_class_name for role in roles)), ""
        ),
        annotations={
            key: text for key, text in said.items() if key.startswith(VOLCANO_TOPOLOGY_PREFIX)
        },
    )


def _of_kubernetes(job: MPIJob, *, with_launcher: bool) -> Gang:
    workers = job.pod(names.ROLE_WORKER)
    return Gang(
        scheduler=KUBERNETES,
        priority_class=workers.priority_class_name or "",
        with_launcher=with_launcher,
        unequal=_unequal(job.pod(names.ROLE_LAUNCHER), workers) if with_launcher else (),
    )


def _unequal(launcher: PodSpec, workers: PodSpec) -> tuple[str, ...]:
    """Return what the two may not differ in, and do, in words.

    [v1.37.2] schedule_one_podgroup.go, validatePodGroup: all pods of a PodGroup have its priority,
    and one preemptionPolicy. A policy that a template does not name comes from the class, and the
    API server refuses a pod that contradicts its class (plugin/pkg/admission/priority).
    """
    classes = launcher.priority_class_name or "", workers.priority_class_name or ""
    if classes[0] != classes[1]:
        return tuple([_named("priorityClassName", each) for each in classes])
    policies = launcher.preemption_policy or "", workers.preemption_policy or ""
    if all(policies) and policies[0] != policies[1]:
        return tuple([_named("preemptionPolicy", each) for each in policies])
    return ()


def _named(field: str, value: str) -> str:
    return f"{field} {value}" if value else f"no {field}"


def marks(asked: Gang, job: str, role: str, *, index: int | None, least: int) -> Marks:
    """Return the marks of a launcher or worker; index: None for the launcher.

    Volcano's default configuration does not keep `minMember` from preemption, so each pod says if
    it may be preempted. A pod with a quota of Koordinator says so, too. Without a quota it says
    nothing, because a pod that may not be preempted must fit the quota's min. The name of a
    scheduler with Coscheduling is anybody's choice, so that mark leaves the scheduler as it is.
    """
    may_go = "false" if index is None or index < least else "true"
    if asked.scheduler == COSCHEDULING:
        return Marks(labels={COSCHEDULING_GROUP: job})
    if asked.scheduler == KUBERNETES:
        is_member = asked.with_launcher or role == names.ROLE_WORKER
        return Marks(group=job) if is_member else Marks()
    if asked.scheduler == KOORDINATOR:
        quota = (
            {KOORDINATOR_QUOTA: asked.quota, KOORDINATOR_PREEMPTIBLE: may_go} if asked.quota else {}
        )
        labels, annotations = {KOORDINATOR_GROUP: job, **quota}, {KOORDINATOR_GANG: job}
        return Marks(scheduler=KOORDINATOR_SCHEDULER, labels=labels, annotations=annotations)
    return Marks(
        scheduler=VOLCANO,
        annotations={VOLCANO_GROUP: job, VOLCANO_TASK: role, VOLCANO_PREEMPTABLE: may_go},
    )


class _Together(Wire, frozen=True):
    min_count: int = 0


class _SchedulingPolicy(Wire, frozen=True):
    gang: _Together = _Together()


class _Spec(Wire, frozen=True):
    min_member: int = 0
    scheduling_policy: _SchedulingPolicy = (
        _SchedulingPolicy()
    )  # of Kubernetes, in place of min_member
    queue: str = ""


class _PodGroup(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


_OURS = (VOLCANO_TOPOLOGY_PREFIX, KOORDINATOR_MATCH_POLICY)
_decoder = msgspec.json.Decoder(_PodGroup)


def read(raw: bytes) -> PodGroup:
    """Return the facts in a PodGroup's JSON. Raises msgspec.DecodeError for anything else."""
    group = _decoder.decode(raw)
    said = group.metadata.annotations
    return PodGroup(
        metadata=owned(group.metadata),
        min_member=group.spec.min_member or group.spec.scheduling_policy.gang.min_count,
        queue=group.spec.queue,
        annotations={key: text for key, text in said.items() if key.startswith(_OURS)},
    )
