"""KAI, a scheduler that makes a gang of every job that names it; what its user should know; pure.

Its podgrouper reads the MPIJob itself. The gang is `spec.runPolicy.schedulingPolicy.minAvailable`
pods, or else the launcher and all workers: also while a job grows for which there is no room. When
fewer run for a minute, KAI deletes all pods of the job. Of pods above that number it takes those
without a task priority first, the youngest before the others; mpi-operator makes the launcher last.

[kai] v0.17.0: pkg/podgrouper/podgrouper/plugins/kubeflow, pkg/scheduler/actions/stalegangeviction,
pkg/scheduler/api/podgroup_info/eviction_info.go, pkg/scheduler/plugins/taskorder.
"""

from collections.abc import Iterator, Mapping

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

# [kai] In `schedulerName` of a template.
SCHEDULER = "kai-scheduler"
# [kai] A label of an MPIJob or of its pods, written by users.
QUEUE = "kai.scheduler/queue"
# [kai] On an MPIJob, written by users: how long fewer pods than the gang may run; below 0 for ever.
STALENESS = "kai.scheduler/staleness-grace-period"
# [kai] On a pod: those with the highest number are taken last.
TASK_PRIORITY = "kai.scheduler/task-priority"
_POLICY = "schedulingPolicy"
_EVICTED = "KAI evicts the whole job when a worker is missing for 60 s; "
_UNREAD = (
    f"mpi-operator v0.2.3 ignores {_POLICY} of spec.runPolicy; for a gang annotate the job "
    f"{names.PREFIX}gang"
)


def schedules(job: MPIJob) -> bool:
    """Tell whether a template names KAI."""
    roles = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    return any(job.pod(role).scheduler_name == SCHEDULER for role in roles)


def findings(job: MPIJob, about: JobFacts) -> Iterator[str]:
    """Yield what the author of a job should know of its scheduling policy, and of KAI."""
    roles = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
    named = [job.pod(role).scheduler_name == SCHEDULER for role in roles]
    if not any(named):
        if _policy(job) is not None:
            yield _UNREAD
    elif not all(named):
        yield (
            f"KAI waits for the launcher and the workers, so both templates must name {SCHEDULER}"
        )
    elif about.acts_elastic:
        yield from _of_elastic(job, about)


def _of_elastic(job: MPIJob, about: JobFacts) -> Iterator[str]:
    """Yield what threatens an elastic job of which KAI schedules all pods."""
    least = 1 + policy.least_workers(about.policy, about.replicas, elastic=True)
    gang, everyone = _gang(job), 1 + about.replicas
    if STALENESS not in job.metadata.annotations and (gang is None or gang > least):
        yield _EVICTED + _remedy(least, everyone)
    if TASK_PRIORITY not in job.pod_labels(names.ROLE_LAUNCHER):
        yield (
            "KAI takes the youngest pod first, the launcher; give its template the label "
            f"{TASK_PRIORITY}"
        )


def _remedy(least: int, everyone: int) -> str:
    if least < everyone:
        return f"set spec.runPolicy.{_POLICY}.minAvailable to {least}"
    # A smaller number would start the job with fewer workers than it needs.
    return f"annotate it {STALENESS}: -1s"


def _policy(job: MPIJob) -> object:
    given = job.spec.run_policy if job.spec else None
    return given.get(_POLICY) if isinstance(given, Mapping) else None


def _gang(job: MPIJob) -> int | None:
    """Return the pods of the gang as the MPIJob says, None if it does not."""
    given = _policy(job)
    least = given.get("minAvailable") if isinstance(given, Mapping) else None
    return least if type(least) is int else None
