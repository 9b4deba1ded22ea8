"""Read every MPIJob of the cluster with its pods and its ConfigMap."""

from mpijob_elastic import names
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import facts_config, facts_pod, views


async def views_of_all(client: ApiReader) -> list[JobView]:
    """Return a view of each job, sorted by namespace and name; Roles are left out. Raises `errors.KubeError`."""
    jobs = await list_objects(client, MPI_JOBS.path(), job_facts.read)
    return views.each(
        sorted(jobs, key=lambda job: (job.metadata.namespace, job.metadata.name)),
        pods=await list_objects(client, PODS.path(), facts_pod.read, selector=names.POD_SELECTOR),
        configs=await list_objects(client, CONFIG_MAPS.path(), facts_config.read_config, selector=names.LABEL_APP),
    )
