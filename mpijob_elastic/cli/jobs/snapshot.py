"""Read the jobs that a user selects: one job, the jobs of a namespace, or all jobs.

`live` follows jobs. Each job comes as a snapshot: the controller's view, and some facts for people.
Lists are paged. Jobs are listed first, because the error of that list shows what is wrong. A list
that this user may not read ends the command with a message. Roles and the objects of capabilities
are exceptions: few users may read them, and not much depends on them.
"""

import difflib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.shown import READINGS
from mpijob_elastic.decide import derive, host_list
from mpijob_elastic.decide.shown import Attach, first_word, shown_of
from mpijob_elastic.diagnosis.facts import PodTrouble, Stuck
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.meta import KubeObject, check_cost
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import mpijob, phrases
from mpijob_elastic.model.job import ConfigFacts, JobView, Role
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Fact, Owned
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.observe import facts_config, facts_pod, views
from mpijob_elastic.observe.facts_pod import ContainerStatus, PodStatus, decode, ends

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)
F = TypeVar("F", bound=Fact)
R = TypeVar("R")
# Reads what a capability's objects say of a job, and the objects of each job by namespace and name.
Seeing = tuple[Attach[Any], Mapping[tuple[str, str], list[Any]]]
# The conditions of an MPIJob ([operator] pkg/apis/kubeflow/v1/common_types.go), the most telling
# condition first. Running precedes Failed: an evicted worker sets Failed for ever, although the job
# goes on.
_STATES = ("Running", names.CONDITION_FAILED, "Restarting", "Created")
# Reasons to wait through which every pod passes (kubelet, pkg/kubelet/kubelet_pods.go).
_PASSING = frozenset({"ContainerCreating", "PodInitializing", ""})


class NoSuchJob(errors.KubeError):
    """There is no such job; the message names similar or existing jobs."""


class NotServed(errors.KubeError):
    """The cluster does not serve the MPIJobs of mpi-operator v0.2.3."""


class UnreadableObject(errors.KubeError):
    """An object holds a value that cannot be read; the message says which."""


