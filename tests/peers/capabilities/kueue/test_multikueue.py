"""MultiKueue sends a job to another cluster: its manager leaves it alone, and there it is as elastic as any other."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from functools import partial

import msgspec
import pytest

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, MULTIKUEUE, WORKLOADS
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.lab.command_line import CommandLine
from tests.lab.job import Job
from tests.lab.on_demand import OnDemand
from tests.lab.waiting import PATIENCE, create_namespace, kubectl_until_done, until
from tests.peers.kueue import API, GROUP, Kueue
from tests.peers.queued_jobs import ends_quietly
from tests.peers.queues import example, flavor_and_class, queue_of_four

pytestmark = [pytest.mark.lab, pytest.mark.peers, pytest.mark.campaign]
MEMBER = "member"
ORIGIN = "kueue.x-k8s.io/multikueue-origin"


@pytest.fixture(scope="module")
def member(kueue: Kueue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second cluster with Kueue, the operator and mpijob-elastic."""
    with ExitStack() as ends:
        cluster = ends.enter_context(Cluster.start(name=f"pytest-{MEMBER}-{os.getpid()}"))
        ends.enter_context(kueue.serving(cluster, tmp_path_factory.mktemp(MEMBER)))
        installed = install_into(cluster)
        ends.enter_context(Webhook.start(cluster, installed))
        until(lambda: called(cluster))
        ends.enter_context(Operator.start(cluster, qps=0, flags=["--threadiness=8"]))
        ends.enter_context(Controller.start(cluster, installed))
        yield cluster


@pytest.fixture(scope="module")
def managed(
    cluster: Cluster,
    member: Cluster,
    kueue: Kueue,
    programs: OnDemand,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Kueue in the first cluster knows the second."""
    programs.keep(())  # they look for its definitions when they start
    directory = tmp_path_factory.mktemp("manager")
    access = directory / "member.kubeconfig"
    access.write_text(
        cluster.kubectl("config", "view", "--raw", "--flatten", kubeconfig=member.kubeconfig)
    )
    with kueue.serving(cluster, directory):
        flavor_and_class(cluster)  # waits until Kueue's webhooks answer
        parts = {
            "MultiKueueCluster": {
                "clusterSource": {"kubeConfig": {"location": str(access), "locationType": "Path"}}
            },
            "MultiKueueConfig": {"clusters": [MEMBER]},
            "AdmissionCheck": {
                "controllerName": MULTIKUEUE,
                "parameters": {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": MEMBER},
            },
        }
        for kind, spec in parts.items():
            item = {"apiVersion": API, "kind": kind, "metadata": {"name": MEMBER}, "spec": spec}
            kubectl_until_done(
                cluster, "apply", "-f", "-", stdin=json.dumps(item), patience=PATIENCE
            )
        yield
        programs.keep(())


@pytest.fixture
async def there(member: Cluster, namespace: str) -> AsyncIterator[Job]:
    """The job's copy in the second cluster."""
    create_namespace(member, namespace)
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=member.kubeconfig
    ) as client:
        yield Job(client=client, namespace=namespace)
    member.kubectl("delete", "namespace", namespace, "--wait=false")


async def sent(cluster: Cluster, member: Cluster, job: Job) -> None:
    """Create the job of the example with a queue in both clusters; MultiKueue is to send it."""
    queue = queue_of_four(member, job.namespace)
    queue_of_four(cluster, job.namespace)
    checks = {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": MEMBER}]}}}
    cluster.kubectl(
        "patch", "clusterqueue", job.namespace, "--type=merge", "-p", json.dumps(checks)
    )
    body = example("job")["MPIJob"]
    body["metadata"]["labels"] = {LABEL_QUEUE: queue}
    body["spec"]["managedBy"] = MULTIKUEUE
    await job.client.create_object(resources.MPI_JOBS.path(job.namespace), body=body)


@pytest.mark.usefixtures("managed", "elastic", "operator")
async def test_a_job_is_elastic_in_the_cluster_that_runs_it(
    cluster: Cluster, member: Cluster, job: Job, there: Job
) -> None:
    await sent(cluster, member, job)

    await there.settled(
        4
    )  # two workers with the quota that MultiKueue asked for, and two with that of this cluster
    await job.told("RunsElsewhere", f"train runs in cluster {MEMBER}; edit it there")
    await job.until(lambda state: "Running" in state.conditions, "the copied status")
    shown = await asyncio.to_thread(CommandLine(cluster).run, "get", "train", "-n", job.namespace)
    assert f"no: its spec.managedBy is {MULTIKUEUE}, so it runs in another cluster" in shown[1]

    await job.scale(2)
    await there.scale(3)
    await there.settled(3)
    await ends_quietly(there)
    here = await job.state()
    assert here.hosts == []
    for pod in (here.launcher, *here.workers.values()):
        assert pod is not None
        assert pod["spec"]["schedulingGates"] == [{"name": names.GATE_QUEUED}]

    await there.set_status("train-launcher", {"phase": "Succeeded"})
    await job.until(lambda state: "Succeeded" in state.conditions, "the copied end")
    await there.until(lambda state: state.replicas == 0, "nothing of it left")


@pytest.mark.usefixtures("managed")
async def test_the_controller_may_adopt_what_multikueue_has_sent_and_change_nothing_else(
    cluster: Cluster, installed: Installed, job: Job
) -> None:
    await job.create(replicas=1)
    raw = await job.client.get(resources.MPI_JOBS.path(job.namespace, job.name))
    uid = msgspec.json.decode(raw)["metadata"]["uid"]
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "name": job.name,
        "uid": uid,
        "controller": True,
    }
    adoption = {"metadata": {"ownerReferences": [owner]}}
    pod = {"spec": {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}}
    spec = {"queueName": "team", "podSets": [{"name": "workers", "count": 2, "template": pod}]}
    for name, labels in (("sent", {ORIGIN: "multikueue"}), ("own", {})):
        body = {
            "apiVersion": API,
            "kind": "Workload",
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
        }
        await job.client.create_object(WORKLOADS.path(job.namespace), body=body)
    sent, own = (WORKLOADS.path(job.namespace, name) for name in ("sent", "own"))
    async with await connect(
        user_agent="test", kubeconfig=installed.controller_kubeconfig
    ) as controller:
        patch = partial(controller.patch_object, content_type=MERGE_PATCH)
        with pytest.raises(errors.ApiError, match="only Workloads that an MPIJob controls"):
            await patch(own, body=adoption)
        with pytest.raises(errors.ApiError, match="never a change of what a Workload asks for"):
            await patch(sent, body={**adoption, "spec": {"queueName": "other"}})
        await patch(sent, body=adoption)
        with pytest.raises(errors.ApiError, match="never a change of what a Workload asks for"):
            await patch(sent, body={"spec": {"queueName": "other"}})
