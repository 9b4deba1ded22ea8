"""The API server takes the names and amounts that `submit` takes, and no others."""

import pytest

from lab.operator.objects import Object, mpi_job
from mpijob_elastic.cli.jobs import submit
from mpijob_elastic.cli.jobs.pod_fields import PodWords
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.test_webhook_admission import ensure_service_accounts

pytestmark = pytest.mark.lab

NAMES = (
    *("train", "t", "1", "train-1", "x--y", "a.b-c.d", "a" * 63),
    *("Train_1", "train_1", "TRAIN", "train-", ".train", "my train", "a..b", "a.-b", "ä", ""),
)
CPUS = ("4", "0.5", "500m", ".5", "1e1", "+1", "0", "4x", "1 core", "1.2.3", "-1", "4M5")
MEMORIES = ("8Gi", "8G", "8e9", "1.5Gi", "8GB", "8gi", "1,5Gi", "8 Gi", "8K", "8k", "1e9i")
DEVICES = ("1", "1k", "0", "2.0", "0.5", "500m", "1x", "-2")
# The statuses of an answer to an object that the API server does not take.
REFUSED = (400, 422)
RESTARTS = ("Never", "OnFailure", "Always", "never", "ExitCode", "Sometimes")


async def is_taken(client: ApiWriter, path: str, body: Object) -> bool:
    """Tell whether the API server would create an object."""
    try:
        await client.create_object(path, body=body, query={"dryRun": "All"})
    except errors.ApiError as error:
        if error.status not in REFUSED:
            raise
        return False
    return True


def is_typed(**words: object) -> bool:
    """Tell whether `submit` takes these words."""
    given = {"name": "train", "image": "horovod:1", "command": ["true"], "env": {}, "data": {}}
    try:
        submit.check(submit.Words(**{**given, **words}))  # type: ignore[arg-type]
    except Refused:
        return False
    return True


async def test_of_names(client: ApiWriter, namespace: str) -> None:
    for name in NAMES:
        body = mpi_job(name=name, namespace=namespace)
        del body["metadata"]["uid"]
        assert (name, await is_taken(client, MPI_JOBS.path(namespace), body)) == (
            name,
            is_typed(name=name),
        )


async def test_of_amounts(client: ApiWriter, namespace: str) -> None:
    await ensure_service_accounts(client, namespace)
    typed = {
        **{("cpu", text): is_typed(cpu=text) for text in CPUS},
        **{("memory", text): is_typed(memory=text) for text in MEMORIES},
        **{
            ("amd.com/gpu", text): is_typed(pods=PodWords(devices={"amd.com/gpu": text}))
            for text in DEVICES
        },
    }
    taken = {
        (resource, text): await is_taken(
            client, PODS.path(namespace), pod({"limits": {resource: text}})
        )
        for resource, text in typed
    }
    assert taken == typed


async def test_of_restart_policies(client: ApiWriter, namespace: str) -> None:
    await ensure_service_accounts(client, namespace)
    path = PODS.path(namespace)
    taken = [one for one in RESTARTS if await is_taken(client, path, pod({}, restartPolicy=one))]
    assert taken == ["Never", "OnFailure", "Always"]


def pod(resources: Object, **spec: str) -> Object:
    container = {"name": "main", "image": "horovod:test", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train"},
        "spec": {"containers": [container], **spec},
    }
