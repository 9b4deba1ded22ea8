"""Gangs: marks for a job's pods, and mistakes in what an MPIJob asks of a gang scheduler; pure."""

from collections.abc import Iterator, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.interface import CapabilityAdmission, LookedUp, Lookup
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, role_of
from mpijob_elastic.admission.review import Refusal
from mpijob_elastic.capabilities.gangs import facts as gang
from mpijob_elastic.capabilities.gangs import kai
from mpijob_elastic.capabilities.gangs.facts import KUBERNETES_POD_GROUPS_OF_1_36, Gang
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import policy
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

GANG_FIELD = f"metadata.annotations[{gang.GANG}]"
QUEUE_FIELD = f"metadata.annotations[{gang.VOLCANO_QUEUE}]"
_CLOSED = ("Closed", "Closing")
# What the API server writes into a pod whose template names no scheduler.
_NO_SCHEDULER = ("", None, "default-scheduler")
# By these labels and annotations gang schedulers know their pods.
_MARKS = {
    gang.VOLCANO_GROUP: gang.VOLCANO,
    gang.COSCHEDULING_GROUP: gang.COSCHEDULING,
    gang.KOORDINATOR_GROUP: gang.KOORDINATOR,
    gang.KOORDINATOR_GANG: gang.KOORDINATOR,
}

# How a job, or a pod, names its queue or its quota.
_QUEUES = (gang.VOLCANO_QUEUE, gang.KOORDINATOR_QUOTA, kai.QUEUE)


class Status(msgspec.Struct, frozen=True):
    """The status of a queue of Volcano."""

    #: "" if Volcano has said nothing yet.
    state: str = ""


class VolcanoQueue(msgspec.Struct, frozen=True):
    """A queue of Volcano."""

    metadata: ObjectMeta
    status: Status = Status()


read_queue = msgspec.json.Decoder(VolcanoQueue).decode


# What it asks if it is served.
SERVED = gang.POD_GROUPS[gang.KUBERNETES]
# What it looks up in the whole cluster.
WATCHED = LookedUp(resource=gang.VOLCANO_QUEUES, read=read_queue)


class GangAdmission(CapabilityAdmission):
    """What the webhook does for a gang."""

    def patched(self, pod: AdmittedPod, job: JobFacts, lookup: Lookup) -> Patch:
        """Return a patch that gives a launcher or worker the marks of its gang.

        Values in its template stay. [v1.37.2] With the gate GenericWorkload a pod that is marked
        for a PodGroup waits for it, even if the API serves no PodGroups. So a pod is marked only
        where the controller can make its PodGroup.
        """
        asked, metadata, role = job.of(Gang), pod.metadata, role_of(pod, job)
        # [v0.3.0] numbers its workers, and makes PodGroups of its own.
        if asked is None or not role or names.LABEL_REPLICA_INDEX in metadata.labels:
            return ()
        name = job.metadata.name
        least = policy.least_workers(job.policy, job.replicas, elastic=job.acts_elastic)
        marks = gang.marks(
            asked, name, role, index=names.worker_index(metadata.name, job=name), least=least
        )
        patch = json_patch.annotating(metadata.annotations, marks.annotations)
        said = {**job.pod_labels[role], **metadata.labels}
        for key, value in marks.labels.items():
            patch += json_patch.labelling(key, said.get(key, value))
        if marks.scheduler and pod.spec.scheduler_name in _NO_SCHEDULER:
            patch += json_patch.scheduling(marks.scheduler)
        if marks.group and pod.spec.scheduling_group is None and _has_pod_groups(asked, lookup):
            patch += json_patch.grouping(marks.group)
        return patch

    def names_queue(self, job: MPIJob) -> bool:
        """Tell whether a job names a queue or a quota of a scheduler, or is scheduled by KAI.

        KAI puts each of its jobs into a queue.
        """
        if kai.schedules(job):
            return True
        said = [job.metadata.labels, job.metadata.annotations]
        for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER):
            said += [job.pod_labels(role), job.pod_annotations(role)]
        return any(texts.get(key) for texts in said for key in _QUEUES)

    def refusals(
        self, job: MPIJob, new: JobFacts, old: JobFacts | None, lookup: Lookup
    ) -> Iterator[Refusal]:
        """Yield the mistakes that a new or changed MPIJob brings in."""
        was, now = old.of(Gang) if old else None, new.of(Gang)
        if old and old.reported and _pods_of(now) != _pods_of(was):
            message = (
                "cannot change once the job has started: its pods keep their "
                "marks; delete and recreate the job"
            )
            yield Refusal(field=GANG_FIELD, message=message)
        if now is None:
            return
        if not _serves(KUBERNETES_POD_GROUPS_OF_1_36, lookup):
            yield from _unequal(now, was)
            if old and old.reported and was:
                yield from _of_another_priority(now, was)
        if foreign := [] if was else sorted(_foreign_marks(job, now.scheduler)):
            message = (
                f"{now.scheduler} and {foreign[0]} in a template are marks "
                "of two schedulers; remove one"
            )
            yield Refusal(field=GANG_FIELD, message=message)
        if now.queue and (was is None or was.queue != now.queue):
            yield from _queue(now.queue, lookup)

    def warnings(
        self, job: MPIJob, new: JobFacts, old: JobFacts | None, lookup: Lookup
    ) -> Iterator[str]:
        """Yield doubts about what a new MPIJob asks for, or leaves out."""
        if old:
            return
        roles, asked = (names.ROLE_LAUNCHER, names.ROLE_WORKER), new.of(Gang)
        scheduler = asked.scheduler if asked else ""
        if asked is None and any(job.pod(role).scheduler_name == gang.VOLCANO for role in roles):
            yield (
                f'schedulerName is volcano without {gang.GANG}: "volcano": each pod is a gang of '
                "its own, unless mpi-operator runs with --gang-scheduling"
            )
        if (
            scheduler == gang.COSCHEDULING
            and job.pod(names.ROLE_WORKER).scheduler_name in _NO_SCHEDULER
        ):
            yield (
                "no schedulerName in the templates: the pods are a gang only if the "
                "default scheduler runs Coscheduling"
            )
        if asked and _name_two_schedulers(job, asked):
            yield (
                "launcher and workers name different schedulers: Kubernetes "
                "then starts no pod of the gang"
            )
        if asked and asked.queue:
            try:
                lookup.named(gang.VOLCANO_QUEUES, asked.queue)
            except LookupError:
                yield (
                    f"queue {asked.queue} could not be checked: the "
                    "queues of Volcano cannot be read"
                )

    def findings(self, job: MPIJob, about: JobFacts) -> Iterator[str]:
        """Yield what the author should know of a scheduling policy, and of the scheduler KAI."""
        yield from kai.findings(job, about)


