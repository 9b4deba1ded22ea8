"""The whole path on a real API server: a user types, and the job changes."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from lab.cluster import Cluster
from lab.demo.job import editor
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.history import recorded
from tests.lab.job import LINGERS, MPIRUN, Job, State
from tests.lab.ranks import in_pod, start_rank
from tests.lab.waiting import create_namespace, seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

QUICK = {"mpijob-elastic/drain-timeout": "1s"}
# What is said of a worker that was deleted.
DELETED = ("SurplusDeleted", "DrainTimeout")


def edit(cluster: Cluster, job: Job, replicas: int) -> None:
    """`kubectl edit`, with an editor that changes the one number."""
    cluster.kubectl("-n", job.namespace, "edit", "mpijob", job.name, editor=editor(replicas))


async def test_two_three_one_three(job: Job, cluster: Cluster) -> None:
    await job.create(replicas=2)
    await job.settled(2)
    for replicas in (3, 1, 3):
        await asyncio.to_thread(edit, cluster, job, replicas)
        await job.settled(replicas)
    for reason in ("ExecAllowed", "HostsPublished", "Draining"):
        await job.told(reason)
    await job.told("SurplusDeleted", times=2)
    assert [reason for reason, _ in await job.events()].count("SurplusDeleted") == 2


async def test_a_drain_ends_when_the_rank_has_gone(job: Job, cluster: Cluster) -> None:
    """The rank is a real process in the pod's own process namespace, started as kubexec.sh does it."""
    assert cluster.exec_offered
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1h"})
    before = change(await job.settled(2))
    pod = job.workers(1)[0]
    rank = await asyncio.to_thread(start_rank, cluster, job, pod)
    await job.scale(1)
    await job.until(
        lambda state: state.hosts == [f"{job.workers(0)[0]}:1"], "worker-1 left the list"
    )
    shown = change(
        await job.until(lambda state: change(state) != before, "the launcher was touched")
    )
    state = await job.until(
        lambda state: change(state) not in (before, shown), "Horovod's driver was reminded"
    )
    await job.told("HostListRepeated", pod)
    assert pod in state.running
    await asyncio.to_thread(in_pod, cluster, job, pod, f"kill {rank}")
    await job.settled(1)
    await job.told("SurplusDeleted", "drained after")


def change(state: State) -> str:
    """The change for which the launcher was touched last, and when first."""
    return (state.refreshed or "").partition("+")[0]


async def test_a_rank_that_never_ends_is_cut_at_the_drain_timeout(
    job: Job, cluster: Cluster
) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "3s"})
    await job.settled(2)
    pod = job.workers(1)[0]
    await asyncio.to_thread(start_rank, cluster, job, pod)
    await job.scale(1)
    await job.settled(1)
    await job.told("DrainTimeout", "drain-timeout of 3s is over")


@pytest.mark.thorough
async def test_a_worker_without_ranks_gets_a_second_to_end_unless_it_has_a_hook(
    job: Job, client: ApiWriter
) -> None:
    """Its main process ignores SIGTERM, and would hold the GPUs for half a minute."""
    hook = {"preStop": {"exec": {"command": ["true"]}}}
    hooked = Job(client=client, namespace=job.namespace, name="hooked")
    jobs = {
        job: None,
        hooked: {"containers": [{"name": "worker", "image": "i", "lifecycle": hook}]},
    }
    async with AsyncExitStack() as stack:
        watched = {
            one: await stack.enter_async_context(recorded(client, job.namespace, job=one.name))
            for one in jobs
        }
        for one, spec in jobs.items():
            await one.create(
                replicas=2, annotations={"mpijob-elastic/drain-timeout": "0s"}, worker_spec=spec
            )
        for one in jobs:
            await one.settled(2)
            await one.scale(1)
        for one in jobs:
            await one.settled(1)

        async def graces() -> dict[str, list[int]]:
            return {one.name: history.graces() for one, history in watched.items()}

        expected = {job.name: [1], "hooked": [30]}
        await seen(
            graces, lambda found: found == expected, "a deletion of each"
        )  # the watch may lag behind


