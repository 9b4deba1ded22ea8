"""The PodGroups that the controller knows of a job: those of the version that the cluster serves."""

import asyncio

import msgspec
import pytest

from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs.facts import (
    KUBERNETES_POD_GROUPS,
    KUBERNETES_POD_GROUPS_OF_1_36,
)
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.waiting import PATIENCE
from tests.product.observe.cached import job_of, running, view_of


@pytest.mark.parametrize(
    "served", [KUBERNETES_POD_GROUPS, KUBERNETES_POD_GROUPS_OF_1_36, None], ids=str
)
async def test_it_makes_pod_groups_of_the_version_that_is_served(
    api: TinyApi, client: ApiWriter, served: Resource | None
) -> None:
    if served:
        api.objects[f"/apis/{served.api_version}"] = {"resources": [{"name": "podgroups"}]}
        owner = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "name": "train", "uid": "job"}
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        metadata = {"ownerReferences": [{**owner, "controller": True}]}
        await api.create(served.path("n"), "train", metadata=metadata, spec=spec)
    api.put(
        MPI_JOBS.path("n", "train"), msgspec.json.decode(job_of("train", {"gang": "kubernetes"}))
    )
    async with running(client) as caches, asyncio.timeout(PATIENCE):
        while (gangs := view_of(caches).of(Gangs)) is None or gangs.serves is None:
            await asyncio.sleep(0.01)
    assert gangs.serves is bool(served)
    assert gangs.resource == (served or KUBERNETES_POD_GROUPS)
    assert (gangs.group and gangs.group.min_member) == (3 if served else None)
