"""Parked workers where the scale subresource is served: who scales, and PodDisruptionBudgets, which read it."""

import json

import pytest

from mpijob_elastic import names
from mpijob_elastic.kube.resources import BUDGETS, MPI_JOBS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import Job, Object
from tests.lab.test_parking import SOON, refusal, trains
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "elastic", "operator")]


async def test_a_scale_that_leaves_nobody_is_refused(job: Job, client: ApiWriter) -> None:
    async def scaled(replicas: int) -> str:
        path = MPI_JOBS.path(job.namespace, job.name, "scale")
        body = {"spec": {"replicas": replicas}}
        return await refusal(client.patch_object(path, body=body, content_type=MERGE_PATCH))

    await job.create(replicas=4, annotations={**SOON, "mpijob-elastic/parked": "0,1"})
    await job.until(trains(job, 2, 3, parked=(0, 1)), "its start")
    assert "leaves 0 of 2 workers, below the smallest size (1)" in await scaled(2)
    assert await scaled(3) == ""
    await job.until(trains(job, 2, parked=(0, 1)), "one worker")


async def test_a_budget_with_a_number_lets_pods_go_beside_a_parked_worker(
    job: Job, client: ApiWriter
) -> None:
    """With maxUnavailable it counts the placeholder as unavailable, and refuses every eviction."""
    await job.create(replicas=4, annotations={**SOON, "mpijob-elastic/parked": "1"})
    await job.until(trains(job, 0, 2, 3, parked=(1,)), "its start")
    labels = {names.LABEL_JOB_NAME: job.name, names.LABEL_JOB_ROLE: names.ROLE_WORKER}
    path = BUDGETS.path(job.namespace, "team")
    spec = {"selector": {"matchLabels": labels}, "maxUnavailable": 1}
    made = {"metadata": {"name": "team"}, "spec": spec}
    await client.create_object(BUDGETS.path(job.namespace), body=made)

    async def status() -> Object:
        found: Object = json.loads(await client.get(path)).get("status", {})
        return found

    counted = await seen(
        status, lambda found: found.get("expectedPods") == 4, "a count of the budget"
    )
    assert counted["currentHealthy"] == 3
    assert counted["disruptionsAllowed"] == 0
    number = {"spec": {"maxUnavailable": None, "minAvailable": 2}}
    await client.patch_object(path, body=number, content_type=MERGE_PATCH)
    await seen(status, lambda found: found.get("disruptionsAllowed") == 1, "room for one")
