"""The facts of an MPIJob, derived once from its JSON.

Controller, webhook, upgrade and command line read only these facts.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TypeVar

import msgspec

from mpijob_elastic import names
from mpijob_elastic.model import (
    bounds,
    devices,
    driver,
    launch_command,
    mpijob,
    phrases,
    policy,
    template_fields,
)
from mpijob_elastic.model.devices import Devices
from mpijob_elastic.model.driver import Driver
from mpijob_elastic.model.json_parts import Owned, owned, seconds
from mpijob_elastic.model.launch_command import ELASTIC_SH, Launch
from mpijob_elastic.model.mpijob import Container, JobStatus, MPIJob, Profile
from mpijob_elastic.model.policy import Policy, Problem
from mpijob_elastic.model.template_fields import TemplateFields

_ROLES = (names.ROLE_LAUNCHER, names.ROLE_WORKER)
# The prefix of limits among the keys of a ResourceQuota.
_LIMITS = "limits."
# Seconds: a longer wait for others is a typing error.
LONGEST_GATHER = 600
GLOO_TIMEOUT = "HOROVOD_GLOO_TIMEOUT_SECONDS"
# The fields of `Launch` that say how many ranks there may be.
LIMITS = frozenset(driver.HOROVOD.options)


@dataclass(frozen=True, kw_only=True)
class SizeRule:
    """How a capability sets the size of a job."""

    #: It chooses the size. False if it only sets back a size that cannot be reached.
    chooses: bool
    #: The MPIJob asks for something that needs an elastic job.
    needs_elastic: bool
    #: The cause of the sizes that it sets, in a word.
    cause: str


class CapabilityFacts:
    """What an MPIJob asks of an optional capability, immutable and comparable.

    An MPIJob that asks nothing of a capability has None instead. The core reads only these words;
    decide.capability has what a capability wants and does.
    """

    @property
    def gate(self) -> str:
        """The scheduling gate (names.GATES) that new pods get; "" for no gate."""
        return ""

    @property
    def asks(self) -> bool:
        """False if it only tells who edited the MPIJob, when, and what we noted there."""
        return True

    @property
    def queued(self) -> bool:
        """True if a queue decides when the pods may start; `gate` holds them until then."""
        return False

    @property
    def size_rule(self) -> SizeRule | None:
        """How the capability sets the size of the job; None if it does not."""
        return None

    def findings(self, _job: "JobFacts") -> Iterable[str]:
        """Yield more warnings for the webhook: what is asked for has no effect, or a bad one."""
        return ()


K = TypeVar("K", bound=CapabilityFacts)
V = TypeVar("V")


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One MPIJob; times are seconds since the epoch."""

    metadata: Owned
    created_at: float
    #: `Worker.replicas`; 0 if `size_known` is false.
    replicas: int
    #: True if the MPIJob gives a size that the operator can read.
    size_known: bool
    #: Slots of each worker, at least 1.
    slots: int
    #: `spec.mainContainer`; "" if absent.
    main_container: str
    #: True if the annotation or, without it, the launcher's template makes the job elastic. The
    #: template is that of the next launcher.
    elastic: bool
    #: True if the launcher that exists is elastic; without a launcher, as our notices say. Only an
    #: elastic job is said to be suspended.
    launcher_elastic: bool
    policy: Policy
    #: Annotations that cannot be used.
    problems: tuple[Problem, ...]
    #: How the launcher starts the ranks; None if its command cannot be read.
    launch: Launch | None
    #: True if elastic.sh drives the next launcher (`runs_elastic`).
    names_elastic: bool
    #: Workers that the driver waits for at its start (-np); 0 if the command does not say.
    np_workers: int
    #: Workers below which training waits (--min-np, or -np); 0 if the command does not say.
    min_np_workers: int
    #: Workers above which no more ranks start (--max-np); 0 if the command does not say.
    max_np_workers: int
    #: The options of the driver in `LIMITS` that an elastic job may have, and that cannot be read:
    #: for these the 0 above means that nobody knows.
    unread_options: frozenset[str]
    #: True if a text of the launcher names the hostfile, of which the command may count the lines.
    names_hostfile: bool
    #: True if horovodrun ends the job after a number of resets (--reset-limit).
    counts_resets: bool
    #: Seconds for which workers that are to join wait for others (--gather of elastic.sh); None if
    #: the command does not say.
    gather: float | None
    #: Seconds until Gloo gives up a peer; 0 if neither command nor environment says.
    gloo_timeout: int
    #: `spec.cleanPodPolicy`; "None" if absent.
    clean_pod_policy: str
    #: True once its deletion was requested.
    deleting: bool
    #: True once the operator has written the status.
    reported: bool
    #: Grace period of the workers' template, in seconds; None if absent.
    own_grace: int | None
    #: Succeeded, or Failed for good.
    finished: bool
    #: Failed, but the operator makes another launcher.
    retries: bool
    #: When the job finished; None unless it did.
    ended_at: float | None
    #: When the job succeeded; None unless it did.
    succeeded_at: float | None
    #: Our annotation `names.STATUS`; "" if absent.
    notices: str
    #: True if the status counts the workers and does not say how to find them.
    lacks_selector: bool
    #: The GitOps tool that sets the size; "" if none does.
    size_manager: str
    #: Labels of the pod templates, by role.
    pod_labels: Mapping[str, Mapping[str, str]]
    #: Seccomp profiles of the pod templates, by role and container.
    seccomp_profiles: Mapping[str, Mapping[str, Profile]]
    #: The fields that are put back on the job's pods; None if there are none.
    template_fields: TemplateFields | None
    #: A text that is equal for jobs whose workers need the same kind of node.
    place: str
    #: True if the workers' template names their node (nodeName), past the scheduler.
    names_node: bool
    #: What each worker counts for in a ResourceQuota, by the quota's keys (`requests.Amounts`).
    worker_counts: Mapping[str, int]
    #: What the MPIJob asks of each optional capability.
    asked: tuple[CapabilityFacts, ...] = ()

    @property
    def acts_elastic(self) -> bool:
        """True if the job obeys what only elastic jobs obey.

        An edit that makes the job plain is for the next launcher: until then the launcher that
        exists decides. Only `enabled: "false"` takes effect at once.
        """
        return self.elastic or (self.launcher_elastic and self.policy.enabled is not False)

    @property
    def driver(self) -> Driver:
        """The driver of the next launcher."""
        return driver.ELASTIC if self.names_elastic else driver.HOROVOD

    @property
    def suspended(self) -> bool:
        """True if the MPIJob itself asks the job to stop; only an elastic job obeys."""
        if not self.acts_elastic:
            return False
        if self.policy.suspend or self.is_at_zero:
            return True
        return any(known.gate == names.GATE_SUSPENDED for known in self.asked)

    @property
    def is_at_zero(self) -> bool:
        """True if the job is to have no worker, and its user wants this to suspend the job."""
        if not self.policy.zero_suspends:
            return False
        return self.size_known and self.replicas == 0

    @property
    def queued(self) -> bool:
        """True if a queue decides when its pods may start.

        A queue that holds them by suspending the job counts only if the job is elastic.
        """
        return any(
            known.queued and (self.acts_elastic or known.gate != names.GATE_SUSPENDED)
            for known in self.asked
        )

    @property
    def gates(self) -> tuple[str, ...]:
        """The scheduling gates that a new pod gets, one for each reason why it must not start yet.

        A job that is resumed before its next launcher exists still gets the gate of a suspended
        job: ranks of the last launcher may run.
        """
        is_suspended = self.suspended or (self.acts_elastic and names.is_suspended(self.notices))
        asked = {known.gate for known in self.asked} - {names.GATE_SUSPENDED, ""}
        return (*([names.GATE_SUSPENDED] if is_suspended else []), *sorted(asked))

    @property
    def startup_workers(self) -> int | None:
        """The number of workers that a launcher waits for at its start; None for all workers.

        All are waited for where -np is unknown, or may be counted in the hostfile: with fewer lines
        horovodrun would start with too few ranks, and may keep that number for good.
        """
        if "np" in self.unread_options or self.names_hostfile:
            return None
        return policy.startup_workers(self.policy, np_workers=self.np_workers)

    @property
    def unread_words(self) -> str:
        """What cannot be read in the launcher's command, in words; "" if nothing is missing."""
        if not self.unread_options:
            return ""
        program, known = self.driver.program, self.driver.options
        unread = [option for field, option in known.items() if field in self.unread_options]
        options = phrases.listed(unread)
        if self.launch is None:
            return f"no {program} can be read in the launcher's command: its {options} are unknown"
        return f"{program}'s {options} cannot be read in the launcher's command"

    @property
    def devices(self) -> Devices:
        """The GPUs and other accelerators of each worker."""
        limits = {
            key.removeprefix(_LIMITS): amount
            for key, amount in self.worker_counts.items()
            if key.startswith(_LIMITS)
        }
        return devices.of(limits)

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes that the job may have, in order; empty if it may have any size."""
        allowed = self.policy.sizes
        return allowed.sizes if allowed and self.acts_elastic else ()

    @property
    def skips(self) -> AbstractSet[int]:
        """The indices of workers that the job skips; none if the size is a typing error."""
        parked = self.policy.parked
        if parked is None or not self.acts_elastic or self.replicas > bounds.MOST_WORKERS:
            return frozenset()
        return parked

    @property
    def workers(self) -> int:
        """The size without the workers that the job skips."""
        return self.workers_of(self.replicas)

    def workers_of(self, replicas: int) -> int:
        """Return the number of workers at this `Worker.replicas`, without the skipped workers."""
        return replicas - sum(index < replicas for index in self.skips)

    def next_workers(self, number: int) -> Sequence[int]:
        """Return the indices of the workers that come when the job grows by `number`.

        Skipped workers come first, then new ones.
        """
        skipped = sorted(index for index in self.skips if index < self.replicas)
        return list(islice(chain(skipped, count(self.replicas)), number))

    def grown(self, coming: Collection[int]) -> tuple[int, frozenset[int]]:
        """Return `Worker.replicas` and the indices to skip, once these workers have come."""
        return max([self.replicas, *(index + 1 for index in coming)]), frozenset(
            self.skips
        ).difference(coming)

    def shrunk(self, leaving: Collection[int]) -> tuple[int, frozenset[int]]:
        """Return `Worker.replicas` and the indices to skip, once these workers have left.

        The highest workers leave by a smaller size; the others are skipped. Indices above the size
        that are skipped already stay so.
        """
        replicas, away = self.replicas, {*self.skips, *leaving}
        while replicas and replicas - 1 in away:
            replicas -= 1
        return replicas, frozenset(self.skips).union(index for index in leaving if index < replicas)

    def size_at_most(self, size: int) -> int:
        """Return the largest allowed size that is not above `size`; 0 if there is no such size."""
        sizes = self.sizes
        if not sizes:
            return size
        at = bisect_right(sizes, size)
        return sizes[at - 1] if at else 0

    def size_at_least(self, size: int) -> int:
        """Return the smallest allowed size that is not below `size`; 0 if there is no such size."""
        sizes = self.sizes
        if not sizes:
            return size
        at = bisect_left(sizes, size)
        return sizes[at] if at < len(sizes) else 0

    def sizes_near(self, size: int) -> str:
        """Return the neighbours of a size that the job may not have, in words."""
        near = (self.size_at_most(size), self.size_at_least(size))
        return " or ".join(str(other) for other in near if other)

    def size_down(self, size: int) -> int:
        """Return the largest allowed size not above `size`, or the smallest allowed size."""
        return self.size_at_most(size) or self.size_at_least(size)

    def of(self, kind: type[K]) -> K | None:
        """Return what the MPIJob asks of a capability; None if it asks nothing."""
        return next((known for known in self.asked if isinstance(known, kind)), None)


# Returns what an MPIJob asks of a capability (None if nothing), and the problems with that.
Asking = Callable[[MPIJob, Policy], tuple[CapabilityFacts | None, Sequence[Problem]]]


def of(job: MPIJob, asking: Iterable[Asking] = ()) -> JobFacts:
    """Return the facts of a decoded MPIJob, with what it asks of capabilities."""
    policy_, problems = policy.parse(job.metadata.annotations)
    asked = [ask(job, policy_) for ask in asking]
    restored = template_fields.of(job)
    launcher = job.containers(names.ROLE_LAUNCHER)
    texts = _texts(launcher)
    spec, status = job.spec or mpijob.Spec(), job.status or JobStatus()
    launch = _launch(launcher)
    said = launch or Launch(program="")
    elastic, is_mpi = _is_elastic(policy_, texts), runs_elastic(launcher)
    worker = job.pod(names.ROLE_WORKER)
    notices = bounds.notices(job.metadata.annotations.get(names.STATUS, ""))
    return JobFacts(
        metadata=owned(job.metadata),
        created_at=seconds(job.metadata.creation_timestamp) or 0.0,
        replicas=job.replicas or 0,
        size_known=job.replicas is not None,
        slots=job.slots,
        main_container=spec.main_container or "",
        elastic=elastic,
        launcher_elastic=_was_elastic(notices),
        policy=policy_,
        problems=(*problems, *chain.from_iterable(faults for _, faults in asked)),
        launch=launch,
        names_elastic=is_mpi,
        np_workers=_workers(said.first_np, job.slots),
        min_np_workers=_workers(said.effective_min_np, job.slots),
        max_np_workers=_workers(said.max_np, job.slots),
        unread_options=_unread(launch) if elastic else frozenset(),
        # elastic.sh refuses the operator's hostfile, and `{hostfile}` is its own.
        names_hostfile=not is_mpi and _names_hostfile(texts),
        counts_resets=said.reset_limit is not None,
        gather=_gather(said),
        gloo_timeout=_gloo_timeout(said, [*launcher[:1], *job.containers(names.ROLE_WORKER)]),
        clean_pod_policy=spec.clean_pod_policy or "None",
        deleting=job.metadata.deleting,
        reported=bool(status.conditions),
        own_grace=worker.termination_grace_period_seconds,
        finished=job.finished,
        retries=_is_retried(job),
        ended_at=_ended_at(job, status),
        succeeded_at=_succeeded_at(job, status),
        notices=notices,
        lacks_selector=job.lacks_selector,
        size_manager=job.size_manager,
        pod_labels=_by_role(job.pod_labels),
        seccomp_profiles=_by_role(lambda role: job.pod(role).seccomp_profiles),
        place=job.place,
        names_node=bool(worker.node_name),
        template_fields=restored,
        worker_counts=_worker_counts(job, restored),
        asked=tuple(known for known, _ in asked if known is not None),
    )


def _worker_counts(job: MPIJob, restored: TemplateFields | None) -> Mapping[str, int]:
    """Return what each worker counts for in a ResourceQuota."""
    if restored is None:
        return job.worker_counts
    return restored.worker_counts(job.worker_counts)


def _texts(launcher: Iterable[Container]) -> list[str]:
    """Return the texts of the launcher's containers that may name a file."""
    return [text for container in launcher for text in container.texts()]


