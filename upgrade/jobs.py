"""Read every MPIJob of the cluster with its pods and its ConfigMap."""

from mpijob_elastic import names
from mpijob_elastic.kube import wire
from mpijob_elastic.kube.list import list_objects
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS
from mpijob_elastic.model import job_facts, mpijob, operator_types
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.observe import facts_config, facts_pod, views
from mpijob_elastic.observe.facts_config import ConfigFacts
from mpijob_elastic.observe.facts_pod import PodFacts


async def read_all(client: ApiReader) -> tuple[list[MPIJob], list[ConfigFacts], list[PodFacts]]:
    """Return all MPIJobs, and the ConfigMaps and pods of jobs. Raises `errors.KubeError`."""
    return (
        await list_objects(client, MPI_JOBS.path(), mpijob.decode),
        await list_objects(client, CONFIG_MAPS.path(), facts_config.read_config, selector=names.LABEL_APP),
        await list_objects(client, PODS.path(), facts_pod.read, selector=names.POD_SELECTOR),
    )


async def faults_of_all(client: ApiReader) -> list[str]:
    """Return the first fault of each job that stops mpi-operator v0.2.3 for all jobs. Raises `errors.KubeError`."""

    def read(raw: bytes) -> str:
        job, (faults, _) = wire.read_stub(raw).metadata, operator_types.judge(raw)
        return f"{job.namespace}/{job.name}: {faults[0]}" if faults else ""

    return [fault for fault in await list_objects(client, MPI_JOBS.path(), read) if fault]


async def views_of_all(client: ApiReader) -> list[JobView]:
    """Return a view of each job, sorted by namespace and name; Roles are left out. Raises `errors.KubeError`."""
    jobs, configs, pods = await read_all(client)
    jobs.sort(key=lambda job: (job.metadata.namespace, job.metadata.name))
    return views.each(map(job_facts.of, jobs), pods=pods, configs=configs)
