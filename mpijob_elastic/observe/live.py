"""The view of a job read live, just before a deletion: no cache is fresh enough for that."""

import asyncio
from collections.abc import Callable, Iterable

from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import facts_config, views

Judge = Callable[[Iterable[PodFacts]], list[PodFacts]]


async def view(
    client: ApiReader,
    *,
    namespace: str,
    job: str,
    read: views.Read,
    probes: views.Probes = views.never_asked,
    judge: Judge = list,
) -> JobView | None:
    """Return the job's view as the API server has its objects now; None if the job is gone.

    judge: marks the pods that go with their nodes. The view has no Role, because no deletion
    depends on it.
    """
    selector = f"{names.POD_SELECTOR},{names.LABEL_JOB_NAME}={job}"
    try:
        raw_job, raw_config, pods = await asyncio.gather(
            client.get(resources.MPI_JOBS.path(namespace, job)),
            client.get(resources.CONFIG_MAPS.path(namespace, names.config_map(job))),
            list_objects(client, resources.PODS.path(namespace), read.pod, selector=selector),
        )
    except errors.NotFound:
        return None
    return views.view(
        read.job(raw_job),
        pods=judge(pods),
        config=facts_config.read_config(raw_config),
        probes=probes,
    )