def _name_two_schedulers(job: MPIJob, asked: Gang) -> bool:
    """Tell whether the pods of one gang of Kubernetes name different schedulers."""
    if asked.scheduler != gang.KUBERNETES or not asked.with_launcher:
        return False
    roles = names.ROLE_LAUNCHER, names.ROLE_WORKER
    launcher, workers = (job.pod(role).scheduler_name or "" for role in roles)
    return launcher != workers


def _has_pod_groups(asked: Gang, lookup: Lookup) -> bool:
    return any(_serves(resource, lookup) for resource in gang.pod_groups(asked))


def _serves(resource: Resource, lookup: Lookup) -> bool:
    """Tell whether the API is known to serve a resource."""
    try:
        return lookup.serves(resource)
    except LookupError:
        return False


def _pods_of(asked: Gang | None) -> tuple[str, bool] | None:
    """Return what decides which pods have which marks."""
    return (asked.scheduler, asked.with_launcher) if asked else None


def _unequal(now: Gang, was: Gang | None) -> Iterator[Refusal]:
    if now.unequal and (was is None or was.unequal != now.unequal):
        launcher, workers = now.unequal
        message = (
            f"Kubernetes 1.37 starts no pod of a gang whose launcher has {launcher} and whose "
            f"workers have {workers}; make them equal, or set {gang.GANG}: "
            f'"{gang.KUBERNETES_WORKERS}", which leaves the launcher outside the gang'
        )
        yield Refusal(field=GANG_FIELD, message=message)


def _of_another_priority(now: Gang, was: Gang) -> Iterator[Refusal]:
    """Yield a refusal of another priority for pods whose PodGroup keeps the former one."""
    before, after = was.priority_class, now.priority_class
    if now.scheduler == was.scheduler == gang.KUBERNETES and before != after:
        message = (
            f"the priorityClassName of its pods cannot change from {before or 'none'} to "
            f"{after or 'none'} once the job has started: its PodGroup keeps the priority, and "
            "Kubernetes 1.37 starts no pod of another; delete and recreate the job"
        )
        yield Refusal(field=GANG_FIELD, message=message)


def _queue(name: str, lookup: Lookup) -> Iterator[Refusal]:
    try:
        found = lookup.named(gang.VOLCANO_QUEUES, name)
    except LookupError:
        return  # see `warnings`
    if found is None:
        yield Refusal(
            field=QUEUE_FIELD,
            message=f"there is no queue {name}; see `kubectl get queues.scheduling.volcano.sh`",
        )
    elif isinstance(found, VolcanoQueue) and found.status.state in _CLOSED:
        yield Refusal(
            field=QUEUE_FIELD,
            message=f"queue {name} is {found.status.state} and takes no more jobs",
        )


def _foreign_marks(job: MPIJob, scheduler: str) -> set[str]:
    found: set[str] = set()
    for role in (names.ROLE_LAUNCHER, names.ROLE_WORKER):
        said: Mapping[str, str] = {**job.pod_labels(role), **job.pod_annotations(role)}
        ours = {
            mark
            for mark, of in _MARKS.items()
            if of == scheduler and said.get(mark) == job.metadata.name
        }
        found |= said.keys() & _MARKS.keys() - ours
    return found
