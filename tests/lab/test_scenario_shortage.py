"""Too few workers: at the start, while nodes go, and when a size cannot be reached."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime

import msgspec
import pytest
import yaml

from lab.cluster import Cluster
from lab.components import MANIFESTS
from lab.operator.process import Operator
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model.wire import timestamp
from tests.lab.job import HOLD, Job, Object, State
from tests.lab.on_demand import OnDemand
from tests.lab.pools import make_nodes, on_pool, remove_nodes
from tests.lab.upgrades import established

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic")]

HELD = {HOLD: "yes"}


@pytest.fixture(scope="module")
def koordinator(cluster: Cluster, programs: OnDemand) -> Iterator[None]:
    """The PodGroups of Koordinator are served; programs that ask once a minute start after that."""
    programs.keep(())
    group, version = resources.KOORDINATOR_POD_GROUPS.group, resources.KOORDINATOR_POD_GROUPS.version
    definition = yaml.safe_load((MANIFESTS / "podgroup-crd.yaml").read_text())
    # Kubernetes asks for it; this is the value in v1.8.0.
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/52"}
    definition["metadata"] = {"name": f"podgroups.{group}", "annotations": approved}
    definition["spec"]["group"] = group
    definition["spec"]["versions"][0]["name"] = version
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
    established(cluster, f"crd/podgroups.{group}")
    yield
    programs.keep(())
    cluster.kubectl("delete", f"crd/podgroups.{group}")


@pytest.fixture
async def pool(cluster: Cluster, client: ApiWriter) -> AsyncIterator[str]:
    """Two nodes of their own, by the value of their label."""
    name = f"pool-{secrets.token_hex(4)}"
    await make_nodes(client, name)
    yield name
    await remove_nodes(client, name)


async def taint(client: ApiWriter, name: str, *taints: Object) -> None:
    """Give a node these taints and no others."""
    path = resources.NODES.path(None, name)
    await client.patch_object(path, body={"spec": {"taints": list(taints)}}, content_type=MERGE_PATCH)


def places(state: State) -> dict[str, str]:
    """On which node each worker is."""
    return {name: pod["spec"].get("nodeName", "") for name, pod in state.workers.items()}


def uid(state: State) -> str | None:
    value: str | None = state.launcher["metadata"]["uid"] if state.launcher else None
    return value


def delivering() -> Object:
    running = {"running": {"startedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}}
    facts = {"ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    return {"initContainerStatuses": [{"name": "kubectl-delivery", "state": running, **facts}]}


@pytest.mark.usefixtures("operator")
async def test_a_job_starts_with_its_least_size_whichever_workers_come_first(job: Job) -> None:
    await job.create(
        replicas=4,
        annotations={"mpijob-elastic/min-replicas": "2"},
        launcher_annotations=HELD,
        worker_annotations=HELD,
    )
    first = [f"{name} slots=1" for name in job.workers(0, 1)]
    state = await job.until(lambda state: state.hostfile == first and state.launcher is not None, "two are awaited")
    before = uid(state)
    await job.set_status(f"{job.name}-launcher", delivering())  # its init container waits for workers 0 and 1
    for pod in job.workers(1, 3):
        await job.annotate_pod(pod, {HOLD: None})
    now = [f"{name} slots=1" for name in job.workers(1, 3)]
    await job.until(lambda state: state.hostfile == now, "those that run are awaited")
    await job.until(lambda state: uid(state) not in (None, before), "a launcher that reads the true hostfile")
    await job.told("LauncherRecreated")
    await job.annotate_pod(f"{job.name}-launcher", {HOLD: None})
    await job.until(lambda state: state.hosts == [f"{name}:1" for name in job.workers(1, 3)], "it trains on two")
    for pod in job.workers(0, 2):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(4)


def ended(ago: float) -> Object:
    """The status of a launcher that succeeded so many seconds ago, as its kubelet writes it."""
    at = timestamp(time.time() - ago)
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}}
    facts = {"name": "launcher", "ready": False, "restartCount": 0, "image": "i", "imageID": ""}
    return {"phase": "Succeeded", "containerStatuses": [{**facts, "state": state}]}


@pytest.mark.usefixtures("operator")
@pytest.mark.thorough
async def test_refused_workers_are_told_and_the_others_go_with_the_job_though_the_operator_waits(job: Job) -> None:
    await job.create(replicas=2)
    await job.settled(2)
    await job.limit(pods=4)
    await job.scale(4)  # one more than the quota takes
    # Each event of a job that the operator cannot sync doubles its pause, from 5 ms up to 1,000 s.
    edits = [{"metadata": {"annotations": {f"somebody/{number}": "edits"}}} for number in range(30)]
    await asyncio.gather(*map(job.patch, edits))
    await job.told("WorkersRefused", "the operator has not created train-worker-3")
    assert "at most 1,000 s after each refusal" in (await job.state()).notices
    await job.set_status(f"{job.name}-launcher", ended(ago=28.0))
    await job.told("SurplusDeleted", "the job has ended, cleanPodPolicy is Running and the operator has not deleted it")
    state = await job.until(lambda state: not state.workers, "no worker left")
    assert "Succeeded" not in state.conditions  # it waits still


@pytest.mark.usefixtures("operator")
@pytest.mark.thorough
async def test_workers_leave_a_node_that_is_about_to_go(job: Job, client: ApiWriter, pool: str) -> None:
    await job.create(
        replicas=3,
        annotations={"mpijob-elastic/min-replicas": "1"},
        worker_spec=on_pool(pool),
    )
    before = await job.settled(3)
    going = places(before)[job.workers(1)[0]]
    await taint(client, going, {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"})
    await job.told("Disruption", f"taint karpenter.sh/disrupted on node {going}")
    await job.until(
        lambda state: set(places(state)) == set(places(before)) and going not in places(state).values(),
        "all workers are elsewhere",
    )
    after = await job.until(lambda state: len(state.hosts) == 3, "all of them train")
    stayed = [name for name, where in places(before).items() if where != going]
    for name in stayed:
        assert after.workers[name]["metadata"]["uid"] == before.workers[name]["metadata"]["uid"]
    await job.told("WorkerReplaced", "drained after")


async def test_a_gang_scheduler_waits_for_the_least_size(job: Job, client: ApiWriter, cluster: Cluster) -> None:
    async def least() -> int:
        group = msgspec.json.decode(await client.get(resources.POD_GROUPS.path(job.namespace, job.name)))
        value: int = group["spec"]["minMember"]
        return value

    with Operator.start(cluster, namespace=job.namespace, gang_scheduling="volcano", qps=0):
        await job.create(replicas=4, annotations={"mpijob-elastic/min-replicas": "2"})
        await job.told("PodGroupLowered", "minMember 5 → 3")
        assert await least() == 3
        await job.scale(6)
        await job.until(lambda state: len(state.workers) == 6, "six workers")
        await asyncio.sleep(2)
        assert await least() == 3


@pytest.mark.usefixtures("operator")
async def test_a_job_that_asks_for_a_gang_has_it_without_a_flag_of_the_operator(job: Job, client: ApiWriter) -> None:
    asked = {"mpijob-elastic/gang": "volcano", "scheduling.volcano.sh/queue-name": "team"}
    await job.create(replicas=3, annotations={**asked, "mpijob-elastic/min-replicas": "2"})
    await job.told("PodGroupCreated", "3 at least in queue team")
    group = msgspec.json.decode(await client.get(resources.POD_GROUPS.path(job.namespace, job.name)))
    assert group["spec"] == {"minMember": 3, "queue": "team"}
    state = await job.until(lambda state: len(state.workers) == 3 and state.launcher is not None, "its pods")
    for pod in (*state.workers.values(), state.launcher or {}):
        assert pod["spec"]["schedulerName"] == "volcano"
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == job.name
    with pytest.raises(errors.Invalid, match="cannot change once the job has started"):
        await job.annotate(gang=None)


@pytest.mark.usefixtures("operator")
async def test_where_kubernetes_serves_no_pod_groups_the_pods_start_one_by_one(job: Job) -> None:
    await job.create(replicas=2, annotations={"mpijob-elastic/gang": "kubernetes"})
    await job.settled(2)
    notices = (await job.until(lambda state: "GangUnavailable" in state.notices, "a word about it")).notices
    assert "Kubernetes 1.36 serves them with the gates GenericWorkload and GangScheduling" in notices
    assert "GangMissed" not in notices


@pytest.mark.usefixtures("operator")
async def test_a_size_that_cannot_be_reached_is_taken_back(job: Job) -> None:
    await job.create(
        replicas=2,
        annotations={"mpijob-elastic/scale-timeout": "1h"},
        worker_annotations=HELD,
    )
    await job.until(lambda state: len(state.workers) == 2, "two workers")
    for pod in job.workers(0, 1):
        await job.annotate_pod(pod, {HOLD: None})
    await job.settled(2)
    await job.scale(5)
    await job.until(lambda state: len(state.workers) == 5, "three that stay Pending")
    await job.annotate_pod(job.workers(2)[0], {HOLD: None})
    await job.until(lambda state: len(state.hosts) == 3, "one of them trains")
    await job.annotate(scale_timeout="5s")
    await job.settled(3)
    await job.told("ScaleTimeout", "Worker.replicas returns to 3")
    assert (await job.state()).replicas == 3


@pytest.mark.usefixtures("koordinator", "operator")
@pytest.mark.thorough
async def test_a_gang_of_koordinator_carries_its_marks_and_its_quota(job: Job, client: ApiWriter) -> None:
    """Its scheduler does not run here, so no pod gets a node."""
    quota, preemptible = "quota.scheduling.koordinator.sh/name", "quota.scheduling.koordinator.sh/preemptible"
    asked = {"mpijob-elastic/gang": "koordinator", "mpijob-elastic/min-replicas": "2"}
    await job.create(replicas=3, annotations=asked, job_labels={quota: "team"})
    await job.told("PodGroupCreated", "3 at least")
    state = await job.until(lambda state: len(state.workers) == 3 and state.launcher is not None, "its pods")
    marked: dict[str, tuple[str, ...]] = {}
    for pod in (*state.workers.values(), state.launcher or {}):
        labels, said = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert labels["pod-group.scheduling.sigs.k8s.io"] == said["gang.scheduling.koordinator.sh/name"] == job.name
        assert (pod["spec"]["schedulerName"], pod["spec"].get("nodeName")) == ("koord-scheduler", None)
        marked[pod["metadata"]["name"]] = (labels[quota], labels[preemptible])
    kept = dict.fromkeys([f"{job.name}-launcher", *job.workers(0, 1)], ("team", "false"))
    assert marked == {**kept, job.workers(2)[0]: ("team", "true")}
    path = resources.KOORDINATOR_POD_GROUPS.path(job.namespace, job.name)
    group = msgspec.json.decode(await client.get(path))
    assert group["spec"] == {"minMember": 3}
    assert group["metadata"]["annotations"] == {"gang.scheduling.koordinator.sh/match-policy": "waiting-and-running"}
    await job.annotate(min_replicas="1")
    await job.told("PodGroupLowered", "minMember 3 → 2")
    lowered = msgspec.json.decode(await client.get(path))
    assert {**lowered["metadata"]["annotations"], **lowered["spec"]} == {
        **group["metadata"]["annotations"],
        "minMember": 2,
    }
    assert "GangMissed" not in (await job.at_rest()).notices