@pytest.mark.thorough
async def test_a_worker_that_somebody_deletes_keeps_its_host_name_once_its_rank_has_left(
    job: Job, cluster: Cluster
) -> None:
    """Until then it keeps the time that its deletion gave it."""
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "10m"})
    before = await job.settled(3)
    pod = job.workers(2)[0]
    await job.annotate_pod(pod, {LINGERS: ""})
    rank = await asyncio.to_thread(start_rank, cluster, job, pod)
    await asyncio.to_thread(
        cluster.kubectl, "delete", "pod", pod, "-n", job.namespace, "--wait=false"
    )
    await job.until(
        lambda state: len(state.hosts) == 2 and state.phase == "Draining", "worker-2 left the list"
    )
    await asyncio.to_thread(in_pod, cluster, job, pod, f"kill {rank}")
    state = await job.until(
        lambda state: state.phase == "Scaling", "it is known that the rank has left"
    )
    assert grace_of(state, pod) == 600, "its drain-timeout"
    await asyncio.to_thread(
        cluster.kubectl, "delete", "pod", pod, "-n", job.namespace, "--force", "--grace-period=0"
    )
    after = await job.until(
        lambda state: state.hosts == before.hosts, "worker-2 is back under its name"
    )
    assert after.workers[pod]["metadata"]["uid"] != before.workers[pod]["metadata"]["uid"]


def grace_of(state: State, pod: str) -> int:
    """Return the seconds that the deletion of a pod gives it."""
    grace: int = state.workers[pod]["metadata"]["deletionGracePeriodSeconds"]
    return grace


async def test_a_scale_out_during_a_drain_cancels_it(job: Job, cluster: Cluster) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/drain-timeout": "1h"})
    before = await job.settled(2)
    pod = job.workers(1)[0]
    await asyncio.to_thread(start_rank, cluster, job, pod)
    await job.scale(1)
    await job.until(lambda state: len(state.hosts) == 1, "worker-1 drains")
    await job.scale(2)
    after = await job.settled(2)
    assert after.workers[pod]["metadata"]["uid"] == before.workers[pod]["metadata"]["uid"]


async def test_a_plain_mpirun_job_does_not_notice_us(job: Job) -> None:
    await job.create(replicas=2, command=MPIRUN)
    published = [f"{name}:1" for name in job.workers(0, 1)]
    before = await job.until(
        lambda state: state.hosts == published, "the file is there all the same"
    )
    await job.scale(3)
    await job.until(lambda state: len(state.workers) == 3, "the operator made worker-2")
    await job.scale(1)
    state = await job.until(lambda state: "NotElastic" in state.notices, "the user is told")
    assert len(state.running) == 3
    assert (state.hostfile, state.exec_names) == (before.hostfile, before.exec_names)
    assert state.refreshed is None


async def test_at_rest_nothing_is_written(job: Job) -> None:
    await job.create(replicas=3, annotations=QUICK)
    await job.settled(3)
    await job.scale(2)
    await job.settled(2)
    before = await job.at_rest()
    await asyncio.sleep(8)  # longer than every pause of ours
    after = await job.state()
    assert after == before


