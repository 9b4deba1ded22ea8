"""Whether the API server calls the webhook, by a job that only the webhook refuses."""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

_DRY_RUN = {"dryRun": "All"}
# A name that nobody gives to a job of their own.
NAME = "mpijob-elastic-question"
# How often the webhook is asked: the API server goes on without an answer of 2 s, as if there were
# no webhook, and a busy webhook answers the second time.
_TRIES = 2
# What the API server says where our webhook refuses an object: the end of the webhook's name. The
# webhooks of others refuse objects, too, and a call that fails names ours without an answer.
_OUR_REFUSAL = f'.webhook.{names.PROGRAM}" denied the request'


async def is_answered(client: ApiWriter, namespace: str) -> bool:
    """Return True if the webhook answers for jobs of this namespace; it is asked twice.

    The webhook refuses a bad job, and a dry run stores nothing. Raises `errors.KubeError` if the
    question itself is refused, for example because this account may not create MPIJobs, or because
    the webhook of another program refuses the job.
    """
    for _ in range(_TRIES):
        try:
            await client.create_object(MPI_JOBS.path(namespace), query=_DRY_RUN, body=_bad_job())
        except errors.ApiError as error:
            if not is_our_refusal(error):
                raise
            return True
    return False


async def refuses_edit(client: ApiWriter, namespace: str, job: str, key: str) -> bool:
    """Return True if the webhook refuses a bad value of an annotation of a job.

    A dry run stores nothing, and needs no right but to patch the job. Raises `errors.KubeError` if
    the question itself is refused, or without such a job.
    """
    path, body = MPI_JOBS.path(namespace, job), {"metadata": {"annotations": {key: "?"}}}
    try:
        await client.patch_object(path, body=body, content_type=MERGE_PATCH, query=_DRY_RUN)
    except errors.ApiError as error:
        if not is_our_refusal(error):
            raise
        return True
    return False


def is_our_refusal(error: errors.ApiError) -> bool:
    """Return True if our webhook has refused an object."""
    return _OUR_REFUSAL in error.message


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
