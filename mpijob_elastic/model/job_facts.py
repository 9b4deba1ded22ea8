"""The facts of an MPIJob: derived once from its JSON, for controller, webhook, upgrade and command line."""

from collections.abc import Iterable, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import gang, horovodrun, mpijob, policy, run_policy, seccomp
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.kube_queue import HELD
from mpijob_elastic.model.mpijob import Container, MPIJob
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.run_policy import RunPolicy
from mpijob_elastic.model.wire import Owned, owned, seconds

_ROLES = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
GLOO_TIMEOUT = "HOROVOD_GLOO_TIMEOUT_SECONDS"


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One MPIJob; times are seconds since the epoch.

    replicas: 0 where size_known is false. launch: how its launcher starts the ranks, None if the command cannot be
    read. np_workers: workers that horovodrun waits for at its start (-np). min_np_workers: below so many training waits
    (--min-np, or -np); max_np_workers: above so many no more ranks start. 0 where the command does not say.
    counts_resets: horovodrun ends the job after so many resets. gloo_timeout: seconds until Gloo gives up a peer, 0 if
    nothing says. reported: the operator has written its status. run_policy: empty unless we are asked to act on it.
    finished: Succeeded, or Failed for good. retries: Failed, and a launcher that fails is made again. ended_at: when,
    None unless it did; succeeded_at: the same of a success. notices: our annotation on it, "" without. lacks_selector:
    its status counts the workers and does not say how to find them. pod_labels: of the templates, by role.
    suspended_by: the field or annotation that suspends it, "" if it is not, or not elastic. gang: None unless it asks
    for a gang scheduler. queue: of Kueue, "" if it asks for none; priority_class: there. prebuilt: the Workload that
    MultiKueue made for it here, "" without. elsewhere: MultiKueue runs it in another cluster. own_grace: of the
    workers' template. size_manager: the GitOps tool that sets the size of a job with the annotation autoscale, "" if
    none does. place: equal for jobs whose workers need the same kind of node. seccomp_profiles: of the templates, by
    role and container. worker_counts: what each worker counts for in a ResourceQuota.
    """

    metadata: Owned
    created_at: float
    replicas: int
    size_known: bool
    slots: int
    main_container: str
    elastic: bool
    policy: Policy
    problems: tuple[Problem, ...]
    launch: Launch | None
    np_workers: int
    min_np_workers: int
    max_np_workers: int
    counts_resets: bool
    gloo_timeout: int
    clean_pod_policy: str
    deleting: bool
    reported: bool
    own_grace: int | None
    run_policy: RunPolicy
    finished: bool
    retries: bool
    ended_at: float | None
    succeeded_at: float | None
    notices: str
    lacks_selector: bool
    pod_labels: Mapping[str, Mapping[str, str]]
    seccomp_profiles: Mapping[str, Mapping[str, seccomp.Profile]]
    suspended_by: str
    gang: Gang | None
    queue: str
    priority_class: str
    prebuilt: str
    elsewhere: bool
    size_manager: str
    place: str
    worker_counts: Mapping[str, int]

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates that a new pod gets, one for each reason why it must not start yet.

        A job that is resumed before its next launcher is there still gets the gate: ranks of the last may run.
        """
        is_suspended = self.suspended_by or (self.elastic and names.is_suspended(self.notices))
        holds = {names.GATE_SUSPENDED: is_suspended, names.GATE_QUEUED: self.queue or self.elsewhere}
        return tuple(gate for gate, why in holds.items() if why)


def read(raw: bytes) -> JobFacts:
    """Return the facts in an MPIJob's JSON. Raises msgspec.DecodeError if it is none."""
    return of(mpijob.decode(raw))


def of(job: MPIJob) -> JobFacts:
    """Return the facts of a decoded MPIJob."""
    asked, problems = policy.parse(job.metadata.annotations)
    launcher = job.containers(names.ROLE_LAUNCHER)
    texts = (text for container in launcher for text in container.texts())
    spec, status = job.spec or mpijob.Spec(), job.status or mpijob.Status()
    asked_run, faults = run_policy.parse(spec.run_policy if asked.run_policy else None)
    succeeded = job.condition(names.CONDITION_SUCCEEDED) is not None
    ended_at = seconds(status.completion_time) if job.finished else None
    # [operator] Only the first container of a launcher gets kubectl and the hostfile.
    launch = horovodrun.parse(launcher[0].words()) if launcher else None
    elastic = policy.names_discovery(texts) if asked.enabled is None else asked.enabled
    return JobFacts(
        metadata=owned(job.metadata),
        created_at=seconds(job.metadata.creation_timestamp) or 0.0,
        replicas=job.replicas or 0,
        size_known=job.replicas is not None,
        slots=job.slots,
        main_container=spec.main_container or "",
        elastic=elastic,
        policy=asked,
        problems=(*problems, *faults),
        launch=launch,
        np_workers=_workers(launch.np if launch else None, job.slots),
        min_np_workers=_workers(launch.effective_min_np if launch else None, job.slots),
        max_np_workers=_workers(launch.max_np if launch else None, job.slots),
        counts_resets=launch is not None and launch.reset_limit is not None,
        gloo_timeout=_gloo_timeout(launch, [*launcher[:1], *job.containers(names.ROLE_WORKER)]),
        clean_pod_policy=spec.clean_pod_policy or "None",
        deleting=job.metadata.deleting,
        reported=bool(status.conditions),
        own_grace=job.pod(names.ROLE_WORKER).termination_grace_period_seconds,
        run_policy=asked_run,
        finished=job.finished,
        retries=job.condition(names.CONDITION_FAILED) is not None and not job.finished,
        ended_at=ended_at,
        succeeded_at=ended_at if succeeded else None,
        notices=job.metadata.annotations.get(names.STATUS, ""),
        lacks_selector=job.lacks_selector,
        pod_labels={role: job.pod_labels(role) for role in _ROLES},
        seccomp_profiles={role: seccomp.profiles(job.pod(role)) for role in _ROLES},
        suspended_by=suspended_by(job, asked, asked_run) if elastic else "",
        gang=gang.asked(job, asked),
        queue=job.metadata.labels.get(names.LABEL_QUEUE, ""),
        priority_class=job.metadata.labels.get(names.LABEL_PRIORITY_CLASS, ""),
        prebuilt=job.metadata.annotations.get(names.PREBUILT) or job.metadata.labels.get(names.PREBUILT, ""),
        elsewhere=spec.managed_by == names.MULTIKUEUE,
        size_manager=job.size_manager if asked.autoscale else "",
        place=job.place,
        worker_counts=job.worker_counts,
    )


def suspended_by(job: MPIJob, asked: Policy, asked_run: RunPolicy) -> str:
    """Return the field or annotation that asks for suspension, "" if none does; KubeQueue's only if no other does."""
    asks = {
        f"annotation {names.SUSPEND}": asked.suspend,
        "spec.runPolicy.suspend": asked_run.suspend,
        HELD: job.metadata.annotations.get(names.KUBEQUEUE_SUSPEND) == "true",
    }
    return next((what for what, is_asked in asks.items() if is_asked), "")


def _workers(slots: int | None, each: int) -> int:
    return -(-(slots or 0) // each)


def _gloo_timeout(launch: Launch | None, containers: Iterable[Container]) -> int:
    """Return the timeout; horovodrun hands its option, else the launcher's variable, on to all ranks (gloo_run.py)."""
    if launch and launch.gloo_timeout is not None:
        return launch.gloo_timeout
    said = (container.variable(GLOO_TIMEOUT) for container in containers)
    return horovodrun.number(next((text for text in said if text is not None), None)) or 0