async def test_a_failed_worker_is_replaced(job: Job) -> None:
    await job.create(replicas=2)
    before = await job.settled(2)
    pod = job.workers(1)[0]
    ended = {"name": "worker", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    ended |= {"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    await job.set_status(pod, {"phase": "Failed", "containerStatuses": [ended]})

    await job.replaced(before, pod)
    await job.settled(2)
    await job.told("WorkerReplaced", "exited with 137 (OOMKilled)")


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        ("Running", "Succeeded"),
        pytest.param("None", "Failed", marks=pytest.mark.thorough),
        pytest.param("All", "Failed", marks=pytest.mark.thorough),
    ],
)
async def test_no_worker_leaks_after_the_end(
    job: Job, policy: str, phase: str, cluster: Cluster
) -> None:
    """The operator deletes below `replicas` only, so workers that were still draining would stay for ever."""
    await job.create(
        replicas=3, annotations={"mpijob-elastic/drain-timeout": "1h"}, clean_pod_policy=policy
    )
    await job.settled(3)
    for pod in job.workers(1, 2):
        await asyncio.to_thread(start_rank, cluster, job, pod)
    await job.scale(1)
    await job.until(lambda state: len(state.hosts) == 1, "two drain")
    await job.set_status(f"{job.name}-launcher", {"phase": phase})
    if policy == "None":
        await asyncio.sleep(3)
        assert len((await job.state()).workers) == 3
    else:
        await job.until(lambda state: not state.workers, "no worker is left")


@pytest.mark.thorough
async def test_eleven_twelve_two(job: Job) -> None:
    """worker-10 comes after worker-9, in every list."""
    await job.create(replicas=11, annotations=QUICK, slots=4)
    await job.settled(11, slots=4)
    await job.scale(12)
    await job.settled(12, slots=4)
    await job.scale(2)
    await job.settled(2, slots=4)
    expected = sorted(f"{name} is being deleted" for name in job.workers(*range(2, 12)))
    # Events are sent beside the work.
    await seen(
        lambda: deletions(job),
        lambda found: found == expected,
        "an Event of each worker that was deleted",
    )


async def deletions(job: Job) -> list[str]:
    """Return the Events of deleted workers, up to their reasons."""
    return sorted(
        message.split(":")[0] for reason, message in await job.events() if reason in DELETED
    )


@pytest.mark.thorough
async def test_jobs_of_one_name_in_two_namespaces(
    job: Job, client: ApiWriter, cluster: Cluster
) -> None:
    other = Job(client=client, namespace=f"{job.namespace}-b")
    create_namespace(cluster, other.namespace)
    await job.create(replicas=2, annotations=QUICK)
    await other.create(replicas=4, annotations=QUICK)
    await asyncio.gather(job.settled(2), other.settled(4))
    await job.scale(3)
    await other.scale(1)
    await asyncio.gather(job.settled(3), other.settled(1))


async def test_foreign_pods_with_the_operators_labels_are_left_alone(
    job: Job, client: ApiWriter
) -> None:
    labels = {"group-name": "kubeflow.org", "mpi-job-name": job.name, "mpi-job-role": "worker"}
    for name in (*job.workers(7), "stranger"):
        pod = {
            "metadata": {"name": name, "namespace": job.namespace, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await client.create_object(resources.PODS.path(job.namespace), body=pod)
    await job.create(replicas=3, annotations=QUICK)
    await job.settled(3)
    await job.scale(1)
    await job.settled(1)
    for name in (*job.workers(7), "stranger"):
        await client.get(resources.PODS.path(job.namespace, name))


async def test_a_job_deleted_during_a_drain(job: Job, cluster: Cluster) -> None:
    await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "1h"})
    await job.settled(3)
    await asyncio.to_thread(start_rank, cluster, job, job.workers(2)[0])
    await job.scale(1)
    await job.until(lambda state: len(state.hosts) == 1, "two drain")
    await job.delete()
    await job.until(
        lambda state: not state.workers and state.launcher is None, "everything is gone"
    )
    await job.create(replicas=2)
    await job.settled(2)


@pytest.mark.campaign
async def test_fifty_jobs_at_once(client: ApiWriter, namespace: str) -> None:
    jobs = [Job(client=client, namespace=namespace, name=f"job-{number}") for number in range(50)]
    await asyncio.gather(*(job.create(replicas=2, annotations=QUICK) for job in jobs))
    for job in jobs:
        await job.settled(2)
    await asyncio.gather(*(job.scale(1 + number % 4) for number, job in enumerate(jobs)))
    for number, job in enumerate(jobs):
        await job.settled(1 + number % 4)
