"""The view of a job read live, just before a deletion: no cache is fresh enough for that."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import envelopes, resources
from mpijob_elastic.kube.meta import check_cost
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.model.job import ConfigFacts, JobView
from mpijob_elastic.model.json_parts import owned
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import facts_config, facts_pod, views

Judge = Callable[[Iterable[PodFacts]], list[PodFacts]]
# https://kubernetes.io/docs/reference/using-api/api-concepts/#semantics-for-get-and-list
_NOT_OLDER = {"resourceVersionMatch": "NotOlderThan"}
# The reason in the view why a pod cannot be read; only the caches tell users more.
_UNREAD = "it cannot be read"


async def view(
    client: ApiReader,
    *,
    namespace: str,
    job: str,
    read: views.Read,
    probes: views.Probes = views.never_asked,
    acknowledged: views.Acknowledged = views.never_acknowledged,
    judge: Judge = list,
    pods_since: str = "",
) -> JobView | None:
    """Return the job's view as the API server has its objects now; None if the job is gone.

    judge: marks the pods that go with their nodes. pods_since: pods as of this resourceVersion are
    new enough, and come sooner. The view has no Role, because no deletion depends on it.
    """
    unread: list[bytes] = []

    def read_pod(raw: bytes) -> PodFacts:
        try:
            return read.pod(raw)
        except Exception:
            unread.append(raw)
            raise

    selector = f"{names.POD_SELECTOR},{names.LABEL_JOB_NAME}={job}"
    query = {"resourceVersion": pods_since, **_NOT_OLDER} if pods_since else {}
    raw_job, raw_config, pods = await asyncio.gather(
        client.find(resources.MPI_JOBS.path(namespace, job)),
        client.find(resources.CONFIG_MAPS.path(namespace, names.config_map(job))),
        list_objects(
            client, resources.PODS.path(namespace), read_pod, selector=selector, query=query
        ),
    )
    if raw_job is None:
        return None
    found = views.view(
        read.job(raw_job),
        pods=judge(pods),
        config=_config(raw_config),
        probes=probes,
        acknowledged=acknowledged,
    )
    if not unread:
        return found
    hidden = await _hidden(found, unread)
    return replace(found, unread={f"Pod {pod}": _UNREAD for pod in hidden}, hidden=hidden)


def _config(raw: bytes | None) -> ConfigFacts | None:
    """Return the ConfigMap; None if it is missing or cannot be read, as in the caches."""
    if raw is None:
        return None
    try:
        check_cost(raw)
        return facts_config.read_config(raw)
    except msgspec.DecodeError:
        return None


async def _hidden(job: JobView, unread: Iterable[bytes]) -> Mapping[str, PodFacts]:
    """Return what is certain of the pods of a job that cannot be read, by name."""
    found = {}
    for raw in unread:
        metadata = owned(await envelopes.read_identity(raw))
        if metadata.job_uid == job.ref.uid:
            found[metadata.name] = facts_pod.read_part(metadata, raw)
    return found
