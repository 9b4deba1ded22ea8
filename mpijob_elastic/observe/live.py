"""The same view read live, for the moment before something is deleted: no cache, however fresh, is proof enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import facts_config, facts_job, facts_pod, views
from mpijob_elastic.observe.facts_pod import PodFacts

Judge = Callable[[Iterable[PodFacts]], list[PodFacts]]


class _List(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]


_lists = msgspec.json.Decoder(_List)


async def view(
    client: ApiReader, *, namespace: str, job: str, probes: views.Probes, judge: Judge = list
) -> JobView | None:
    """The job, its pods and its ConfigMap as the API server has them now (three reads); None where the job is gone.

    judge: says of pods which go with their nodes (see `nodes`). The Role is left out, for nothing that is deleted
    depends on it.
    """
    selector = {"labelSelector": f"{names.POD_SELECTOR},{names.LABEL_JOB_NAME}={job}"}
    try:
        raw_job, raw_config, raw_pods = await asyncio.gather(
            client.get(resources.MPI_JOBS.path(namespace, job)),
            client.get(resources.CONFIG_MAPS.path(namespace, names.config_map(job))),
            client.get(resources.PODS.path(namespace), query=selector),
        )
    except errors.NotFound:
        return None
    return views.view(
        facts_job.read(raw_job),
        pods=judge(facts_pod.read(raw) for raw in _lists.decode(raw_pods).items),
        config=facts_config.read_config(raw_config),
        role=None,
        probes=probes,
    )
