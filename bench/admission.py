"""The webhook's subject: the launcher pod of a job, as the API server sends it."""

from __future__ import annotations

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
# What an answer holds only where the webhook was asked.
MARK = names.KEY_DISCOVER_HOSTS.encode()


async def launcher(client: ApiWriter, namespace: str) -> dict[str, Any]:
    """A launcher pod that can be created, of a new job that no operator works on. Raises as `ApiReader` does."""
    body = jobs.manifest(jobs.JOB, replicas=2, drain_timeout=jobs.AT_ONCE)
    job = msgspec.json.decode(await jobs.create(client, namespace, body))
    await client.create_object(SERVICE_ACCOUNTS.path(namespace), body=objects.service_account(job))
    return _silent(objects.launcher(job))


async def try_create(client: ApiWriter, namespace: str, pod: bytes | dict[str, Any]) -> bytes:
    """Create the pod as a dry run, and return it. Raises as `ApiReader` does."""
    return await client.create_object(PODS.path(namespace), query=DRY_RUN, body=pod)


def review_of(pod: bytes, namespace: str) -> bytes:
    """The AdmissionReview about the creation of a pod, given as the API server has filled it in."""
    metadata = msgspec.json.decode(pod)["metadata"]
    request = {
        "uid": metadata["uid"],
        "kind": {"group": PODS.group, "version": PODS.version, "kind": PODS.kind},
        "resource": {"group": PODS.group, "version": PODS.version, "resource": PODS.plural},
        "requestKind": {"group": PODS.group, "version": PODS.version, "kind": PODS.kind},
        "requestResource": {"group": PODS.group, "version": PODS.version, "resource": PODS.plural},
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
    # The command names the script too, and an answer must show by it whether the webhook was asked.
    pod["spec"]["containers"][0]["command"] = ["horovodrun", "python", "train.py"]
    return pod
