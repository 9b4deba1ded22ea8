"""The requests that the webhook gets: the pods of a job, in the form that the API server sends, and evictions."""

import asyncio
import time
from typing import Any

import msgspec

from bench import jobs
from lab.errors import LabError
from lab.operator import objects
from lab.operator.objects import SERVICE_ACCOUNTS
from mpijob_elastic import names
from mpijob_elastic.capabilities.disruption import eviction
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.kube.writer import ApiWriter

DRY_RUN = {"dryRun": "All"}
BUDGETS = Resource(group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget")
POLL = 0.1
PATIENCE = 120.0
# Longer than a run: the worker drains for all of it.
DRAIN = "2h"
EVICTED = names.worker(jobs.JOB, 1)
# Part of the answer only if the webhook was asked; of an eviction's.
MARK = names.KEY_DISCOVER_HOSTS.encode()
DRAINING = b"draining, retry"


async def pods(client: ApiWriter, namespace: str) -> dict[str, bytes]:
    """Return a launcher and a worker that can be created, by role, for a new job without an operator.

    Raises as `ApiReader` does.
    """
    body = jobs.manifest(jobs.JOB, replicas=2, drain_timeout=DRAIN)
    body["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"] = {
        "labels": {"team": MARK.decode()}
    }
    job = msgspec.json.decode(await jobs.create(client, namespace, body))
    await client.create_object(SERVICE_ACCOUNTS.path(namespace), body=objects.service_account(job))
    made = {
        names.ROLE_LAUNCHER: _silent(objects.launcher(job)),
        names.ROLE_WORKER: objects.worker(job, 0),
    }
    return {role: msgspec.json.encode(pod) for role, pod in made.items()}


async def try_create(client: ApiWriter, namespace: str, pod: bytes) -> bytes:
    """Create the pod as a dry run, and return it. Raises as `ApiReader` does."""
    return await client.create_object(PODS.path(namespace), query=DRY_RUN, body=pod)


async def make_evictable(client: ApiWriter, namespace: str, worker: bytes) -> None:
    """Create another worker as one that drains for an eviction, under a budget that forbids to evict it.

    So every try is refused and changes nothing, by the webhook or without it by the budget. Raises
    LabError, and what `ApiReader` raises.
    """
    pod = msgspec.json.decode(worker)
    pod["metadata"]["name"] = EVICTED
    pod["metadata"]["annotations"] = {
        EVICTION_MARK: eviction.text(eviction.Eviction(released=False, at=time.time()))
    }
    spec = {"minAvailable": 1, "selector": {"matchLabels": pod["metadata"]["labels"]}}
    budget = {
        "apiVersion": "policy/v1",
        "kind": BUDGETS.kind,
        "metadata": {"name": "all"},
        "spec": spec,
    }
    await client.create_object(BUDGETS.path(namespace), body=budget)
    await client.create_object(PODS.path(namespace), body=pod)
    path, deadline = PODS.path(namespace, EVICTED), time.monotonic() + PATIENCE
    while b'"type":"Ready"' not in await client.get(path):
        if time.monotonic() > deadline:
            raise LabError(f"{EVICTED} is not Ready after {PATIENCE:.0f} s")
        await asyncio.sleep(POLL)


async def try_evict(client: ApiWriter, namespace: str) -> bytes:
    """Try to evict the worker, and return why it cannot be.

    Raises as `ApiReader` does, and LabError if it can.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": EVICTED, "namespace": namespace},
    }
    try:
        await client.create_object(
            PODS.path(namespace, EVICTED, "eviction"), body=body, limits=Timeouts(throttled=0.0)
        )
    except errors.Throttled as error:
        return str(error).encode()
    raise LabError("an eviction was allowed during a measurement of those that are not")


def _silent(pod: dict[str, Any]) -> dict[str, Any]:
    # Elastic, but without the name of the file: that name in the answer shows that the webhook was
    # asked.
    pod["spec"]["containers"][0]["command"] = [
        "horovodrun",
        "--host-discovery-script",
        "/hosts",
        "python",
        "train.py",
    ]
    return pod
