"""`resubmit`: create a finished job once more, under another name."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import creation, snapshot
from mpijob_elastic.cli.jobs.creation import Creation
from mpijob_elastic.cli.jobs.snapshot import Selection, Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.decide import suspend
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.job import JobView

Object = dict[str, Any]
# Annotations that tell what became of a job, stop it, or name single workers of it. Those that
# describe the job are copied.
_OF_THE_RUN = frozenset(
    {
        names.STATUS,
        names.PHASE,
        names.CHANGE,
        names.SCALED_BY,
        names.SUSPEND,
        names.PARKED,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)
# Labels and annotations by which a tool knows what it may change and delete. The tool does not know
# the copy: Argo CD, for example, would delete it. The second are beginnings of such keys.
# https://helm.sh/docs/chart_best_practices/labels
# https://argo-cd.readthedocs.io/en/stable/user-guide/resource_tracking
# https://fluxcd.io/flux/components/kustomize/kustomizations
# https://carvel.dev/kapp/docs/latest/apply
_OF_AN_OWNER = frozenset(
    {
        names.LABEL_MANAGED_BY,
        "app.kubernetes.io/instance",
        "config.k8s.io/owning-inventory",
    }
)
_OF_OWNERS = (
    "meta.helm.sh/",
    "argocd.argoproj.io/",
    "kustomize.toolkit.fluxcd.io/",
    "helm.toolkit.fluxcd.io/",
    "kapp.k14s.io/",
)
# KubeQueue's annotation of a job that it let go, and of one that waits for it.
_RELEASED, _WAITING = "false", "true"
_RUN_POLICY, _SUSPEND = "runPolicy", "suspend"
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
    body = copied(msgspec.json.decode(raw), chosen, size=_size(found.view))
    return await creation.create(replace(where, namespace=found.view.namespace), body, asked)


def _refuse_unfinished(found: Snapshot) -> None:
    """Raise Refused unless a job has ended."""
    view = found.view
    if not view.facts.finished:
        raise Refused(
            f"{view.name} has not ended ({found.job.state}); `kubectl get mpijob {view.name} "
            f"-n {view.namespace} -o yaml` shows what it is made of"
        )


def _size(view: JobView) -> int | None:
    """Return the size of a copy where it is not that of the other, which is None.

    A copy has no parked workers, so those do not count; if all are parked, they do.
    """
    facts = view.facts
    if facts.is_at_zero:
        return suspend.size_before(view)
    if not (facts.skips and facts.size_known):
        return None
    return facts.workers or None


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
    metadata = dict[str, Any](name=name)
    for key in ("labels", "annotations"):
        if pairs := _marks(job["metadata"].get(key) or {}):
            metadata[key] = pairs
    spec = job["spec"]
    if _SUSPEND in (spec.get(_RUN_POLICY) or {}):
        running = {key: value for key, value in spec[_RUN_POLICY].items() if key != _SUSPEND}
        spec = {**spec, _RUN_POLICY: running}
    if size is not None:
        roles = spec["mpiReplicaSpecs"]
        worker = {**roles["Worker"], "replicas": size}
        spec = {**spec, "mpiReplicaSpecs": {**roles, "Worker": worker}}
    head = {"apiVersion": MPI_JOBS.api_version, "kind": MPI_JOBS.kind}
    return {**head, "metadata": metadata, "spec": spec}


def _marks(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the labels or annotations of a copy: those that describe the job."""
    kept = {key: value for key, value in pairs.items() if _describes(key)}
    if kept.get(capabilities.KUBEQUEUE_SUSPEND) == _RELEASED:
        kept[capabilities.KUBEQUEUE_SUSPEND] = _WAITING
    return kept


def _describes(key: str) -> bool:
    """Tell whether a label or an annotation describes the job, whatever became of it."""
    return not (key in _OF_THE_RUN or key in _OF_AN_OWNER or key.startswith(_OF_OWNERS))
