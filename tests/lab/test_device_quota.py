"""A ResourceQuota for the devices of a class, beside the real scheduler, and what an edit says of it."""

import msgspec
import pytest

from lab.cluster import Cluster
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic.kube.resources import EVENTS, RESOURCE_QUOTAS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job, Object
from tests.lab.pools import POOL, make_nodes, remove_nodes
from tests.lab.scalable import told
from tests.lab.waiting import seen

pytestmark = [
    pytest.mark.lab,
    pytest.mark.usefixtures("elastic", "operator"),
    pytest.mark.skipif(
        DEFAULT_KUBERNETES.minor < 36,
        reason="Kubernetes 1.36 and newer serve extended resources by DRA",
    ),
]
CLASSES = Resource(
    group="resource.k8s.io", version="v1", plural="deviceclasses", kind="DeviceClass"
)
SLICES = Resource(
    group="resource.k8s.io", version="v1", plural="resourceslices", kind="ResourceSlice"
)
NAME, DRIVER = "gpu.lab.example.com", "lab.example.com"
KEY = f"{NAME}.deviceclass.resource.k8s.io/devices"


async def make_devices(client: ApiWriter, node: str) -> None:
    """Give a node two devices, and the cluster a class of them."""
    chosen = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await client.create_object(
        CLASSES.path(), body={"metadata": {"name": NAME}, "spec": {"selectors": [chosen]}}
    )
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"device-{index}"} for index in range(2)]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    await client.create_object(SLICES.path(), body={"metadata": {"name": node}, "spec": spec})


async def remove_devices(client: ApiWriter, node: str) -> None:
    await client.delete_object(CLASSES.path(None, NAME))
    await client.delete_object(SLICES.path(None, node))


async def quota(job: Job, hard: Object) -> None:
    """Limit the job's namespace, and wait until the quota counts."""
    path = RESOURCE_QUOTAS.path(job.namespace)
    await job.client.create_object(
        path, body={"metadata": {"name": "team"}, "spec": {"hard": hard}}
    )

    async def found() -> Object:
        raw = await job.client.get(RESOURCE_QUOTAS.path(job.namespace, "team"))
        status: Object = msgspec.json.decode(raw).get("status", {})
        return status

    await seen(found, lambda status: status.get("hard") == hard, "the quota counts")


@pytest.mark.usefixtures("scale_served")
async def test_a_worker_beyond_it_is_made_and_finds_no_node(
    job: Job, client: ApiWriter, cluster: Cluster
) -> None:
    pool = f"devices-{job.namespace}"
    await make_nodes(client, pool)
    await make_devices(client, f"{pool}-0")
    limits = {f"deviceclass.resource.kubernetes.io/{NAME}": "1"}
    worker = {"name": "worker", "image": "horovod:test", "resources": {"limits": limits}}
    try:
        await quota(job, {KEY: "1"})
        await job.create(
            replicas=1, worker_spec={"nodeSelector": {POOL: pool}, "containers": [worker]}
        )
        await job.settled(1)
        target = (f"mpijob/{job.name}", "-n", job.namespace)
        _, said = told(cluster, "scale", *target, "--replicas=2")
        assert (
            f"ResourceQuota team has 0 {KEY} left, and 1 more worker needs 1: it will not be scheduled"
            in said
        )

        async def events() -> str:
            raw = await client.get(EVENTS.path(job.namespace))
            return " ".join(one["message"] for one in msgspec.json.decode(raw)["items"])

        await seen(events, lambda text: "exceeded quota: team" in text, "the scheduler is refused")
        state = await job.state()
        pods = {name: pod["spec"].get("nodeName") for name, pod in state.workers.items()}
        assert pods == dict(zip(job.workers(0, 1), (f"{pool}-0", None), strict=True))
    finally:
        await job.delete()
        await remove_devices(client, f"{pool}-0")
        await remove_nodes(client, pool)
