"""`resubmit`: create a finished job once more, under another name."""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import creation, snapshot
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.decide import suspend
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import MPI_JOBS

Object = dict[str, Any]
# Annotations that tell what became of a job, or stop it. Those that describe it are copied.
_OF_THE_RUN = frozenset(
    {
        names.STATUS,
        names.PHASE,
        names.CHANGE,
        names.SCALED_BY,
        names.SUSPEND,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
_NUMBERED = re.compile(r"(?P<base>.+)-(?P<number>[1-9][0-9]{0,8})")


async def resubmit(where: Where, job: str, *, name: str, asked: Creation) -> Exit:
    """Create a copy of a finished job.

    name: of the copy; "" for that of the job with the next number. Raises Refused for a job that
    has not ended, and the errors of `creation.create`.
    """
    async with reached(where) as (client, namespace):
        found = await snapshot.fetch_job(client, namespace, job)
        _refuse_unfinished(found)
        raw = await client.get(MPI_JOBS.path(found.view.namespace, job))
        others = await snapshot.jobs(client, Selection(namespace=namespace))
    taken = {other.metadata.name for other in others}
    chosen = name or next_name(job, taken)
    if names.gets_no_pod(chosen) or not names.is_object_name(chosen):
        raise Refused(f"the operator makes no pod for the name {chosen}; choose another by --name")
    size = suspend.size_before(found.view) if found.view.facts.is_at_zero else None
    body = copied(msgspec.json.decode(raw), chosen, size=size)
    return await creation.create(replace(where, namespace=found.view.namespace), body, asked)


def _refuse_unfinished(found: Snapshot) -> None:
    """Raise Refused unless a job has ended."""
    view = found.view
    if not view.facts.finished:
        raise Refused(
            f"{view.name} has not ended ({found.job.state}); `kubectl get mpijob {view.name} "
            f"-n {view.namespace} -o yaml` shows what it is made of"
        )


def next_name(job: str, taken: Collection[str]) -> str:
    """Return the name of a job with the next number that no other has: train, train-2, train-3."""
    found = _NUMBERED.fullmatch(job)
    base = found["base"] if found else job
    number = int(found["number"]) + 1 if found else 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def copied(job: Object, name: str, *, size: int | None = None) -> Object:
    """Return an MPIJob to create with the labels, annotations and the spec of another.

    size: of the copy; None for that of the other.
    """
    old, metadata = job["metadata"], dict[str, Any](name=name)
    annotations = {
        key: value
        for key, value in (old.get("annotations") or {}).items()
        if key not in _OF_THE_RUN
    }
    for key, pairs in (("labels", old.get("labels")), ("annotations", annotations)):
        if pairs:
            metadata[key] = pairs
    spec = job["spec"]
    if size is not None:
        roles = spec["mpiReplicaSpecs"]
        worker = {**roles["Worker"], "replicas": size}
        spec = {**spec, "mpiReplicaSpecs": {**roles, "Worker": worker}}
    head = {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind}
    return {**head, "metadata": metadata, "spec": spec}
