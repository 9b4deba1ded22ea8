"""The facts of an MPIJob: derived once from its JSON, for controller, webhook, upgrade and command line."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, count, islice
from typing import TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import bounds, horovodrun, mpijob, policy, requests
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.mpijob import Container, MPIJob, Profile
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.wire import Owned, owned, seconds

_ROLES = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
GLOO_TIMEOUT = "HOROVOD_GLOO_TIMEOUT_SECONDS"


class Known:
    """What an optional capability knows of a job, immutable and comparable; None where it has nothing to do with it.

    The core sees only this part; see decide.wishes for what a capability wants. gate: the
    scheduling gate (names.GATES) that new pods of the job get for what its MPIJob asks, "" for
    none. rations: its workers start one by one, as somebody else allows. sized: what its MPIJob
    asks for needs an elastic job. sizes: those that an elastic job may have, in order; none where
    it may have any. skips: indices of workers that an elastic job does without. resizes: what it
    asks for changes its size. queued: a queue says when its pods may start, and that gate holds
    them until then. size_cause: why it sets the size, in a word for the history. elastic_only: its
    annotation, if that has no effect on a job that is not elastic.
    """

    gate: str = ""
    rations: bool = False
    sized: bool = False
    sizes: Sequence[int] = ()
    skips: Collection[int] = frozenset()
    resizes: bool = False
    queued: bool = False
    size_cause: str = ""
    elastic_only: str = ""

    def findings(self, _job: "JobFacts") -> Iterable[str]:
        """Yield what else the webhook warns of, because what is asked for has no effect, or a bad one."""
        return ()


K = TypeVar("K", bound=Known)


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One MPIJob; times are seconds since the epoch.

    replicas: 0 where size_known is false. launch: how its launcher starts the ranks, None if the
    command cannot be read. np_workers: workers that horovodrun waits for at its start (-np).
    min_np_workers: below so many training waits (--min-np, or -np); max_np_workers: above so many
    no more ranks start. 0 where the command does not say. counts_resets: horovodrun ends the job
    after so many resets. gloo_timeout: seconds until Gloo gives up a peer, 0 if nothing says.
    reported: the operator has written its status. finished: Succeeded, or Failed for good. retries:
    Failed, and a launcher that fails is made again. ended_at: when, None unless it did;
    succeeded_at: the same of a success. notices: our annotation on it, "" without. lacks_selector:
    its status counts the workers and does not say how to find them. size_manager: the GitOps tool
    that sets its size, "" if none. pod_labels: of the templates, by role. own_grace: of the
    workers' template. place: equal for jobs whose workers need the same kind of node.
    seccomp_profiles: of the templates, by role and container. worker_counts: what each worker
    counts for in a ResourceQuota. asked: what it asks of each optional capability.
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
    finished: bool
    retries: bool
    ended_at: float | None
    succeeded_at: float | None
    notices: str
    lacks_selector: bool
    size_manager: str
    pod_labels: Mapping[str, Mapping[str, str]]
    seccomp_profiles: Mapping[str, Mapping[str, Profile]]
    place: str
    worker_counts: Mapping[str, int]
    asked: tuple[Known, ...] = ()

    @property
    def suspended(self) -> bool:
        """True if the MPIJob itself asks that the job stops; only an elastic job does."""
        return self.elastic and any(known.gate == names.GATE_SUSPENDED for known in self.asked)

    @property
    def queued(self) -> bool:
        """True if a queue says when its pods may start; of a suspended job only where it is elastic."""
        return any(
            known.queued and (self.elastic or known.gate != names.GATE_SUSPENDED)
            for known in self.asked
        )

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates that a new pod gets, one for each reason why it must not start yet.

        A job that is resumed before its next launcher is there still gets the gate: ranks of the
        last may run.
        """
        is_suspended = self.suspended or (self.elastic and names.is_suspended(self.notices))
        asked = {known.gate for known in self.asked} - {names.GATE_SUSPENDED, ""}
        return (*([names.GATE_SUSPENDED] if is_suspended else []), *sorted(asked))

    @property
    def gpus(self) -> int:
        """The GPUs of each worker, whoever makes them."""
        limits = (
            (key, amount) for key, amount in self.worker_counts.items() if key.startswith("limits.")
        )
        return (
            sum(amount for key, amount in limits if key.endswith(("/gpu", "/gpu.shared")))
            // requests.UNIT
        )

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes that it may have, in order, within its bounds; none where it may have any."""
        return (
            next((known.sizes for known in self.asked if known.sizes), ()) if self.elastic else ()
        )

    @property
    def skips(self) -> Collection[int]:
        """The indices of workers that it does without; of a size that is a typing error none."""
        may_skip = self.elastic and self.replicas <= bounds.MOST_WORKERS
        return next((known.skips for known in self.asked if known.skips), ()) if may_skip else ()

    @property
    def workers(self) -> int:
        """The size without the workers that it does without."""
        return self.workers_of(self.replicas)

    def workers_of(self, replicas: int) -> int:
        """Return how many workers it has at `Worker.replicas`: those below, without what it does without."""
        return replicas - sum(index < replicas for index in self.skips)

    def next_workers(self, number: int) -> Sequence[int]:
        """Return which workers come where it grows by so many: first those that it does without, then new ones."""
        skipped = sorted(index for index in self.skips if index < self.replicas)
        return list(islice(chain(skipped, count(self.replicas)), number))

    def grown(self, coming: Collection[int]) -> tuple[int, frozenset[int]]:
        """Return `Worker.replicas` and what it is to skip, once these workers have come."""
        return max([self.replicas, *(index + 1 for index in coming)]), frozenset(
            self.skips
        ).difference(coming)

    def shrunk(self, leaving: Collection[int]) -> tuple[int, frozenset[int]]:
        """Return `Worker.replicas` and what it is to skip, once these workers have left.

        The highest leave by a smaller size; the others are skipped. What is skipped above the size
        stays so.
        """
        replicas, away = self.replicas, {*self.skips, *leaving}
        while replicas and replicas - 1 in away:
            replicas -= 1
        return replicas, frozenset(self.skips).union(index for index in leaving if index < replicas)

    def size_at_most(self, size: int) -> int:
        """Return the largest size that it may have and that is not above `size`; 0 if there is none."""
        sizes = self.sizes
        return sizes[at - 1] if (at := bisect_right(sizes, size)) else 0 if sizes else size

    def size_at_least(self, size: int) -> int:
        """Return the smallest size that it may have and that is not below `size`; 0 if there is none."""
        sizes = self.sizes
        return sizes[at] if (at := bisect_left(sizes, size)) < len(sizes) else 0 if sizes else size

    def size_down(self, size: int) -> int:
        """Return the largest size that it may have and that is not above `size`; the smallest if all are larger."""
        return self.size_at_most(size) or self.size_at_least(size)

    def of(self, kind: type[K]) -> K | None:
        """Return what the MPIJob asks of a capability; None if nothing."""
        return next((known for known in self.asked if isinstance(known, kind)), None)


# Returns what an MPIJob asks of a capability, None if nothing, and what is wrong with it.
Asking = Callable[[MPIJob, Policy], tuple[Known | None, Sequence[Problem]]]


def of(job: MPIJob, asking: Iterable[Asking] = ()) -> JobFacts:
    """Return the facts of a decoded MPIJob, with what it asks of capabilities."""
    policy_, problems = policy.parse(job.metadata.annotations)
    asked = [ask(job, policy_) for ask in asking]
    launcher = job.containers(names.ROLE_LAUNCHER)
    texts = (text for container in launcher for text in container.texts())
    spec, status = job.spec or mpijob.Spec(), job.status or mpijob.JobStatus()
    succeeded = job.condition(names.CONDITION_SUCCEEDED) is not None
    ended_at = seconds(status.completion_time) if job.finished else None
    # [operator] Only the first container of a launcher gets kubectl and the hostfile.
    launch = horovodrun.parse(launcher[0].words()) if launcher else None
    said = launch or Launch(program="")
    elastic = policy.names_discovery(texts) if policy_.enabled is None else policy_.enabled
    return JobFacts(
        metadata=owned(job.metadata),
        created_at=seconds(job.metadata.creation_timestamp) or 0.0,
        replicas=job.replicas or 0,
        size_known=job.replicas is not None,
        slots=job.slots,
        main_container=spec.main_container or "",
        elastic=elastic,
        policy=policy_,
        problems=(*problems, *(fault for _, faults in asked for fault in faults)),
        launch=launch,
        np_workers=_workers(said.np, job.slots),
        min_np_workers=_workers(said.effective_min_np, job.slots),
        max_np_workers=_workers(said.max_np, job.slots),
        counts_resets=said.reset_limit is not None,
        gloo_timeout=_gloo_timeout(said, [*launcher[:1], *job.containers(names.ROLE_WORKER)]),
        clean_pod_policy=spec.clean_pod_policy or "None",
        deleting=job.metadata.deleting,
        reported=bool(status.conditions),
        own_grace=job.pod(names.ROLE_WORKER).termination_grace_period_seconds,
        finished=job.finished,
        retries=job.condition(names.CONDITION_FAILED) is not None and not job.finished,
        ended_at=ended_at,
        succeeded_at=ended_at if succeeded else None,
        notices=bounds.notices(job.metadata.annotations.get(names.STATUS, "")),
        lacks_selector=job.lacks_selector,
        size_manager=job.size_manager,
        pod_labels={role: job.pod_labels(role) for role in _ROLES},
        seccomp_profiles={role: job.pod(role).seccomp_profiles for role in _ROLES},
        place=job.place,
        worker_counts=job.worker_counts,
        asked=tuple(known for known, _ in asked if known is not None),
    )


def kept(facts: JobFacts) -> JobFacts:
    """Return facts that may be kept. Raises `TooLarge`.

    Our notices count at their longest, so that none makes a job unreadable.
    """
    bounds.kept(_without_notices(facts), most=bounds.LARGEST_JOB)
    return facts


def kept_later(facts: JobFacts, *, before: JobFacts | None = None) -> JobFacts:
    """Return facts that may be kept after our later writes as well, or are no larger than before.

    Raises `TooLarge`.
    """
    known = bounds.size(_without_notices(before)) if before else 0
    most = max(bounds.LARGEST_JOB - bounds.LATER, min(known, bounds.LARGEST_JOB))
    bounds.kept(_without_notices(facts), most=most)
    return facts


def _without_notices(facts: JobFacts) -> JobFacts:
    return msgspec.structs.replace(facts, notices="")


def _workers(slots: int | None, each: int) -> int:
    return -(-(slots or 0) // each)


def _gloo_timeout(launch: Launch, containers: Iterable[Container]) -> int:
    """Return the timeout; horovodrun hands its option, else the launcher's variable, on to all ranks (gloo_run.py)."""
    if launch.gloo_timeout is not None:
        return launch.gloo_timeout
    said = (container.variable(GLOO_TIMEOUT) for container in containers)
    return horovodrun.number(next((text for text in said if text is not None), None)) or 0
