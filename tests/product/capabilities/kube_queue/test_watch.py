"""The QueueUnits that are watched."""

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND, QUEUE_UNITS
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.waiting import eventually
from tests.product.observe.cached import job_of, running, view_of


async def test_a_job_has_the_queue_unit_that_is_its_own(api: TinyApi, client: ApiWriter) -> None:
    units, held = QUEUE_UNITS.path(), {KUBEQUEUE_SUSPEND: "true", names.ENABLED: "true"}
    found = msgspec.json.decode(job_of("train"))
    found["metadata"]["annotations"] = held
    api.objects[MPI_JOBS.path(name="train")] = found
    await api.create(units, "train-mpi-qu", status={"phase": "Enqueued"})
    await api.update(units, "train-mpi-qu", metadata={"namespace": "n"})
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "train", "controller": True}
    async with running(client) as caches:
        assert view_of(caches).of(KubeQueue) == KubeQueue(known=False)  # the cluster serves none
    api.objects["/apis/scheduling.x-k8s.io/v1alpha1"] = {"resources": [{"name": "queueunits"}]}
    async with running(client) as caches:
        await eventually(
            lambda: view_of(caches).of(KubeQueue) == KubeQueue(rivals=("QueueUnit train-mpi-qu",))
        )
        await api.update(
            units,
            "train-mpi-qu",
            metadata={"ownerReferences": [{**owner, "uid": "of an earlier job"}]},
        )
        await eventually(lambda: view_of(caches).of(KubeQueue) == KubeQueue())
        mine = {**owner, "uid": found["metadata"]["uid"]}
        await api.update(units, "train-mpi-qu", metadata={"ownerReferences": [mine]})
        await eventually(lambda: (view_of(caches).of(KubeQueue) or KubeQueue()).unit is not None)
        await api.update(
            MPI_JOBS.path(), "train", metadata={"annotations": {KUBEQUEUE_SUSPEND: None}}
        )
        await eventually(lambda: (view_of(caches).of(KubeQueue) or KubeQueue()).unit is not None)
        await api.delete(units, "train-mpi-qu")
        await eventually(lambda: view_of(caches).of(KubeQueue) is None)
