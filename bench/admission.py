"""The requests that the webhook gets: the pods of a job, in the form that the API server sends."""

from typing import Any

import msgspec

from bench import jobs
from lab.operator import objects
from lab.operator.objects import SERVICE_ACCOUNTS
from mpijob_elastic import names
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.kube.writer import ApiWriter
from webhook.rules import review

DRY_RUN = {"dryRun": "All"}
# Part of the answer only if the webhook was asked.
MARK = names.KEY_DISCOVER_HOSTS.encode()


async def pods(client: ApiWriter, namespace: str) -> dict[str, bytes]:
    """Return a launcher and a worker that can be created, by role, for a new job without an operator.

    Raises as `ApiReader` does.
    """
    body = jobs.manifest(jobs.JOB, replicas=2, drain_timeout=jobs.AT_ONCE)
    body["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {"labels": {"team": MARK.decode()}}
    job = msgspec.json.decode(await jobs.create(client, namespace, body))
    await client.create_object(SERVICE_ACCOUNTS.path(namespace), body=objects.service_account(job))
    made = {names.ROLE_LAUNCHER: _silent(objects.launcher(job)), names.ROLE_WORKER: objects.worker(job, 0)}
    return {role: msgspec.json.encode(pod) for role, pod in made.items()}


async def try_create(client: ApiWriter, namespace: str, pod: bytes) -> bytes:
    """Create the pod as a dry run, and return it. Raises as `ApiReader` does."""
    return await client.create_object(PODS.path(namespace), query=DRY_RUN, body=pod)


def review_of(pod: bytes, namespace: str) -> bytes:
    """Return the AdmissionReview for the creation of a pod, given with the defaults of the API server."""
    metadata = msgspec.json.decode(pod)["metadata"]
    kind = {"group": PODS.group, "version": PODS.version, "kind": PODS.kind}
    resource = {"group": PODS.group, "version": PODS.version, "resource": PODS.plural}
    request = {
        "uid": metadata["uid"],
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": metadata["name"],
        "namespace": namespace,
        "operation": review.CREATE,
        "userInfo": {"username": "system:serviceaccount:mpi-operator:mpi-operator", "groups": ["system:authenticated"]},
        "object": msgspec.Raw(pod),
        "oldObject": None,
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
    }
    return msgspec.json.encode({"apiVersion": review.API_VERSION, "kind": review.KIND, "request": request})


def _silent(pod: dict[str, Any]) -> dict[str, Any]:
    # Elastic, but without the name of the file: that name in the answer shows that the webhook was asked.
    pod["spec"]["containers"][0]["command"] = ["horovodrun", "--host-discovery-script", "/hosts", "python", "train.py"]
    return pod
