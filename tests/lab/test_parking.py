"""Parked workers on a real API server: they leave, a placeholder keeps their place, and they come back."""

from collections.abc import Awaitable, Callable

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import PODS, RESOURCE_QUOTAS
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import HOROVODRUN, MPIRUN, Job, Object, State
from tests.lab.launchers import UNMUTATED, label, plain_pod, tried
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

SOON = {"mpijob-elastic/drain-timeout": "1s"}
ZERO = {"cpu": "0", "memory": "0"}


def asking(name: str, cpu: str) -> Object:
    """A container that asks for so much."""
    return {
        "name": name,
        "image": "horovod:test",
        "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}},
    }


def gates(state: State, pod: str) -> list[str]:
    """The gates of a worker."""
    spec = state.workers.get(pod, {}).get("spec", {})
    return [gate["name"] for gate in spec.get("schedulingGates", ())]


def trains(job: Job, *indices: int, parked: tuple[int, ...] = ()) -> Callable[[State], bool]:
    """Tell whether exactly these workers train, and placeholders hold the places of others."""
    pods, held = job.workers(*indices), job.workers(*parked)

    def holds(state: State) -> bool:
        waiting = [pod for pod in state.running if gates(state, pod) == ["mpijob-elastic/parked"]]
        return (
            sorted(state.workers) == sorted((*pods, *held))
            and sorted(waiting) == held
            and [names.pod_of(host.split(":")[0]) for host in state.hosts] == pods
            and [line.split(" ")[0] for line in state.hostfile] == pods
            and state.launcher_runs
        )

    return holds


async def refusal(request: Awaitable[object]) -> str:
    """The API server's words, "" if it does as asked."""
    try:
        await request
    except errors.ApiError as error:
        return error.message
    return ""


async def test_exactly_these_workers_leave_and_come_back(job: Job) -> None:
    await job.create(replicas=4, annotations=SOON)
    before = await job.settled(4)
    await job.annotate(parked="1,2")
    state = await job.until(trains(job, 0, 3, parked=(1, 2)), "two parked")

    for pod in job.workers(0, 3):
        assert state.workers[pod]["metadata"]["uid"] == before.workers[pod]["metadata"]["uid"]
    [container] = state.workers["train-worker-1"]["spec"]["containers"]
    assert container["resources"] == {"requests": ZERO, "limits": ZERO}
    assert "train-worker-1, train-worker-2 hold no resources" in (await job.at_rest()).notices
    assert state.launcher is not None
    assert before.launcher is not None
    assert state.launcher["metadata"]["uid"] == before.launcher["metadata"]["uid"]

    await job.annotate(parked="2")
    await job.until(trains(job, 0, 1, 3, parked=(2,)), "one back")
    await job.annotate(parked=None)
    await job.settled(4)
    assert (await job.at_rest()).notices == ""


@pytest.mark.thorough
async def test_a_job_starts_with_a_parked_worker_beside_a_quota(
    job: Job, client: ApiWriter
) -> None:
    """The quota asks every pod for cpu; a placeholder that named none would stop the job."""
    hard = {"requests.cpu": "3", "limits.cpu": "9"}
    quota = {"metadata": {"name": "team"}, "spec": {"hard": hard}}
    await client.create_object(RESOURCE_QUOTAS.path(job.namespace), body=quota)
    await job.create(
        replicas=3,
        annotations={**SOON, "mpijob-elastic/parked": "1"},
        worker_spec={"containers": [asking("worker", "1")]},
        launcher_spec={"containers": [{**asking("launcher", "100m"), "command": HOROVODRUN}]},
    )
    await job.until(trains(job, 0, 2, parked=(1,)), "its start")


@pytest.mark.thorough
async def test_what_is_above_the_size_and_of_a_finished_job_is_not_kept(job: Job) -> None:
    await job.create(replicas=3, annotations={**SOON, "mpijob-elastic/parked": "2"})
    await job.until(trains(job, 0, 1, parked=(2,)), "its start")
    await job.scale(2)
    await job.settled(2)
    await job.scale(3)
    await job.until(trains(job, 0, 1, parked=(2,)), "a placeholder again")
    await job.set_status("train-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: not state.workers, "nothing left")


@pytest.mark.thorough
async def test_a_webhook_that_was_away_and_a_killed_controller_change_nothing(
    job: Job, client: ApiWriter, cluster: Cluster, installed: Installed, elastic: Controller
) -> None:
    await job.create(replicas=3, annotations=SOON)
    before = await job.settled(3)
    await label(client, job.namespace, UNMUTATED)
    await job.annotate(parked="1")
    state = await job.replaced(before, "train-worker-1")
    assert gates(state, "train-worker-1") == []
    elastic.kill()
    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    with Controller.start(cluster, installed):
        await job.until(trains(job, 0, 2, parked=(1,)), "one parked")


async def test_a_quota_of_pods_that_ask_for_nothing_stops_no_job(
    job: Job, client: ApiWriter
) -> None:
    """Placeholders were such pods: the quota refused them, and the operator made nothing of the job."""
    quota = {
        "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]},
    }
    await client.create_object(RESOURCE_QUOTAS.path(job.namespace), body=quota)

    async def refused() -> str:
        return await refusal(tried(client, PODS, job.namespace, plain_pod(9)))

    await seen(refused, lambda words: "exceeded quota: none" in words, "the quota at work")
    await job.create(
        replicas=3,
        annotations={**SOON, "mpijob-elastic/parked": "1"},
        worker_spec={"containers": [asking("worker", "1")]},
        launcher_spec={"containers": [{**asking("launcher", "100m"), "command": HOROVODRUN}]},
    )
    state = await job.until(trains(job, 0, 2, parked=(1,)), "its start")
    [container] = state.workers["train-worker-1"]["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "0", "memory": "1"}


async def test_an_edit_to_a_plain_command_waits_for_the_next_launcher(
    job: Job, client: ApiWriter
) -> None:
    await job.create(replicas=3, annotations={**SOON, "mpijob-elastic/parked": "1"})
    await job.until(trains(job, 0, 2, parked=(1,)), "its start")
    plain = {"name": "launcher", "image": "horovod:test", "command": MPIRUN}
    template = {"spec": {"containers": [plain]}}
    await job.patch({"spec": {"mpiReplicaSpecs": {"Launcher": {"template": template}}}})
    state = await job.until(lambda found: "StillElastic: " in found.notices, "the notice")
    assert trains(job, 0, 2, parked=(1,))(state)
    before = state.workers["train-worker-1"]["metadata"]["uid"]
    await client.delete_object(PODS.path(job.namespace, "train-worker-1"))
    state = await job.until(
        lambda found: (
            trains(job, 0, 2, parked=(1,))(found)
            and found.workers["train-worker-1"]["metadata"]["uid"] != before
        ),
        "another placeholder",
    )
    await job.annotate(enabled="false")
    await job.until(lambda found: not gates(found, "train-worker-1"), "a worker in its place")


async def test_too_few_are_refused_with_the_bound(job: Job) -> None:
    await job.create(replicas=2, annotations={**SOON, "mpijob-elastic/min-replicas": "2"})
    with pytest.raises(
        errors.KubeError, match=r"leaves 1 of 2 workers, below mpijob-elastic/min-replicas \(2\)"
    ):
        await job.annotate(parked="1")
