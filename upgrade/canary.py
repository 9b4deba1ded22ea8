"""A job that shows whether the upgrade works: made, scaled, looked at, removed.

It needs no image to be pulled and nothing to run: what is looked at is there as soon as the operator has made its
objects. The launcher has the item (webhook), the ConfigMap the key (webhook or controller), and a write to its scale
subresource, which is all that `kubectl scale` is, makes the operator create a worker (definition).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import inventory, rollout
from mpijob_elastic.install.changes import Say
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.server_side_apply import WORKLOADS
from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, NAMESPACES, PODS, Resource
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.observe import facts_config, facts_pod
from upgrade import store
from upgrade.refusal import Refused

NAMESPACE = "mpijob-elastic-canary"
JOB = "mpijob-elastic-canary"
_LABELS = {"app.kubernetes.io/name": names.PROGRAM}
# A namespace that was made for it, as `store.CREATED` says; our own one is for the record.
_FOR = "canary"
_LITTLE = {"cpu": "1m", "memory": "1Mi"}


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Where it flies: a namespace that is made and removed where it is not there; timeout: seconds for each step."""

    image: str
    namespace: str = NAMESPACE
    timeout: float = 120.0


def of(manifests: Iterable[Manifest], *, namespace: str | None, timeout: float) -> Canary:
    """A canary with the image that is installed: if nodes get one image, then that one."""
    deployments = (one for one in manifests if one["kind"] in WORKLOADS)
    [image, *_] = [
        container["image"] for one in deployments for container in one["spec"]["template"]["spec"]["containers"]
    ]
    return Canary(image=image, namespace=namespace or NAMESPACE, timeout=timeout)


# Why it is not as it should be yet, in words; "" where it is.
Look = Callable[[ApiWriter, Canary], Awaitable[str]]


async def run(client: ApiWriter, canary: Canary, *, say: Say) -> None:
    """Fly it. Raises `Refused` with what did not come true, and `errors.KubeError`; it is removed in any case."""
    await remove(client, canary.namespace)
    await _until(client, canary, _still_there, say=say)
    try:
        await _ensure_namespace(client, canary.namespace)
        await _until(client, canary, _unasked, say=say)
        say(f"canary: job {canary.namespace}/{JOB}")
        await client.create_object(MPI_JOBS.path(canary.namespace), body=_job(canary, {names.ENABLED: "true"}))
        await _until(client, canary, _unprepared, say=say)
        await _scale(client, canary, 2)
        await _until(client, canary, _unscaled, say=say)
        say("canary: launcher, ConfigMap and scale subresource are as they should be")
    finally:
        await remove(client, canary.namespace)


async def remove(client: ApiWriter, namespace: str = NAMESPACE) -> None:
    """Remove the job, and the namespace where we made it; gone already is fine. Raises `errors.KubeError`."""
    job = await _get(client, MPI_JOBS, namespace, JOB)
    if job is not None and _LABELS.items() <= wire.read_stub(job).metadata.labels.items():
        await _delete(client, MPI_JOBS.path(namespace, JOB))
    if await _is_ours(client, namespace):
        await _delete(client, NAMESPACES.path(name=namespace))


async def remove_all(client: ApiWriter) -> None:
    """Remove whatever an interrupted run has left, in any namespace. Raises `errors.KubeError`."""
    left = await inventory.metadata(client, MPI_JOBS.path(), selector=inventory.SELECTOR)
    for namespace in {NAMESPACE, *(job.namespace for job in left if job.name == JOB)}:
        await remove(client, namespace)


async def _delete(client: ApiWriter, path: str) -> None:
    try:
        await client.delete_object(path)
    except errors.NotFound:
        return


async def _ensure_namespace(client: ApiWriter, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": {store.CREATED: _FOR}}}
    try:
        await client.get(NAMESPACES.path(name=name))
    except errors.NotFound:
        with contextlib.suppress(errors.AlreadyExists):
            await client.create_object(NAMESPACES.path(), body=body)


async def _is_ours(client: ApiWriter, namespace: str) -> bool:
    raw = await _get(client, NAMESPACES, None, namespace)
    return raw is not None and wire.read_stub(raw).metadata.annotations.get(store.CREATED) == _FOR


async def _still_there(client: ApiWriter, canary: Canary) -> str:
    job = await _get(client, MPI_JOBS, canary.namespace, JOB)
    ending = job is not None or await _is_ours(client, canary.namespace)
    return "the one before is still ending" if ending else ""


async def _until(client: ApiWriter, canary: Canary, missing: Look, *, say: Say) -> None:
    async def told() -> str:
        why = await missing(client, canary)
        return f"canary: {why}" if why else ""

    if late := await rollout.until(told, seconds=canary.timeout, say=say):
        raise Refused(
            f"after {canary.timeout:.0f} s {late}. Everything that was applied stays, and jobs run on; mend it and run "
            "the same command again, or take it back with `mpijob-elastic upgrade rollback`"
        )


async def _unasked(client: ApiWriter, canary: Canary) -> str:
    """An API server calls a webhook a moment after it was registered, and goes on without it until then."""
    bad = _job(canary, {names.MIN_REPLICAS: "none"})
    try:
        await client.create_object(MPI_JOBS.path(canary.namespace), query={"dryRun": "All"}, body=bad)
    except errors.ApiError as error:
        if "admission webhook" not in error.message:
            raise
        return ""
    return "the webhook was not called for a new job; see its log"


async def _unprepared(client: ApiWriter, canary: Canary) -> str:
    pod = await _get(client, PODS, canary.namespace, names.launcher(JOB))
    config = await _get(client, CONFIG_MAPS, canary.namespace, names.config_map(JOB))
    if pod is None or config is None:
        return "mpi-operator has not created the launcher yet; does it run, and does it look after this namespace?"
    if not facts_pod.read(pod).mounts_discovery:
        return f"the launcher does not mount {names.KEY_DISCOVER_HOSTS}: the webhook was not called; see its log"
    if facts_config.read_config(config).script is None:
        return f"the job's ConfigMap has no {names.KEY_DISCOVER_HOSTS}: neither webhook nor controller added it"
    return ""


async def _unscaled(client: ApiWriter, canary: Canary) -> str:
    pod = await _get(client, PODS, canary.namespace, names.worker(JOB, 1))
    return "mpi-operator has not created the second worker yet" if pod is None else ""


async def _scale(client: ApiWriter, canary: Canary, replicas: int) -> None:
    path = MPI_JOBS.path(canary.namespace, JOB, "scale")
    await client.patch_object(path, body={"spec": {"replicas": replicas}}, content_type=MERGE_PATCH)


async def _get(client: ApiWriter, resource: Resource, namespace: str | None, name: str) -> bytes | None:
    try:
        return await client.get(resource.path(namespace, name))
    except errors.NotFound:
        return None


def _job(canary: Canary, annotations: Mapping[str, str]) -> dict[str, Any]:
    container = {"image": canary.image, "resources": {"requests": _LITTLE}}
    launcher = {**container, "name": "launcher", "command": ["sleep", "60"]}
    worker = {**container, "name": "worker", "command": ["sleep", "60"]}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": JOB, "labels": _LABELS, "annotations": annotations},
        "spec": {
            "cleanPodPolicy": "All",
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": {"containers": [launcher]}}},
                "Worker": {"replicas": 1, "template": {"spec": {"containers": [worker]}}},
            },
        },
    }
