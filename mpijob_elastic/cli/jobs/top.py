"""`top`: the CPU, memory and GPUs that a job's pods use now, by metrics-server and nvidia-smi."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import pods, show, snapshot, table
from mpijob_elastic.cli.jobs.exec_probes import PATIENCE, each
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.snapshot import SeenJob, SeenPod, Selection
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.model.pod import of_driver
from mpijob_elastic.model.requests import readable
from mpijob_elastic.telemetry.terminal import say

SortBy = Literal["cpu", "memory", "gpu"]
# Namespace and name of a pod.
PodKey = tuple[str, str]
# Percent and MiB of each GPU of a pod.
Gpus = tuple[tuple[int, int], ...]

# The versions in which pods are measured, the newest first; kubectl 1.37 reads them, too.
# https://github.com/kubernetes/metrics
POD_METRICS = [
    Resource(group="metrics.k8s.io", version=version, plural="pods", kind="PodMetrics")
    for version in ("v1", "v1beta1")
]
NVIDIA_SMI = [
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
]
_JOB_HEADER = ("NAME", "PODS", "CPU(cores)", "MEMORY(bytes)")
_HEADER = ("NAME", "NODE", "CPU(cores)", "MEMORY(bytes)")
_GPU_HEADER = ("GPUS", "GPU(%)", "GPU-MEMORY")
# Quantities are read in billionths.
_MILLI, _MEBI = 10**6, 10**9 * 2**20


class NoMetrics(errors.KubeError):
    """The cluster serves no metrics of pods."""


class _Container(msgspec.Struct):
    usage: dict[str, str] = {}


class _PodMetrics(msgspec.Struct):
    metadata: ObjectMeta
    containers: list[_Container] = []


@dataclass(frozen=True, kw_only=True)
class Use:
    """The resources that a pod uses."""

    #: The name of the pod.
    name: str
    #: The uid of the pod's job.
    job_uid: str
    node: str
    #: Millicores; None while the pod is not measured.
    cpu: int | None = None
    #: MiB; None while the pod is not measured.
    memory: int | None = None
    gpus: Gpus = ()

    @property
    def gpu(self) -> int | None:
        """The mean use of the pod's GPUs in percent, None without GPUs."""
        return _mean(self.gpus)


@dataclass(frozen=True, kw_only=True)
class JobUse:
    """The resources that the running pods of a job use."""

    pods: tuple[Use, ...]

    @property
    def cpu(self) -> int | None:
        """Millicores of the pods that are measured; None if none is."""
        found = [use.cpu for use in self.pods if use.cpu is not None]
        return sum(found) if found else None

    @property
    def memory(self) -> int | None:
        """MiB of the pods that are measured; None if none is."""
        found = [use.memory for use in self.pods if use.memory is not None]
        return sum(found) if found else None

    @property
    def gpus(self) -> Gpus:
        """The GPUs of all pods."""
        return tuple(gpu for use in self.pods for gpu in use.gpus)

    @property
    def gpu(self) -> int | None:
        """The mean use of the job's GPUs in percent, None without GPUs."""
        return _mean(self.gpus)


def _mean(gpus: Gpus) -> int | None:
    """Return the mean use of GPUs in percent, None without GPUs."""
    return round(sum(percent for percent, _ in gpus) / len(gpus)) if gpus else None


