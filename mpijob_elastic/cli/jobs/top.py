"""`top`: the CPU, memory and GPUs that a job's pods use now, by metrics-server and nvidia-smi."""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import pods, snapshot, table
from mpijob_elastic.cli.jobs.exec_probes import PATIENCE, each
from mpijob_elastic.cli.jobs.pods import NotStarted
from mpijob_elastic.cli.jobs.snapshot import SeenPod
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

    name: str
    node: str
    #: Millicores; None while the pod is not measured.
    cpu: int | None = None
    #: MiB; None while the pod is not measured.
    memory: int | None = None
    gpus: Gpus = ()

    @property
    def gpu(self) -> int | None:
        """The mean use of the pod's GPUs in percent, None without GPUs."""
        return (
            round(sum(percent for percent, _ in self.gpus) / len(self.gpus)) if self.gpus else None
        )


async def top(where: Where, *, job: str, sort_by: SortBy | None, headers: bool) -> None:
    """Print what the pods use.

    Raises NoSuchJob, NotStarted, NoMetrics and other `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        assert namespace is not None
        found = await pods.find_job(client, namespace, job)
        selector = names.pod_selector(job)
        seen = await list_objects(
            client, PODS.path(namespace), snapshot.read_pod, selector=selector
        )
        mine = [
            pod
            for pod in seen
            if pod.metadata.job_uid == found.metadata.uid and pod.facts.phase == "Running"
        ]
        if not mine:
            raise NotStarted(f"no pod of {job} runs; `{names.PROGRAM} explain {job}` says more")
        measured, (gpus, refused) = await asyncio.gather(
            _measured(client, namespace, selector), _gpus(client, mine)
        )
    if refused and found.facts.devices.whole:
        say(f"Warning: GPUs are not shown: {refused}", err=True)
    say(
        *lines([_use(pod, measured, gpus) for pod in mine], job=job, sort_by=sort_by)[
            0 if headers else 1 :
        ]
    )


def lines(uses: Iterable[Use], *, job: str, sort_by: SortBy | None) -> list[str]:
    """Return a table: the launcher and then the workers in order, or the highest use first."""

    def place(use: Use) -> int:
        if sort_by is not None:
            most: int | None = getattr(use, sort_by)
            return -1 if most is None else -1 - most
        index = names.worker_index(use.name, job=job)
        return -1 if index is None else index

    ordered = sorted(uses, key=place)
    has_gpus = any(use.gpus for use in ordered)
    return table.columns(
        (*_HEADER, *_GPU_HEADER * has_gpus), (_row(use, has_gpus=has_gpus) for use in ordered)
    )


def _row(use: Use, *, has_gpus: bool) -> list[str]:
    cpu = table.NONE if use.cpu is None else f"{use.cpu}m"
    row = [use.name, use.node, cpu, table.NONE if use.memory is None else f"{use.memory}Mi"]
    if not has_gpus:
        return row
    if not use.gpus:
        return [*row, *[table.NONE] * len(_GPU_HEADER)]
    return [*row, str(len(use.gpus)), str(use.gpu), f"{sum(memory for _, memory in use.gpus)}Mi"]


def _use(pod: SeenPod, measured: Mapping[str, tuple[int, int]], gpus: Mapping[str, Gpus]) -> Use:
    name = pod.metadata.name
    cpu, memory = measured.get(name, (None, None))
    return Use(
        name=name,
        node=pod.facts.node or table.NONE,
        cpu=cpu,
        memory=memory,
        gpus=gpus.get(name, ()),
    )


async def _measured(
    client: ApiReader, namespace: str, selector: str
) -> Mapping[str, tuple[int, int]]:
    """Return the CPU in millicores and the memory in MiB of each pod, by name.

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
            return {metrics.metadata.name: _amounts(metrics) for metrics in found}
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


async def _gpus(client: ApiReader, pods: Iterable[SeenPod]) -> tuple[Mapping[str, Gpus], str]:
    """Return the GPUs of the first MOST workers, by name, and why an exec was refused, "" if none.

    A worker without nvidia-smi, or into which this user may not exec, has none.
    """
    refused = list[str]()
    named = {pod.metadata.name: pod for pod in pods if pod.facts.role == names.ROLE_WORKER}

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