def runs_elastic(launcher: Sequence[Container]) -> bool:
    """Tell whether elastic.sh drives a launcher with these containers.

    A text names it. If horovodrun follows the list all the same, that text is a comment or the
    like.
    """
    if not policy.names_elastic(_texts(launcher)):
        return False
    launches = [launch_command.parse(one.words(), one.variables()) for one in launcher]
    return not any(launch.follows_list for launch in launches if launch)


def _names_hostfile(texts: Iterable[str]) -> bool:
    """Tell whether a text of the launcher names the hostfile."""
    return any(names.KEY_HOSTFILE in text for text in texts)


def _by_role(read: Callable[[str], V]) -> dict[str, V]:
    """Return what is read of the pod template of each role."""
    return {role: read(role) for role in _ROLES}


def _is_retried(job: MPIJob) -> bool:
    """Tell whether the job failed, and the operator makes another launcher."""
    return not job.finished and job.condition(names.CONDITION_FAILED) is not None


def _launch(launcher: Sequence[Container]) -> Launch | None:
    """Return how the launcher starts the ranks; None if its command cannot be read.

    [operator] Only the first container of a launcher gets kubectl and the hostfile.
    """
    first = launcher[0] if launcher else Container()
    return launch_command.parse(first.words(), first.variables())


def _is_elastic(known: Policy, texts: Iterable[str]) -> bool:
    """Tell whether the annotation or, without it, the launcher's template makes a job elastic."""
    if known.enabled is not None:
        return known.enabled
    return policy.names_discovery(texts)


