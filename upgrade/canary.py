"""The canary: a job that is created, scaled, checked and removed, to test the installation.

It pulls no image and runs nothing: everything that is checked is there once the operator has
created the objects. The launcher must mount the host list (webhook). The ConfigMap must have the
key (webhook or controller). A write to the scale subresource, which is all that `kubectl scale`
does, must make the operator create a worker (definition).
"""

import contextlib
from functools import partial
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import rollout, server, webhook_call
from mpijob_elastic.install.objects import Say
from mpijob_elastic.install.server import check_rights
from mpijob_elastic.kube import envelopes, errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model.pod import as_launcher
from mpijob_elastic.observe import facts_config, facts_pod
from upgrade import crd, operators, scale

JOB = "mpijob-elastic-canary"
# On the job, and on a namespace that was created for it.
_LABELS = {"app.kubernetes.io/name": names.PROGRAM, "app.kubernetes.io/component": "canary"}
_SELECTOR = ",".join(f"{key}={value}" for key, value in _LABELS.items())
_KEY = names.KEY_DISCOVER_HOSTS
_NOT_CREATED = "canary: mpi-operator has not created"
_ADVICE = (
    "everything that was applied stays, and jobs run on. Correct this and run the same command "
    "again, or remove the installation with `mpijob-elastic uninstall --traces`"
)


async def check(client: ApiReader) -> None:
    """Raise `Refused` if a canary cannot be run here.

    That is if somebody else resizes this cluster's jobs, or if this account lacks a right.
    """
    await operators.check(client)
    crd.form(await scale.read_definition(client))
    await check_rights(
        client, [(MPI_JOBS, "", verb) for verb in ("get", "list", "create", "patch", "delete")]
    )


async def run(client: ApiWriter, namespace: str, *, image: str, seconds: float, say: Say) -> None:
    """Create, scale and check the job, and remove it in any case.

    Raises `Refused` with what did not happen.

    namespace: created and removed unless it exists. image: that of the installation, because it can
    surely be pulled. seconds: for each step.
    """
    wait = partial(rollout.wait, seconds=seconds, say=say, advice=_ADVICE)
    await remove(client, namespace)
    await wait(partial(_still_there, client, namespace))
    try:
        if await client.find(NAMESPACES.path(name=namespace)) is None:
            body = {
                "apiVersion": "v1",
                "kind": NAMESPACES.kind,
                "metadata": {"name": namespace, "labels": _LABELS},
            }
            await client.create_object(NAMESPACES.path(), body=body)
        await wait(partial(_uncalled, client, namespace))
        say(f"canary: job {namespace}/{JOB}")
        await client.create_object(
            MPI_JOBS.path(namespace), body=_job(image, names.ENABLED, "true")
        )
        await wait(partial(_unprepared, client, namespace))
        subresource = MPI_JOBS.path(namespace, JOB, "scale")
        if await client.find(subresource) is None:
            say(
                "canary: launcher and ConfigMap are as they should be; the "
                "scale subresource is not served"
            )
            return
        await client.patch_object(
            subresource, body={"spec": {"replicas": 2}}, content_type=MERGE_PATCH
        )
        await wait(partial(_unscaled, client, namespace))
        say("canary: launcher, ConfigMap and scale subresource are as they should be")
    finally:
        await remove(client, namespace)


async def remove(client: ApiWriter, namespace: str) -> None:
    """Remove the job, and the namespace if it was created for the job.

    Raises `errors.KubeError`.
    """
    for path in (MPI_JOBS.path(namespace, JOB), NAMESPACES.path(name=namespace)):
        if await _is_ours(client, path):
            with contextlib.suppress(errors.NotFound):
                await client.delete_object(path)


async def remove_all(client: ApiWriter) -> None:
    """Remove the canaries of interrupted runs, in any namespace. Raises `errors.KubeError`."""
    jobs = await server.metadata(client, MPI_JOBS.path(), _SELECTOR)
    created = await server.metadata(client, NAMESPACES.path(), _SELECTOR)
    for namespace in {job.namespace for job in jobs} | {one.name for one in created}:
        await remove(client, namespace)


async def _still_there(client: ApiReader, namespace: str) -> str:
    # [operator] Objects of the former job go after the job. Until then they fail the sync of the
    # next job, which is tried ever less often.
    pods = (names.launcher(JOB), names.worker(JOB, 0), names.worker(JOB, 1))
    paths = [MPI_JOBS.path(namespace, JOB), CONFIG_MAPS.path(namespace, names.config_map(JOB))]
    paths += [PODS.path(namespace, pod) for pod in pods]
    ending = [path for path in paths if await client.find(path) is not None]
    if ending or await _is_ours(client, NAMESPACES.path(name=namespace)):
        return "canary: the former canary is still ending"
    return ""


async def _is_ours(client: ApiReader, path: str) -> bool:
    raw = await client.find(path)
    return raw is not None and _LABELS.items() <= envelopes.read_stub(raw).metadata.labels.items()


async def _uncalled(client: ApiWriter, namespace: str) -> str:
    # An API server calls a webhook a moment after its registration, and does without it until then.
    called = await webhook_call.called(client, namespace, registered=True)
    if not called.answers:
        return "canary: the webhook was not called for a new job; see its log"
    lacks = called.lacks(namespace)
    return f"canary: {lacks}" if lacks else ""


async def _unprepared(client: ApiReader, namespace: str) -> str:
    pod = await client.find(PODS.path(namespace, names.launcher(JOB)))
    config = await client.find(CONFIG_MAPS.path(namespace, names.config_map(JOB)))
    if pod is None or config is None:
        return f"{_NOT_CREATED} the launcher yet; does it run, and does it manage this namespace?"
    if not as_launcher(facts_pod.read(pod)).mounts_discovery:
        return (
            f"canary: the launcher does not mount {_KEY}: the webhook was not called; see its log"
        )
    if facts_config.read_config(config).script is None:
        return f"canary: the job's ConfigMap has no {_KEY}: neither webhook nor controller added it"
    return ""


async def _unscaled(client: ApiReader, namespace: str) -> str:
    pod = await client.find(PODS.path(namespace, names.worker(JOB, 1)))
    return f"{_NOT_CREATED} the second worker yet" if pod is None else ""


def _job(image: str, annotation: str, value: str) -> dict[str, Any]:
    little = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    reads = {"name": "HOSTS", "value": names.DISCOVER_HOSTS_PATH}
    container = {
        "name": "canary",
        "image": image,
        "command": ["sleep", "60"],
        "env": [reads],
        "resources": little,
    }
    replicas = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": JOB, "labels": _LABELS, "annotations": {annotation: value}},
        "spec": {
            "cleanPodPolicy": "All",
            "mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas},
        },
    }
