"""Kueue at admission: what an edit does to the quota that a job has, or may get."""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, Asked
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

# How the labels of pods begin that Kueue reads as its own.
TAKEN = "kueue.x-k8s.io/"
# On batch Jobs and Ray's kinds, written by users: Kueue makes another Workload when their size
# changes. https://github.com/kubernetes-sigs/kueue/tree/main/keps/77-dynamically-sized-jobs
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"


class KueueAdmission(CapabilityAdmission):
    """Warnings about quota.

    Kueue's own webhook, which has run before, handles the labels of Kueue.
    """

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
        queue, former = (new.of(Asked) or Asked()).queue, (old.of(Asked) or Asked()).queue
        if queue != former:
            after = (
                f"an admitted job keeps its quota of {former}; to move it, suspend and resume it"
            )
            if not former:
                after = "pods that run go on outside the quota until Kueue admits the job"
            elif not queue:
                after = "the job leaves its queue: others get its quota at once, and its pods go on"
            yield f"metadata.labels[{LABEL_QUEUE}]: {after}"
        elif queue and new.elastic and new.policy.min_replicas != old.policy.min_replicas:
            yield (
                f"{names.MIN_REPLICAS}: an admitted job keeps the quota of its least size at the "
                "start; to ask again, suspend and resume it"
            )
