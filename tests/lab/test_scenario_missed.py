"""The webhook, the controller or the ConfigMap was not there in time."""

import asyncio

import pytest

from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.job import HOLD, Job, State
from tests.lab.launchers import UNMUTATED, label

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator")]


def mounted(state: State, key: str = "discover_hosts.sh") -> bool:
    """Tell whether the launcher has our item."""
    volumes = state.launcher["spec"]["volumes"] if state.launcher else []
    items = [item for volume in volumes for item in volume.get("configMap", {}).get("items", [])]
    return any(item["key"] == key for item in items)


@pytest.mark.usefixtures("elastic")
async def test_a_running_job_from_before_us_is_told_and_loses_nothing(
    job: Job, client: ApiWriter
) -> None:
    await label(client, job.namespace, UNMUTATED)
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "0s"})
    await job.until(lambda state: "LauncherWithoutDiscovery" in state.notices, "the user is told")
    await job.told("LauncherWithoutDiscovery")
    told = await times_told(job, "LauncherWithoutDiscovery")
    await job.scale(1)
    await job.until(lambda state: len(state.hosts) == 1, "the file is true all the same")
    await asyncio.sleep(2)
    assert await times_told(job, "LauncherWithoutDiscovery") == told
    assert len((await job.state()).running) == 3
    for pod in job.workers(1, 2):
        await client.delete_object(resources.PODS.path(job.namespace, pod))
    await job.until(
        lambda state: len(state.workers) == 1, "surplus that the user deletes is not made again"
    )


@pytest.mark.usefixtures("elastic")
async def test_the_operators_config_map_is_made_anew(job: Job, client: ApiWriter) -> None:
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "1s"})
    await job.settled(3)
    await client.delete_object(resources.CONFIG_MAPS.path(job.namespace, f"{job.name}-config"))
    await job.scale(2)
    await job.settled(2)


@pytest.mark.usefixtures("elastic")
@pytest.mark.thorough
async def test_a_launcher_created_while_the_webhook_was_away_is_made_anew_before_it_starts(
    job: Job, client: ApiWriter
) -> None:
    await label(client, job.namespace, UNMUTATED)
    await job.create(
        replicas=2, launcher_annotations={HOLD: "yes"}, worker_annotations={HOLD: "yes"}
    )
    state = await job.until(
        lambda state: len(state.workers) == 2 and state.launcher is not None, "the pods"
    )
    assert not mounted(state)
    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    await job.until(mounted, "a launcher that sees the host list")
    for pod in (*job.workers(0, 1), f"{job.name}-launcher"):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(2)


@pytest.mark.usefixtures("elastic")
async def test_a_launcher_without_its_driver_is_made_anew_before_it_starts(
    job: Job, client: ApiWriter
) -> None:
    await label(client, job.namespace, UNMUTATED)
    await job.create(
        replicas=2,
        command=["/etc/mpi/elastic.sh", "--", "mpirun", "./train"],
        launcher_annotations={HOLD: "yes"},
        worker_annotations={HOLD: "yes"},
    )
    state = await job.until(lambda state: state.launcher is not None, "the launcher")
    assert not mounted(state)
    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    await job.until(lambda state: mounted(state, "elastic.sh"), "a launcher with its driver")


async def times_told(job: Job, reason: str) -> int:
    """Return the number of our Events with this reason."""
    return [each for each, _ in await job.events()].count(reason)


@pytest.mark.usefixtures("elastic")
async def test_a_hand_edit_of_the_script_is_mended(job: Job, client: ApiWriter) -> None:
    await job.create(replicas=2)
    await job.settled(2)
    body = {"data": {"discover_hosts.sh": "#!/bin/sh\nrm -rf /\n"}}
    path = resources.CONFIG_MAPS.path(job.namespace, f"{job.name}-config")
    await client.patch_object(path, body=body, content_type=MERGE_PATCH)
    await job.settled(2)


@pytest.mark.usefixtures("elastic")
async def test_a_bad_annotation_that_admission_missed_is_told_and_its_default_holds(
    job: Job, client: ApiWriter
) -> None:
    await label(client, job.namespace, UNMUTATED)
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "soon"})
    state = await job.until(lambda state: "InvalidAnnotation" in state.notices, "the user is told")
    assert 'metadata.annotations[mpijob-elastic/drain-timeout]: "soon"' in state.notices