class SeenJob(msgspec.Struct, frozen=True, kw_only=True):
    """An MPIJob."""

    metadata: Owned
    facts: JobFacts
    #: A word for the conditions.
    state: str
    #: PriorityClass of the workers, "" for none.
    priority: str
    #: The MPIJob describes its workers; without them a size would be all that it says of them.
    has_workers: bool
    #: See `MPIJob.resized_at`.
    resized_at: float


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod of an MPIJob."""

    metadata: Owned
    facts: PodFacts
    #: What an explanation needs to know of the pod.
    state: PodTrouble


@dataclass(frozen=True, kw_only=True)
class Source(Generic[T]):
    """The objects of one resource that a list or a watch selects."""

    resource: Resource
    #: Reads the JSON of an object.
    read: Callable[[bytes], T]
    #: Label selector.
    label: str | None = None
    #: Field selector.
    field: str | None = None

    def query(self) -> dict[str, str]:
        """Return the selectors as parameters of a request."""
        given = {"labelSelector": self.label, "fieldSelector": self.field}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected jobs."""

    #: None for all namespaces.
    namespace: str | None
    #: None for every job of the namespace.
    job: str | None = None
    #: A selector for the labels of MPIJobs, "" for all.
    labels: str = ""

    @property
    def jobs(self) -> Source[SeenJob]:
        """The selected MPIJobs."""
        field = f"metadata.name={self.job}" if self.job else None
        label = self.labels or None
        return Source(resource=resources.MPI_JOBS, read=read_job, label=label, field=field)

    @property
    def pods(self) -> Source[SeenPod]:
        """The pods of the selected MPIJobs."""
        label = names.pod_selector(self.job) if self.job else names.POD_SELECTOR
        return Source(resource=resources.PODS, read=read_pod, label=label)

    @property
    def configs(self) -> Source[ConfigFacts]:
        """The ConfigMaps of the selected MPIJobs."""
        return self._side(resources.CONFIG_MAPS, facts_config.read_config, names.config_map)

    @property
    def roles(self) -> Source[Role]:
        """The Roles of the launchers of the selected MPIJobs."""
        return self._side(resources.ROLES, facts_config.read_role, names.launcher)

    def _side(
        self, resource: Resource, read: Callable[[bytes], T], name_of: Callable[[str], str]
    ) -> Source[T]:
        if self.job:
            return Source(resource=resource, read=read, field=f"metadata.name={name_of(self.job)}")
        return Source(resource=resource, read=read, label=names.LABEL_APP)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A job at one moment."""

    view: JobView
    job: SeenJob
    #: The pods of the job, by name.
    pods: Mapping[str, SeenPod]
    #: This user may read Roles.
    role_readable: bool
    #: Why the job cannot be shown, "" if it can.
    fault: str = ""
    #: The lines of progress that looks have found, by the uid of the pod; None if nobody looked.
    lines: Mapping[str, ProgressLine] | None = None


async def fetch_job(client: ApiReader, namespace: str | None, job: str) -> Snapshot:
    """Return a job. Raises NoSuchJob and other `errors.KubeError`."""
    found = await fetch(client, Selection(namespace=namespace, job=job))
    if not found:
        raise await no_such(client, namespace, job)
    return found[0]


async def fetch(client: ApiReader, selection: Selection) -> list[Snapshot]:
    """Return the selected jobs, sorted by namespace and name.

    Raises NotServed and other `errors.KubeError`.
    """
    found = await jobs(client, selection)
    pods = await _list(client, selection.namespace, selection.pods)
    configs = await _list(client, selection.namespace, selection.configs)
    roles: list[Role] | None = None
    with suppress(errors.Forbidden):
        roles = await _list(client, selection.namespace, selection.roles)
    seeing: list[Seeing] = []
    for reading_of in READINGS:
        if reading := next(filter(None, (reading_of(job.facts) for job in found)), None):
            with suppress(errors.Forbidden, errors.NotFound):
                objects = await list_objects(
                    client, reading.resource.path(selection.namespace), reading.read
                )
                seeing.append((reading.seeing(objects), grouped(objects)))
    return snapshots(jobs=found, pods=pods, configs=configs, roles=roles, seeing=seeing)


async def jobs(client: ApiReader, selection: Selection) -> list[SeenJob]:
    """Return the selected MPIJobs without other objects. Raises the errors of `fetch`."""
    try:
        return await _list(client, selection.namespace, selection.jobs)
    except errors.NotFound as error:
        raise not_served(client) from error


def not_served(client: ApiReader) -> NotServed:
    """Return the error for a cluster without MPIJobs."""
    kind = resources.MPI_JOBS
    return NotServed(
        f"{client.host} does not serve {kind.kind} {kind.api_version}; install mpi-operator "
        "v0.2.3, or choose another cluster with --context"
    )


def snapshots(
    *,
    jobs: Iterable[SeenJob],
    pods: Collection[SeenPod],
    configs: Iterable[ConfigFacts],
    roles: Iterable[Role] | None,
    seeing: Collection[Seeing] = (),
) -> list[Snapshot]:
    """Return each job with its objects, sorted by namespace and name.

    roles: None where this user may not read Roles. seeing: of each capability whose objects could
    be read.
    """
    ordered = sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    pods_of, configs_of, roles_of = grouped(pods), grouped(configs), grouped(roles or ())
    result = []
    for job in ordered:
        key = (job.metadata.namespace, job.metadata.name)
        parts = Parts(
            pods={pod.metadata.name: pod for pod in pods_of[key]},
            configs=configs_of[key],
            roles=roles_of[key],
        )
        try:
            result.append(_put_together(job, parts, seeing, role_readable=roles is not None))
        except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this job alone
            result.append(_faulty(job, error, role_readable=roles is not None))
    return result


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The objects of one job beside its MPIJob."""

    #: By name.
    pods: Mapping[str, SeenPod]
    configs: Collection[ConfigFacts]
    roles: Collection[Role]


def _put_together(
    job: SeenJob, parts: Parts, seeing: Collection[Seeing], *, role_readable: bool
) -> Snapshot:
    facts = [pod.facts for pod in parts.pods.values()]
    [plain] = views.each([job.facts], pods=facts, configs=parts.configs, roles=parts.roles)
    if not role_readable and plain.config:
        plain = replace(plain, role=host_list.assumed_role(plain))
    key = (plain.namespace, plain.name)
    view = capabilities.told(plain, seen=(see(plain, of_job[key]) for see, of_job in seeing))
    return Snapshot(view=view, job=_named(job, view), pods=parts.pods, role_readable=role_readable)


def _faulty(job: SeenJob, error: Exception, *, role_readable: bool) -> Snapshot:
    """Return a job whose objects cannot be put together: only its MPIJob, and what is wrong."""
    [plain] = views.each([job.facts], pods=(), configs=())
    return Snapshot(
        view=plain, job=job, pods={}, role_readable=role_readable, fault=cannot_show(error)
    )


def cannot_show(error: Exception) -> str:
    """Return in words why a job cannot be shown; anybody who may edit the job can be the cause."""
    log.warning("a job cannot be shown", exc_info=error)
    return f"the objects of this job cannot be shown ({type(error).__name__}: {error})"