async def top(where: Where, *, job: str, sort_by: SortBy | None, headers: bool) -> None:
    """Print what the pods of a job use.

    Raises NoSuchJob, NotStarted, NoMetrics and other `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await pods.find_job(client, namespace, job)
        uses, refused = await _uses(client, namespace, names.pod_selector(job))
    mine = [use for use in uses if use.job_uid == found.metadata.uid]
    if not mine:
        raise NotStarted(f"no pod of {job} runs; `{names.PROGRAM} explain {job}` says more")
    _warn(refused, [found])
    say(*lines(mine, job=job, sort_by=sort_by)[0 if headers else 1 :])


async def top_jobs(where: Where, *, labels: str, sort_by: SortBy | None, headers: bool) -> None:
    """Print what each job uses that has a running pod. Raises the errors of `top`.

    labels: a selector for the labels of MPIJobs, "" for all.
    """
    async with reached(where) as (client, namespace):
        selection = Selection(namespace=namespace, labels=labels)
        jobs = await snapshot.jobs(client, selection)
        every = names.POD_SELECTOR
        uses, refused = await _uses(client, namespace, every) if jobs else ([], "")
    owners = {job.metadata.uid: (job.metadata.namespace, job.metadata.name) for job in jobs}
    found = summed([use for use in uses if use.job_uid in owners])
    if not found:
        say(show.none_found(where, namespace), err=True)
        return
    _warn(refused, jobs)
    rows = job_lines(found, owners, namespaces=namespace is None, sort_by=sort_by)
    say(*rows[0 if headers else 1 :])


def _warn(refused: str, jobs: Iterable[SeenJob]) -> None:
    """Say why no GPUs are shown of jobs that have some."""
    if refused and any(job.facts.devices.whole for job in jobs):
        say(f"Warning: GPUs are not shown: {refused}", err=True)


async def _uses(client: ApiReader, namespace: str | None, selector: str) -> tuple[list[Use], str]:
    """Return what the running pods use that a label selector selects.

    The text is why an exec for their GPUs was refused, "" if none was. Raises NoMetrics and other
    `errors.KubeError`.
    """
    seen = await list_objects(client, PODS.path(namespace), snapshot.read_pod, selector=selector)
    running = [pod for pod in seen if pod.facts.phase == "Running"]
    if not running:
        return [], ""
    measured, (gpus, refused) = await asyncio.gather(
        _measured(client, namespace, selector), _gpus(client, running)
    )
    return [_use(pod, measured, gpus) for pod in running], refused


def summed(uses: Iterable[Use]) -> dict[str, JobUse]:
    """Return what each job uses, by the uid of the job."""
    of_job = defaultdict[str, list[Use]](list)
    for use in uses:
        of_job[use.job_uid].append(use)
    return {uid: JobUse(pods=tuple(mine)) for uid, mine in of_job.items()}


def job_lines(
    found: Mapping[str, JobUse],
    owners: Mapping[str, tuple[str, str]],
    *,
    namespaces: bool,
    sort_by: SortBy | None,
) -> list[str]:
    """Return a table: jobs by their names, or the highest use first.

    owners: namespace and name of each job, by its uid.
    """
    ordered = sorted(found, key=owners.__getitem__)
    if sort_by:
        ordered.sort(key=lambda uid: _rank(found[uid], sort_by))
    has_gpus = any(use.gpus for use in found.values())
    header = [*["NAMESPACE"] * namespaces, *_JOB_HEADER, *_GPU_HEADER * has_gpus]
    rows = []
    for uid in ordered:
        namespace, name = owners[uid]
        use = found[uid]
        amounts = _amount_cells(use.cpu, use.memory)
        cells = [*[namespace] * namespaces, name, str(len(use.pods)), *amounts]
        rows.append([*cells, *_gpu_cells(use)] if has_gpus else cells)
    return table.columns(header, rows)


def lines(uses: Iterable[Use], *, job: str, sort_by: SortBy | None) -> list[str]:
    """Return a table: the launcher and then the workers in order, or the highest use first."""
    ordered = list(uses)
    if sort_by:
        ordered.sort(key=lambda use: _rank(use, sort_by))
    else:
        ordered.sort(key=lambda use: _place(use.name, job))
    has_gpus = any(use.gpus for use in ordered)
    return table.columns(
        (*_HEADER, *_GPU_HEADER * has_gpus), (_row(use, has_gpus=has_gpus) for use in ordered)
    )


def _rank(use: Use | JobUse, of: SortBy) -> int:
    """Return a key that puts the highest use first, and what is not measured last."""
    amount: int | None = getattr(use, of)
    return 0 if amount is None else -1 - amount


def _place(pod: str, job: str) -> int:
    """Return a key that puts the launcher first, and then the workers in order."""
    index = names.worker_index(pod, job=job)
    return -1 if index is None else index


def _row(use: Use, *, has_gpus: bool) -> list[str]:
    row = [use.name, use.node, *_amount_cells(use.cpu, use.memory)]
    return [*row, *_gpu_cells(use)] if has_gpus else row


def _amount_cells(cpu: int | None, memory: int | None) -> list[str]:
    return [
        table.NONE if cpu is None else f"{cpu}m",
        table.NONE if memory is None else f"{memory}Mi",
    ]


def _gpu_cells(use: Use | JobUse) -> list[str]:
    if not use.gpus:
        return [table.NONE] * len(_GPU_HEADER)
    return [str(len(use.gpus)), str(use.gpu), f"{sum(memory for _, memory in use.gpus)}Mi"]


def _use(
    pod: SeenPod, measured: Mapping[PodKey, tuple[int, int]], gpus: Mapping[PodKey, Gpus]
) -> Use:
    name, key = pod.metadata.name, (pod.metadata.namespace, pod.metadata.name)
    cpu, memory = measured.get(key, (None, None))
    return Use(
        name=name,
        job_uid=pod.metadata.job_uid,
        node=pod.facts.node or table.NONE,
        cpu=cpu,
        memory=memory,
        gpus=gpus.get(key, ()),
    )


async def _measured(
    client: ApiReader, namespace: str | None, selector: str
) -> Mapping[PodKey, tuple[int, int]]:
    """Return the CPU in millicores and the memory in MiB of each pod.

    Raises NoMetrics.
    """
    decode = msgspec.json.Decoder(_PodMetrics).decode
    for resource in POD_METRICS:
        try:
            found = await list_objects(client, resource.path(namespace), decode, selector=selector)
        except errors.ApiError as error:
            if not await _is_missing(client, resource, error):
                raise
        else:
            return {
                (metrics.metadata.namespace, metrics.metadata.name): _amounts(metrics)
                for metrics in found
            }
    versions = " or ".join(resource.version for resource in POD_METRICS)
    raise NoMetrics(
        f"the cluster does not serve {POD_METRICS[0].group}/{versions}: metrics-server is not "
        "installed, or does not answer"
    )


async def _is_missing(client: ApiReader, resource: Resource, error: errors.ApiError) -> bool:
    """Tell whether these metrics were refused because nobody serves them."""
    # RBAC comes first: it refuses also what is not served.
    if isinstance(error, errors.Forbidden):
        return await _is_absent(client, resource)
    return error.status in (404, 503)


async def _is_absent(client: ApiReader, resource: Resource) -> bool:
    """Tell whether the cluster does not serve these metrics; everybody may ask that."""
    with suppress(errors.KubeError):
        return await client.find(f"/apis/{resource.api_version}") is None
    return False


def _amounts(metrics: _PodMetrics) -> tuple[int, int]:
    amounts = [readable(container.usage) for container in metrics.containers]
    cpu, memory = (sum(amount[resource] for amount in amounts) for resource in ("cpu", "memory"))
    return -(-cpu // _MILLI), memory // _MEBI


async def _gpus(client: ApiReader, pods: Iterable[SeenPod]) -> tuple[Mapping[PodKey, Gpus], str]:
    """Return the GPUs of the first MOST workers, and why an exec was refused, "" if none was.

    A worker without nvidia-smi, or into which this user may not exec, has none.
    """
    refused = list[str]()
    workers = (pod for pod in pods if pod.facts.role == names.ROLE_WORKER)
    named = {(pod.metadata.namespace, pod.metadata.name): pod for pod in workers}

    async def ask(pod: SeenPod) -> Gpus:
        namespace, name = pod.metadata.namespace, pod.metadata.name
        container = of_driver(pod.facts.containers, mounting=pod.facts.mounting)
        try:
            result = await exec_in_pod(
                client, namespace, name, container=container, command=NVIDIA_SMI, timeout=PATIENCE
            )
            return (
                tuple(_gpu(line) for line in result.stdout.splitlines())
                if result.exit_code == 0
                else ()
            )
        except errors.Forbidden as error:
            refused.append(rights.in_words(error))
            return ()
        except (errors.KubeError, ValueError):
            return ()

    return await each(named, ask), next(iter(refused), "")


def _gpu(line: str) -> tuple[int, int]:
    """Read `87, 30412`. Raises ValueError for anything else."""
    percent, memory = line.split(",")
    return int(percent), int(memory)
