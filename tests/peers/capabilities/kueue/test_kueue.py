"""Kueue gives an MPIJob its quota, worker by worker, and takes it back without killing a rank."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from functools import partial

import msgspec
import pytest

from lab.cluster import Cluster
from lab.install import Installed
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.cli.jobs import snapshot
from mpijob_elastic.cli.jobs.report import JobReport, build
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.lab.history import most_requested, recorded
from tests.lab.job import Job, Object, State
from tests.lab.launchers import UNMUTATED, label
from tests.lab.suspended import pods
from tests.lab.typed import Typed
from tests.lab.waiting import seen
from tests.peers.kueue import API
from tests.peers.queued_jobs import (
    ONE_GPU,
    QUICK,
    asked,
    ends_quietly,
    hold,
    restarted,
    stopped,
    waits,
    waits_for_gpus,
    workloads,
)
from tests.peers.queues import example

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.usefixtures("kueue_serves", "elastic", "operator"),
]


async def test_a_job_waits_for_its_quota_and_starts_where_the_flavor_says(
    job: Job, client: ApiWriter, queue: str
) -> None:
    first = Job(client=client, namespace=job.namespace, name="first")
    await first.create(replicas=4, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
    state = await first.settled(4)
    assert state.workers["first-worker-3"]["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    tolerations = state.workers["first-worker-0"]["spec"]["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in tolerations
    await job.create(replicas=2, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
    await waits_for_gpus(job)
    await first.set_status("first-launcher", {"phase": "Succeeded"})
    await job.settled(2)
    await ends_quietly(job)


async def test_a_job_grows_into_idle_quota_and_gives_it_back_to_a_job_that_waits(
    job: Job, client: ApiWriter, queue: str
) -> None:
    """The workers with the highest numbers leave, after their ranks; when the other job has ended they are back."""
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job="rival") as theirs,
    ):
        body = {**example("job")["MPIJob"]}
        assert body["metadata"]["labels"] == {LABEL_QUEUE: queue}
        await client.create_object(resources.MPI_JOBS.path(job.namespace), body=body)
        await job.settled(4)
        made = await workloads(job)
        assert {name: one["spec"]["priority"] for name, one in made.items()} == {
            "train-launcher": 0,
            "train-worker-2": -1,
            "train-worker-3": -2,
        }
        rival = Job(client=client, namespace=job.namespace, name="rival")
        await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
        await rival.settled(2)
        await job.until(
            lambda state: state.hosts == ["train-worker-0:1", "train-worker-1:1"], "two workers"
        )
        gates = dict(zip(job.workers(0, 1, 2, 3), (False, False, True, True), strict=True))
        await job.until(
            lambda state: {name: waits(pod) for name, pod in state.workers.items()} == gates,
            "two gates",
        )
        await job.told("SurplusDeleted", times=2)
        told = await job.events()
        deleted = [message for reason, message in told if reason == "SurplusDeleted"]
        assert sorted(message.partition(" after")[0] for message in deleted) == [
            f"{name} is being deleted: drained" for name in job.workers(2, 3)
        ]
        assert not [message for reason, message in told if reason in ("HostsLost", "DrainTimeout")]
        await job.told("WorkersQueued", "train-worker-2, train-worker-3")
        await job.told(
            "QuotaWanted",
            f"Preempted to accommodate a workload ({job.namespace}/rival-launcher, UID: ",
        )
        report = await seen(
            partial(reported, job),
            # At first it says that it was preempted.
            lambda found: (
                found.queue is not None and "insufficient unused quota" in found.queue.says
            ),
            "why it waits",
        )
        assert report.queue
        assert (report.queue.workload, report.queue.place) == ("train-worker-2", 1)
        assert [(one.phase, one.quota) for one in report.workers[1:3]] == [
            ("Running", "least"),
            ("Queued", "extra"),
        ]
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4
    await rival.set_status("rival-launcher", {"phase": "Succeeded"})
    await job.settled(4)
    await ends_quietly(job)


async def test_a_job_without_a_class_of_priority_has_the_default_one(
    cluster: Cluster, job: Job, queue: str
) -> None:
    """As Kueue does for its own kinds of jobs since 0.20; the extras stay below the base."""
    made = {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": "default"}}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made | {"value": 50}))
    try:
        await job.create(
            replicas=3, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: queue}
        )
        await job.settled(3)
        found = {name: one["spec"] for name, one in (await workloads(job)).items()}
    finally:
        cluster.kubectl("delete", "workloadpriorityclass", "default")
    assert {name: spec["priority"] for name, spec in found.items()} == {
        "train-launcher": 50,
        "train-worker-2": 49,
    }
    assert found["train-launcher"]["priorityClassRef"]["name"] == "default"


async def reported(job: Job) -> JobReport:
    """Return what `get` says of the job."""
    [found] = await snapshot.fetch(
        job.client, snapshot.Selection(namespace=job.namespace, job=job.name)
    )
    return build(found, now=time.time())


async def test_a_scale_in_frees_quota_and_a_scale_out_beyond_it_waits(job: Job, queue: str) -> None:
    await job.create(
        replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: queue}
    )
    await job.settled(4)
    await job.scale(6)
    await job.told("WorkersQueued", "train-worker-4, train-worker-5")
    await job.scale(3)
    await job.settled(3)
    await left_with(job, "train-launcher", "train-worker-2")


async def left_with(job: Job, *asking: str) -> None:
    """Wait until the job has these Workloads: one that is deleted stays until Kueue takes its finalizer off."""
    await seen(
        lambda: workloads(job), lambda found: sorted(found) == sorted(asking), f"Workloads {asking}"
    )


async def test_the_command_line_counts_quota_and_ends_with_the_words_of_kueue(
    job: Job, client: ApiWriter, cluster: Cluster, queue: str
) -> None:
    user = Typed(cluster.kubeconfig, job.namespace)
    await job.create(
        replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: queue}
    )
    await job.settled(4)
    await user.run("scaleout", "train", "--no-wait")
    await job.told("WorkersQueued", "train-worker-4")
    code, printed = await user.run("scaleout", "train", "--to", "5", "--timeout", "3s", "--no-exec")
    page = " ".join(printed.split())
    assert code == 4
    assert "pods 4 of 5, quota 4 of 5, host list 4 of 5" in page
    assert f"train-worker-4 does not start: it waits in queue {queue}: " in page
    assert (
        page.partition("After 3s the change still goes on: ")[2].count(
            "insufficient unused quota for nvidia.com/gpu"
        )
        >= 2
    )
    late = Job(client=client, namespace=job.namespace, name="late")
    await late.create(replicas=4, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
    await late.told("Queued", "insufficient unused quota for nvidia.com/gpu")
    refused = await user.refused("scaleout", "late")
    assert refused.startswith(f"late does not run yet, because it waits in queue {queue}: ")
    assert refused.endswith("; with --no-wait the size is set for its start")


async def test_an_admitted_job_keeps_its_quota_when_its_least_size_changes_until_it_is_queued_again(
    job: Job, queue: str
) -> None:
    await job.create(
        replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: queue}
    )
    await job.settled(4)
    await job.annotate(min_replicas="3")
    await job.told(
        "LeastUnchanged",
        "for 2 workers, although its least size is 3 now: Kueue may take back the quota above that",
    )
    assert asked((await workloads(job))["train-launcher"]) == {"launcher": 1, "workers": 2}
    await restarted(job)
    await job.settled(4)
    await ends_quietly(job)
    assert {name: asked(one)["workers"] for name, one in (await workloads(job)).items()} == {
        "train-launcher": 3,
        "train-worker-3": 1,
    }


@pytest.mark.usefixtures("scale_served")
async def test_workers_beyond_the_quota_wait_and_only_scale_timeout_takes_them_back(
    job: Job, cluster: Cluster, queue: str
) -> None:
    await job.create(
        replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels={LABEL_QUEUE: queue}
    )
    await job.settled(4)
    await job.scale(6)
    await job.told("WorkersQueued", "train-worker-4, train-worker-5")
    assert (await job.at_rest()).replicas == 6
    await job.annotate(scale_timeout="2s")
    await job.told("ScaleTimeout", "Worker.replicas returns to 4")
    await job.settled(4)
    await job.annotate(scale_timeout="20s")  # Kueue has to say first why the fifth waits
    await asyncio.to_thread(
        cluster.kubectl, "scale", "mpijob", job.name, "-n", job.namespace, "--replicas=5"
    )
    await job.told("ScaleTimeout", "insufficient unused quota", times=2)
    await job.settled(4)
    await ends_quietly(job)
    await left_with(job, "train-launcher", "train-worker-2", "train-worker-3")


async def test_the_controller_may_write_workloads_of_jobs_only_and_admit_none(
    installed: Installed, job: Job, queue: str
) -> None:
    await job.create(replicas=5, worker_spec=ONE_GPU, job_labels={LABEL_QUEUE: queue})
    await job.told("Queued", "insufficient")
    found = (await workloads(job))["train-launcher"]
    stranger = {**found, "metadata": {"name": "stranger", "namespace": job.namespace}}
    admission = {
        "clusterQueue": job.namespace,
        "podSetAssignments": [{"name": "launcher"}, {"name": "workers"}],
    }
    path, patch = (
        WORKLOADS.path(job.namespace, "train-launcher", "status"),
        {"admission": admission},
    )
    async with await connect(
        user_agent="test", kubeconfig=installed.controller_kubeconfig
    ) as controller:
        with pytest.raises(errors.ApiError, match="only Workloads that an MPIJob controls"):
            await controller.create_object(WORKLOADS.path(job.namespace), body=stranger)
        with pytest.raises(errors.ApiError, match="never an admission"):
            await controller.patch_object(path, body={"status": patch}, content_type=MERGE_PATCH)
        itself = path.removesuffix("/status")
        for field, value in (
            ("labels", {"a": "b"}),
            ("annotations", {"a": "b"}),
            ("finalizers", ["a.b/c"]),
        ):
            with pytest.raises(
                errors.ApiError, match="labels and annotations may not be changed; finalizers"
            ):
                await controller.patch_object(
                    itself, body={"metadata": {field: value}}, content_type=MERGE_PATCH
                )


async def test_pods_that_missed_the_webhook_are_replaced_before_a_node_takes_them(
    job: Job, client: ApiWriter, queue: str
) -> None:
    """As if the webhook were away while the operator creates them."""
    nowhere = {**ONE_GPU, "nodeSelector": {"pool": "nowhere"}}
    await label(client, job.namespace, UNMUTATED)
    await job.create(
        replicas=5,
        worker_spec=nowhere,
        launcher_spec={"nodeSelector": {"pool": "nowhere"}},
        job_labels={LABEL_QUEUE: queue},
    )
    made = await job.until(
        lambda state: len(state.workers) == 5 and state.launcher is not None, "its pods"
    )
    await label(client, job.namespace, {"mpijob-elastic/injection": None})
    assert not any(waits(pod) for pod in (made.launcher, *made.workers.values()))
    await job.told("WorkerReplaced", "the operator recreates it, to wait for quota", times=5)
    await job.until(
        lambda state: (
            len(state.workers) == 5 and all(map(waits, (state.launcher, *state.workers.values())))
        ),
        "gates",
    )
    await job.told("Queued", "insufficient")
    await job.at_rest()


async def test_a_job_whose_least_workers_are_wanted_stops_and_starts_again_later(
    job: Job, queue: str
) -> None:
    rival = await stopped(job, queue)
    waiting = await job.until(
        lambda state: (
            len(state.workers) == 3 and all(map(waits, (state.launcher, *state.workers.values())))
        ),
        "gates",
    )
    assert not {"Failed", "Succeeded"} & {*waiting.conditions}
    await rival.set_status("rival-launcher", {"phase": "Succeeded"})
    await job.settled(3)
    await ends_quietly(job)


async def succeed(job: Job) -> None:
    await job.set_status("train-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: len(state.workers) == 2, "two workers left")


async def left(job: Job) -> set[str]:
    """Return the Workloads of the namespace that hold quota for the job."""
    raw = msgspec.json.decode(await job.client.get(WORKLOADS.path(job.namespace)))["items"]
    found = {
        item["metadata"]["name"]: item["status"]
        for item in raw
        if item["metadata"]["name"].startswith("train")
    }
    over = {
        name
        for name, status in found.items()
        if any(one["type"] == "Finished" for one in status["conditions"])
    }
    return {name for name, status in found.items() if "admission" in status} - over


async def as_it_is(_job: Job) -> None:
    """Its pods are those for which its Workloads were made."""


async def with_other_pods(job: Job) -> None:
    """The pods for which its Workloads were made are gone."""
    named = {"train-worker-0", "train-worker-3", "train-launcher"}
    before = uids(await job.state(), named)
    for name in named:
        await job.client.delete_object(resources.PODS.path(job.namespace, name))
    await job.until(
        lambda state: not before & {pod["metadata"]["uid"] for pod in pods(state)}, "other pods"
    )
    now = uids(await job.settled(4), named)

    def are_owned(found: dict[str, Object]) -> bool:
        return now <= {
            owner["uid"] for one in found.values() for owner in one["metadata"]["ownerReferences"]
        }

    await seen(lambda: workloads(job), are_owned, "Workloads that the other pods own")
    await job.at_rest()


def uids(state: State, named: Collection[str]) -> set[str]:
    """Return the uids of these pods."""
    return {pod["metadata"]["uid"] for pod in pods(state) if pod["metadata"]["name"] in named}


@pytest.mark.parametrize(
    ("begin", "end"),
    [(as_it_is, succeed), (as_it_is, Job.delete), (with_other_pods, Job.delete)],
    ids=["finished", "deleted", "deleted with other pods"],
)
async def test_a_job_keeps_its_quota_until_its_pods_are_gone(
    job: Job,
    client: ApiWriter,
    queue: str,
    begin: Callable[[Job], Awaitable[None]],
    end: Callable[[Job], Awaitable[None]],
) -> None:
    labels = {LABEL_QUEUE: queue}
    await job.create(replicas=4, worker_spec=ONE_GPU, annotations=QUICK, job_labels=labels)
    await job.settled(4)
    await begin(job)
    for pod in ("train-worker-0", "train-worker-3"):  # they end slowly
        await hold(job, pod)
    rival = Job(client=client, namespace=job.namespace, name="rival")
    async with (
        recorded(client, job.namespace, job=job.name) as mine,
        recorded(client, job.namespace, job="rival") as theirs,
    ):
        await end(job)
        await rival.create(replicas=2, worker_spec=ONE_GPU, job_labels=labels)
        await rival.told("Queued", "insufficient unused quota")
        await seen(
            partial(left, job),
            lambda found: found == {"train-launcher", "train-worker-3"},
            "what is held",
        )
        for pod in ("train-worker-0", "train-worker-3"):
            await hold(job, pod, by=None)
        await rival.settled(2)
    assert most_requested("nvidia.com/gpu", mine, theirs) == 4
