"""Kueue at admission: what an edit does to the quota that a job has, or may get."""

from collections.abc import Iterator

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch
from mpijob_elastic.admission.interface import CapabilityAdmission, LookedUp, Lookup
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.capabilities.kueue.facts import (
    DEFAULT_QUEUE,
    LABEL_QUEUE,
    LOCAL_QUEUES,
    Asked,
)
from mpijob_elastic.kube.meta import Identity, OwnerReference
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

QUEUE_FIELD = f"metadata.labels[{LABEL_QUEUE}]"

# How the labels of pods begin that Kueue reads as its own.
TAKEN = "kueue.x-k8s.io/"
# On batch Jobs and Ray's kinds, written by users: Kueue makes another Workload when their size
# changes. https://github.com/kubernetes-sigs/kueue/tree/main/keps/77-dynamically-sized-jobs
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"
# The kinds that Kueue queues itself, by group, with all that such an owner makes.
# [kueue] v0.19.2: pkg/controller/jobs.
_QUEUED_BY_KUEUE = frozenset(
    {
        ("", "Pod"),
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "JAXJob"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PaddleJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("kubeflow.org", "XGBoostJob"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("ray.io", "RayService"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("workload.codeflare.dev", "AppWrapper"),
    }
)


class LocalQueue(msgspec.Struct, frozen=True):
    """A LocalQueue, of which the name says enough."""

    metadata: Identity


# What it looks up in each namespace.
WATCHED = LookedUp(
    resource=LOCAL_QUEUES,
    read=msgspec.json.Decoder(LocalQueue).decode,
    name=DEFAULT_QUEUE,
    is_namespaced=True,
)


class KueueAdmission(CapabilityAdmission):
    """The queue of a new job, and warnings about quota.

    [kueue] Its own webhook is asked about its own kinds alone, so nobody else gives an MPIJob v1 a
    queue: v0.19.2, pkg/controller/jobframework/defaults.go and validation.go.
    """

    def names_queue(self, job: MPIJob) -> bool:
        """Tell whether a job names a queue; for Kueue an empty label names none."""
        return bool(job.metadata.labels.get(LABEL_QUEUE))

    def default_queue(self, job: MPIJob, new: JobFacts, lookup: Lookup) -> Patch:
        """Return the patch that puts a job into the LocalQueue `default` of its namespace.

        A job that could not wait there is left alone (see validate, `_past_the_gate`, and parking).
        """
        if _is_part_of_a_job(job.metadata.controller) or _is_past_a_queue(job, new):
            return ()
        if not _has_default_queue(job, lookup):
            return ()
        return json_patch.labelling_new(job.metadata.labels, LABEL_QUEUE, DEFAULT_QUEUE)

    def warnings(
        self, job: MPIJob, new: JobFacts, old: JobFacts | None, _lookup: Lookup
    ) -> Iterator[str]:
        """Yield a warning on what an edit does to the quota of a job that has started.

        A new job is warned of an annotation that Kueue reads on other kinds of jobs alone.
        """
        if old is None and ELASTIC_JOB in job.metadata.annotations:
            yield (
                f"metadata.annotations[{ELASTIC_JOB}] has no effect on an MPIJob: for a job that "
                f"grows and shrinks in its queue, set {names.MIN_REPLICAS}"
            )
        if old is None or not old.reported:
            return
        queue, former = _queue(new), _queue(old)
        if queue != former:
            after = (
                f"an admitted job keeps its quota of {former}; to move it, suspend and resume it"
            )
            if not former:
                after = "pods that run go on outside the quota until Kueue admits the job"
            elif not queue:
                after = "the job leaves its queue: others get its quota at once, and its pods go on"
            yield f"{QUEUE_FIELD}: {after}"
        elif queue and new.elastic and new.policy.min_replicas != old.policy.min_replicas:
            yield (
                f"{names.MIN_REPLICAS}: an admitted job keeps the quota of its least size at the "
                "start; to ask again, suspend and resume it"
            )


def _queue(job: JobFacts) -> str:
    """Return the queue that a job names, "" for none."""
    return (job.of(Asked) or Asked()).queue


def _has_default_queue(job: MPIJob, lookup: Lookup) -> bool:
    """Tell whether the namespace of a job is known to have a LocalQueue `default`."""
    try:
        return lookup.named(LOCAL_QUEUES, DEFAULT_QUEUE, job.metadata.namespace) is not None
    except LookupError:
        return False


def _is_part_of_a_job(owner: OwnerReference | None) -> bool:
    """Tell whether the owner that controls a job is of a kind that Kueue queues."""
    if owner is None:
        return False
    group, _, _ = owner.api_version.rpartition("/")
    return (group, owner.kind) in _QUEUED_BY_KUEUE


def _is_past_a_queue(job: MPIJob, new: JobFacts) -> bool:
    """Tell whether a job names its nodes or parks workers, which is refused in a queue."""
    roles = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    return bool(new.skips) or any(job.pod(role).node_name for role in roles)
