"""The canary: a job that is created, scaled, checked and removed, to show that the upgrade works.

It pulls no image and runs nothing: everything that is checked is there once the operator has created the objects. The
launcher must mount the host list (webhook). The ConfigMap must have the key (webhook or controller). A write to the
scale subresource, which is all that `kubectl scale` does, must make the operator create a worker (definition).
"""

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import inventory, rollout
from mpijob_elastic.install.changes import Say
from mpijob_elastic.kube import errors, wire
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.observe import facts_config, facts_pod
from upgrade import namespaces, record

NAMESPACE = "mpijob-elastic-canary"
JOB = "mpijob-elastic-canary"
_KEY = names.KEY_DISCOVER_HOSTS
_NOT_CREATED = "canary: mpi-operator has not created"
_ADVICE = (
    "everything that was applied stays, and jobs run on. Correct this and run the same command again, or take the "
    "upgrade back with `mpijob-elastic upgrade rollback`"
)


@dataclass(frozen=True, kw_only=True)
class Canary:
    """Where the canary runs: a namespace, created and removed unless it exists. timeout: seconds for each step."""

    namespace: str = NAMESPACE
    timeout: float = 120.0


async def run(client: ApiWriter, canary: Canary, *, image: str, say: Say) -> None:
    """Create, scale and check the job, and remove it in any case. Raises `Refused` with what did not happen.

    image: the one that is installed, because that can surely be pulled.
    """
    namespace = canary.namespace
    wait = partial(rollout.wait, seconds=canary.timeout, say=say, advice=_ADVICE)
    await remove(client, namespace)
    await wait(partial(_still_there, client, namespace))
    try:
        await namespaces.ensure(client, namespace, namespaces.FOR_CANARY, labels={})
        await wait(partial(_uncalled, client, namespace))
        say(f"canary: job {namespace}/{JOB}")
        await client.create_object(MPI_JOBS.path(namespace), body=_job(image, names.ENABLED, "true"))
        await wait(partial(_unprepared, client, namespace))
        path = MPI_JOBS.path(namespace, JOB, "scale")
        await client.patch_object(path, body={"spec": {"replicas": 2}}, content_type=MERGE_PATCH)
        await wait(partial(_unscaled, client, namespace))
        say("canary: launcher, ConfigMap and scale subresource are as they should be")
    finally:
        await remove(client, namespace)


async def remove(client: ApiWriter, namespace: str = NAMESPACE) -> None:
    """Remove the job, and the namespace if it was created for the job. Raises `errors.KubeError`."""
    job = await client.find(MPI_JOBS.path(namespace, JOB))
    if job is not None and record.LABELS.items() <= wire.read_stub(job).metadata.labels.items():
        with contextlib.suppress(errors.NotFound):
            await client.delete_object(MPI_JOBS.path(namespace, JOB))
    if await namespaces.created(client, namespace, namespaces.FOR_CANARY):
        await namespaces.delete(client, namespace)


async def remove_all(client: ApiWriter) -> None:
    """Remove the canaries of interrupted runs, in any namespace. Raises `errors.KubeError`."""
    left = await inventory.metadata(client, MPI_JOBS.path(), inventory.SELECTOR)
    for namespace in {NAMESPACE, *(job.namespace for job in left if job.name == JOB)}:
        await remove(client, namespace)


async def is_webhook_called(client: ApiWriter, namespace: str) -> bool:
    """Return True if the API server calls the webhook: the webhook refuses a bad job, and a dry run stores nothing."""
    bad = _job("none", names.MIN_REPLICAS, "none")
    try:
        await client.create_object(MPI_JOBS.path(namespace), query={"dryRun": "All"}, body=bad)
    except errors.ApiError as error:
        if "admission webhook" not in error.message:
            raise
        return True
    return False


async def _still_there(client: ApiReader, namespace: str) -> str:
    there = await client.find(MPI_JOBS.path(namespace, JOB))
    ending = there is not None or await namespaces.created(client, namespace, namespaces.FOR_CANARY)
    return "canary: the former canary is still ending" if ending else ""


async def _uncalled(client: ApiWriter, namespace: str) -> str:
    # An API server calls a webhook a moment after its registration, and does without it until then.
    called = await is_webhook_called(client, namespace)
    return "" if called else "canary: the webhook was not called for a new job; see its log"


async def _unprepared(client: ApiReader, namespace: str) -> str:
    pod = await client.find(PODS.path(namespace, names.launcher(JOB)))
    config = await client.find(CONFIG_MAPS.path(namespace, names.config_map(JOB)))
    if pod is None or config is None:
        return f"{_NOT_CREATED} the launcher yet; does it run, and does it manage this namespace?"
    if not facts_pod.read(pod).mounts_discovery:
        return f"canary: the launcher does not mount {_KEY}: the webhook was not called; see its log"
    if facts_config.read_config(config).script is None:
        return f"canary: the job's ConfigMap has no {_KEY}: neither webhook nor controller added it"
    return ""


async def _unscaled(client: ApiReader, namespace: str) -> str:
    pod = await client.find(PODS.path(namespace, names.worker(JOB, 1)))
    return f"{_NOT_CREATED} the second worker yet" if pod is None else ""


def _job(image: str, annotation: str, value: str) -> dict[str, Any]:
    little = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    reads = {"name": "HOSTS", "value": names.DISCOVER_HOSTS_PATH}
    container = {"name": "canary", "image": image, "command": ["sleep", "60"], "env": [reads], "resources": little}
    replicas = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": JOB, "labels": record.LABELS, "annotations": {annotation: value}},
        "spec": {"cleanPodPolicy": "All", "mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas}},
    }