def _was_elastic(notices: str) -> bool:
    """Tell whether our notices say that the launcher is elastic."""
    return names.is_still_elastic(notices) or names.is_suspended(notices)


def _ended_at(job: MPIJob, status: JobStatus) -> float | None:
    """Return when the job finished; None unless it did."""
    return seconds(status.completion_time) if job.finished else None


def _succeeded_at(job: MPIJob, status: JobStatus) -> float | None:
    """Return when the job succeeded; None unless it did."""
    if job.condition(names.CONDITION_SUCCEEDED) is None:
        return None
    return _ended_at(job, status)


def kept(facts: JobFacts) -> JobFacts:
    """Return the facts if they may be kept. Raises `TooLarge`.

    Our notices count at their longest, so that no notice makes a job unreadable.
    """
    bounds.kept(_without_notices(facts), most=bounds.LARGEST_JOB)
    return facts


def kept_later(facts: JobFacts, *, before: JobFacts | None = None) -> JobFacts:
    """Return the facts if they may still be kept after our later writes, or have not grown.

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


def _unread(launch: Launch | None) -> frozenset[str]:
    if launch is None:
        return LIMITS
    unread = {field for field in LIMITS if not launch.knows(field)}
    # An absent --min-np of horovodrun is as large as -np.
    if launch.program != ELASTIC_SH and launch.min_np is None and "np" in unread:
        unread.add("min_np")
    return frozenset(unread)


def _gather(launch: Launch) -> float | None:
    if launch.gather is None:
        return None
    return float(min(launch.gather, LONGEST_GATHER))


def _gloo_timeout(launch: Launch, containers: Iterable[Container]) -> int:
    """Return the timeout in seconds; 0 if nothing sets it.

    horovodrun hands its option, or else the launcher's variable, to all ranks (gloo_run.py).
    """
    if launch.gloo_timeout is not None:
        return launch.gloo_timeout
    said = (container.variable(GLOO_TIMEOUT) for container in containers)
    return launch_command.number(next((text for text in said if text is not None), None)) or 0
