"""Read every MPIJob of the cluster with its pods and its ConfigMap."""

from __future__ import annotations

from collections import defaultdict

from mpijob_elastic import names
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model.job import JobView, Probe
from mpijob_elastic.observe import facts_config, facts_job, facts_pod, views
from mpijob_elastic.observe.facts_pod import PodFacts


async def views_of_all(client: ApiReader) -> list[JobView]:
    """Return a view of each job without its Role, sorted by namespace and name. Raises `errors.KubeError`."""
    jobs = await list_objects(client, MPI_JOBS.path(), facts_job.read)
    pods: dict[tuple[str, str], list[PodFacts]] = defaultdict(list)
    for pod in await list_objects(client, PODS.path(), facts_pod.read, selector=names.POD_SELECTOR):
        pods[pod.metadata.namespace, pod.metadata.job].append(pod)
    found = await list_objects(client, CONFIG_MAPS.path(), facts_config.read_config, selector=names.LABEL_APP)
    configs = {(one.metadata.namespace, one.metadata.name): one for one in found}
    return [
        views.view(
            job,
            pods=pods[job.metadata.namespace, job.metadata.name],
            config=configs.get((job.metadata.namespace, names.config_map(job.metadata.name))),
            role=None,
            probes=never_asked,
        )
        for job in sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name))
    ]


def never_asked(_uid: str, _occasion: str) -> Probe:
    """Return an empty probe: only the controller that probed by exec knows the result."""
    return Probe()
