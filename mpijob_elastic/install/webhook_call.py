"""Whether the API server calls the webhook, by a job that only the webhook refuses."""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter

_DRY_RUN = {"dryRun": "All"}
# A name that nobody gives to a job of their own.
NAME = "mpijob-elastic-question"


async def is_answered(client: ApiWriter, namespace: str) -> bool:
    """Return True if the webhook answers for jobs of this namespace.

    The webhook refuses a bad job, and a dry run stores nothing. Raises `errors.KubeError` if the
    question itself is refused, for example because this account may not create MPIJobs.
    """
    try:
        await client.create_object(MPI_JOBS.path(namespace), query=_DRY_RUN, body=_bad_job())
    except errors.ApiError as error:
        if "admission webhook" not in error.message:
            raise
        return True
    return False


def _bad_job() -> dict[str, Any]:
    reads = {"name": "HOSTS", "value": names.DISCOVER_HOSTS_PATH}
    container = {"name": "question", "image": "none", "command": ["true"], "env": [reads]}
    replicas = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": MPI_JOBS.api_version,
        "kind": MPI_JOBS.kind,
        "metadata": {"name": NAME, "annotations": {names.MIN_REPLICAS: "none"}},
        "spec": {"mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas}},
    }