def grouped(found: Iterable[F]) -> Mapping[tuple[str, str], list[F]]:
    """Return the objects of each job, by its namespace and name."""
    grouped: dict[tuple[str, str], list[F]] = defaultdict(list)
    for one in found:
        grouped[one.metadata.namespace, one.metadata.job].append(one)
    return grouped


def _named(job: SeenJob, view: JobView) -> SeenJob:
    """Return the job with the state word of a capability, which may know more than the operator."""
    state = derive(view, now=time.time())
    word = first_word(one.state_word(state) for one in shown_of(view))
    return msgspec.structs.replace(job, state=word or job.state)


async def _list(client: ApiReader, namespace: str | None, source: Source[T]) -> list[T]:
    return await list_objects(
        client, source.resource.path(namespace), checked(source.read), query=source.query()
    )


def checked(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a reader that refuses an object that would take long to read, as watches do."""

    def bounded(raw: bytes) -> T:
        check_cost(raw)
        return read(raw)

    return bounded


def read_named(raw: bytes, read: Callable[[bytes], R], resource: Resource, name: str) -> R:
    """Read an object that was asked for by its name, as `NAMESPACE/NAME`.

    Raises UnreadableObject: a list leaves such an object out, but here nothing else is asked for.
    """
    try:
        check_cost(raw)
        return read(raw)
    except Exception as error:
        said = f"{resource.kind} {name} cannot be read: {error}"
        raise UnreadableObject(said) from error


async def no_such(client: ApiReader, namespace: str | None, job: str) -> NoSuchJob:
    """Return the error for a job that does not exist, with the names of other jobs."""
    return NoSuchJob(f"no MPIJob {job}{in_words(namespace)}; {await _hint(client, namespace, job)}")


async def _hint(client: ApiReader, namespace: str | None, job: str) -> str:
    here: list[str] = []
    with suppress(errors.KubeError):
        here = [other.metadata.name for other in await jobs(client, Selection(namespace=namespace))]
    near = difflib.get_close_matches(job, here, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if here:
        return f"existing jobs: {phrases.listed(sorted(here))}"
    return (
        "there are no MPIJobs; choose another namespace with -n, or, if you may, list all with "
        "`mpijob-elastic get -A`"
    )


def in_words(namespace: str | None) -> str:
    """Return the namespace in words for a message, "" for all namespaces."""
    return f" in namespace {namespace}" if namespace else ""


def read_job(raw: bytes) -> SeenJob:
    """Read an MPIJob's JSON. Raises msgspec.DecodeError if `raw` is no MPIJob."""
    job = mpijob.decode(raw)
    facts = capabilities.of(job)
    return SeenJob(
        metadata=facts.metadata,
        facts=facts,
        state=_job_state(job, facts),
        priority=job.pod(names.ROLE_WORKER).priority_class_name or "",
        has_workers=job.describes(names.ROLE_WORKER),
        resized_at=job.resized_at,
    )


def read_pod(raw: bytes) -> SeenPod:
    """Read a pod's JSON. Raises msgspec.DecodeError if `raw` is no pod."""
    pod = decode(raw)
    facts = facts_pod.of(pod, groups=capabilities.GROUPS, marks=capabilities.POD_MARKS)
    return SeenPod(
        metadata=facts.metadata, facts=facts, state=_pod_state(pod.status or PodStatus())
    )


def _job_state(job: MPIJob, facts: JobFacts) -> str:
    if facts.deleting:
        return "Terminating"
    if job.condition(names.CONDITION_SUCCEEDED):
        return names.CONDITION_SUCCEEDED
    if facts.finished:
        return names.CONDITION_FAILED
    if facts.suspended:
        return "Suspended"
    return next((state for state in _STATES if job.condition(state)), "Pending")


def _pod_state(status: PodStatus) -> PodTrouble:
    containers = [*(status.init_container_statuses or ()), *(status.container_statuses or ())]
    return PodTrouble(
        unscheduled=_words(status, "PodScheduled"),
        stuck=next(_stuck(containers), None),
        unready=_words(status, "Ready"),
        ended=tuple(
            f"{name}: {end.reason}" for name, end in ends(containers) if end.reason != "Completed"
        ),
        message=_line(status.message),
    )


def _words(status: PodStatus, kind: str) -> str:
    found = (
        condition
        for condition in status.conditions or ()
        if (condition.type, condition.status) == (kind, "False")
    )
    return next((_line(condition.message) or condition.reason for condition in found), "")


def _stuck(containers: Iterable[ContainerStatus]) -> Iterator[Stuck]:
    for container in containers:
        waiting = container.state and container.state.waiting
        if waiting and waiting.reason not in _PASSING:
            yield Stuck(
                container=container.name, reason=waiting.reason, message=_line(waiting.message)
            )


def _line(text: str) -> str:
    return " ".join(text.split())
