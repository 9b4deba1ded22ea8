"""Gangs: what a job asks of a gang scheduler, and the marks by which that scheduler knows the job's pods; pure.

A gang scheduler binds no pod of a PodGroup before `minMember` of them fit. The operator tells Volcano so only where its
flag --gang-scheduling says it for all jobs; the annotation `mpijob-elastic/gang` asks for it for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs.api import (
    COSCHEDULING,
    COSCHEDULING_GROUP,
    COSCHEDULING_POD_GROUPS,
    GANG,
    KOORDINATOR,
    KOORDINATOR_GANG,
    KOORDINATOR_GROUP,
    KOORDINATOR_MATCH_POLICY,
    KOORDINATOR_POD_GROUPS,
    KOORDINATOR_PREEMPTIBLE,
    KOORDINATOR_QUOTA,
    KOORDINATOR_SCHEDULER,
    KUBERNETES,
    KUBERNETES_POD_GROUPS,
    VOLCANO,
    VOLCANO_GROUP,
    VOLCANO_POD_GROUPS,
    VOLCANO_PREEMPTABLE,
    VOLCANO_QUEUE,
    VOLCANO_TASK,
    VOLCANO_TOPOLOGY_PREFIX,
)
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.policy import Annotation
from mpijob_elastic.model.wire import Owned

# By the value of the annotation.
POD_GROUPS = {
    VOLCANO: VOLCANO_POD_GROUPS,
    COSCHEDULING: COSCHEDULING_POD_GROUPS,
    KOORDINATOR: KOORDINATOR_POD_GROUPS,
    KUBERNETES: KUBERNETES_POD_GROUPS,
}
ANNOTATION = Annotation(GANG, {each: each for each in POD_GROUPS}.get, " or ".join(f'"{each}"' for each in POD_GROUPS))
# [koordinator] A gang to start as a whole, as each start of the launcher is one, also after a suspension.
TOGETHER = {KOORDINATOR_MATCH_POLICY: "waiting-and-running"}
# [koordinator] A gang that has started: each further pod is scheduled alone. As TOGETHER, v1.8.0 tries one pod of
# those that wait, and forgets the others: PreEnqueue of its plugin Coscheduling refuses them, and no event wakes them.
ONE_BY_ONE = {KOORDINATOR_MATCH_POLICY: "once-satisfied"}


@dataclass(frozen=True, kw_only=True)
class Gang(Known):
    """What a job asks for. queue, priority_class: "" for the scheduler's own. annotations: for the PodGroup.

    quota: of Koordinator, "" if the job names none.
    """

    scheduler: str
    queue: str = ""
    quota: str = ""
    priority_class: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The job's PodGroup: its pods are scheduled once so many of them fit; 0 if it waits for none.

    annotations: those that we write.
    """

    metadata: Owned
    min_member: int
    queue: str = ""
    annotations: Mapping[str, str] = {}


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a pod; scheduler: for `schedulerName`, where the template names none; "" to leave it.

    group: for `schedulingGroup`, by which Kubernetes' own scheduler knows it.
    """

    scheduler: str = ""
    group: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def pod_groups(asked: Gang | None) -> Resource:
    """Return the PodGroups of a job's scheduler; those of Volcano are also the operator's."""
    return POD_GROUPS[asked.scheduler if asked else VOLCANO]


def asked(job: MPIJob, scheduler: str) -> Gang:
    """Return what an MPIJob asks of this scheduler."""
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
        priority_class=next(filter(None, (job.pod(role).priority_class_name for role in roles)), ""),
        annotations={key: text for key, text in said.items() if key.startswith(VOLCANO_TOPOLOGY_PREFIX)},
    )


def marks(asked: Gang, job: str, role: str, *, index: int | None, least: int) -> Marks:
    """Return the marks of a launcher or worker; index: None for the launcher.

    Volcano's default configuration does not keep `minMember` from preemption, so each pod says if it may go. The name
    of a scheduler with coscheduling is anybody's choice.
    """
    if asked.scheduler == COSCHEDULING:
        return Marks(labels={COSCHEDULING_GROUP: job})
    if asked.scheduler == KUBERNETES:
        return Marks(group=job)
    kept = index is None or index < least
    if asked.scheduler == KOORDINATOR:
        return _of_koordinator(asked, job, kept=kept)
    return Marks(
        scheduler=VOLCANO,
        annotations={
            VOLCANO_GROUP: job,
            VOLCANO_TASK: role,
            VOLCANO_PREEMPTABLE: "false" if kept else "true",
        },
    )


def _of_koordinator(asked: Gang, job: str, *, kept: bool) -> Marks:
    """Return the marks; without a quota no pod says if it may go, because one that may not must fit the quota's min."""
    quota = {KOORDINATOR_QUOTA: asked.quota, KOORDINATOR_PREEMPTIBLE: "false" if kept else "true"}
    return Marks(
        scheduler=KOORDINATOR_SCHEDULER,
        labels={KOORDINATOR_GROUP: job, **(quota if asked.quota else {})},
        annotations={KOORDINATOR_GANG: job},
    )
