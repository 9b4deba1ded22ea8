"""The four manifests of et-operator's README on a real API server, and what else becomes of ScaleIns and ScaleOuts."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.operator.process import Operator
from lab.registration import called
from lab.replicas import Controller, Webhook
from mpijob_elastic.capabilities.et_operator.facts import SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from mpijob_elastic.install import server
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.resources import EVENTS, MPI_JOBS, Resource
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model.json_parts import controller
from tests.lab.command_line import CommandLine
from tests.lab.definitions import definition
from tests.lab.job import Job, Object
from tests.lab.upgrades import established, gone
from tests.lab.versions import needs
from tests.lab.waiting import seen, until

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]

NAME = "elastic-training"
SOON = {"mpijob-elastic/drain-timeout": "1s"}
DISCOVERY = "/etc/edl/discover_hosts.sh"
# As in https://github.com/AliyunContainerService/et-operator/tree/master/examples, with other
# images.
TRAINING_JOB = f"""
apiVersion: {TRAINING_JOBS.api_version}
kind: TrainingJob
metadata: {{name: {NAME}, annotations: {{mpijob-elastic/drain-timeout: 1s}}}}
spec:
  cleanPodPolicy: Running
  etReplicaSpecs:
    launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: mnist-elastic
              image: horovod:test
              command:
                - sh
                - -c
                - horovodrun -np 2 --min-np 1 --max-np 9 --host-discovery-script {DISCOVERY} python train.py
    worker:
      maxReplicas: 9
      minReplicas: 1
      replicas: 2
      template:
        spec: {{containers: [{{name: mnist-elastic, image: horovod:test}}]}}
"""
BY_COUNT: Object = {"generateName": "scalein-sample-", "toDelete": {"count": 1}}
BY_POD: Object = {"generateName": "scalein-sample-", "toDelete": {"podNames": [f"{NAME}-worker-1"]}}
ONE_MORE: Object = {"toAdd": {"count": 1}, "timeout": 600}  # a minute by default
OUT: Object = {"generateName": f"{NAME}-scaleout-", "toAdd": {"count": 2}, "timeout": 300}


@pytest.fixture(scope="module")
def cluster(lab: CommandLine) -> Cluster:
    """The module's own: what is installed here widens what the controller may do."""
    return lab.cluster


@pytest.fixture(scope="module")
def with_requests(cluster: Cluster) -> Iterator[Installed]:
    """Operator and webhook, and the component."""
    installed = install_into(cluster, also=(Overlay.ET_OPERATOR,))
    for resource in (SCALE_INS, SCALE_OUTS):
        established(cluster, f"crd/{resource.plural}.{resource.group}")
    with (
        Operator.start(cluster, qps=0, flags=["--threadiness=8"]),
        Webhook.start(cluster, installed),
    ):
        until(lambda: called(cluster))
        yield installed


@pytest.fixture
def elastic(cluster: Cluster, with_requests: Installed) -> Iterator[Controller]:
    """A controller that carries out requests."""
    with Controller.start(cluster, with_requests, "--component=et-operator") as running:
        yield running


@pytest.fixture
def job(client: ApiWriter, namespace: str) -> Job:
    """The job of the README."""
    return Job(client=client, namespace=namespace, name=NAME)


async def ask(job: Job, resource: Resource, of: str = "", **parts: Any) -> str:
    """Create a request, and return its name."""
    metadata = {key: parts.pop(key) for key in ("name", "generateName") if key in parts}
    spec = {"selector": {"name": of or job.name}, **parts}
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }
    answer = await job.client.create_object(resource.path(job.namespace), body=body)
    name: str = msgspec.json.decode(answer)["metadata"]["name"]
    return name


async def read(job: Job, resource: Resource, name: str) -> Object:
    found: Object = msgspec.json.decode(await job.client.get(resource.path(job.namespace, name)))
    return found


async def ended(job: Job, resource: Resource, name: str) -> tuple[str, str]:
    """Wait for the end of a request, and return its phase and why."""

    async def look() -> Object:
        found: Object = (await read(job, resource, name)).get("status", {})
        return found

    status = await seen(
        look,
        lambda status: status.get("phase") in ("ScaleSucceeded", "ScaleFailed"),
        f"end of {name}",
    )
    last = status["conditions"][-1]
    assert last["type"] == status["phase"]
    return status["phase"], last["message"]


async def told(job: Job, name: str, event: tuple[str, str, str]) -> None:
    """Wait for an Event on a request."""

    async def look() -> list[tuple[str, str, str]]:
        raw = await job.client.get(
            EVENTS.path(job.namespace), query={"fieldSelector": f"involvedObject.name={name}"}
        )
        return [
            (one["type"], one["reason"], one["message"])
            for one in msgspec.json.decode(raw)["items"]
        ]

    await seen(look, lambda found: event in found, f"Event of {name}")


async def convert(job: Job, lab: CommandLine, tmp_path: Path) -> None:
    """Create the job that `upgrade convert` makes of the README's."""
    path = tmp_path / "training_job.yaml"
    path.write_text(TRAINING_JOB)
    _, converted, _ = await asyncio.to_thread(lab.streams, "upgrade", "convert", str(path))
    await job.client.create_object(MPI_JOBS.path(job.namespace), body=yaml.safe_load(converted))


@pytest.mark.thorough
@pytest.mark.usefixtures("elastic")
async def test_the_manifests_of_the_readme(job: Job, lab: CommandLine, tmp_path: Path) -> None:
    await convert(job, lab, tmp_path)
    await job.settled(2)

    out = await ask(job, SCALE_OUTS, **OUT)
    full_name = f"ScaleOut:{job.namespace}/{out}"
    assert await ended(job, SCALE_OUTS, out) == ("ScaleSucceeded", f"{full_name} has Succeeded")
    await job.settled(4)
    found = await read(job, SCALE_OUTS, out)
    assert found["status"]["addPods"] == job.workers(2, 3)
    assert [one["type"] for one in found["status"]["conditions"]] == ["Scaling", "ScaleSucceeded"]
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("MPIJob", NAME, True)
    await told(job, out, ("Normal", "ScalingOutSucceeded", f"{full_name} has Succeeded"))

    name = await ask(job, SCALE_INS, **BY_COUNT)
    assert (await ended(job, SCALE_INS, name))[0] == "ScaleSucceeded"
    assert (await read(job, SCALE_INS, name))["status"]["toDeletePods"] == job.workers(3)
    before = await job.settled(3)

    name = await ask(job, SCALE_INS, **BY_POD)
    assert (await ended(job, SCALE_INS, name))[0] == "ScaleSucceeded"
    state = await job.until(
        lambda state: [host.split(":")[0] for host in state.hosts] == job.workers(0, 2), "two"
    )
    for pod in job.workers(0, 2):
        assert state.workers[pod]["metadata"]["uid"] == before.workers[pod]["metadata"]["uid"]
    await job.told("SizeRequested", "3 → 2 workers")
    assert (
        lab.cluster.kubectl("get", "scalein", name, "-n", job.namespace).split()[4]
        == "ScaleSucceeded"
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("elastic")
async def test_one_after_the_other_and_a_reason_for_what_cannot_be(job: Job) -> None:
    await job.create(replicas=2, annotations={**SOON, "mpijob-elastic/max-replicas": "4"})
    await job.settled(2)
    orders = [await ask(job, SCALE_OUTS, name=f"out-{index}", **ONE_MORE) for index in range(3)]
    assert [(await ended(job, SCALE_OUTS, name))[0] for name in orders] == [
        "ScaleSucceeded",
        "ScaleSucceeded",
        "ScaleFailed",
    ]
    await job.settled(4)
    assert await ended(job, SCALE_OUTS, "out-2") == (
        "ScaleFailed",
        f"{NAME} would have 5 workers; its bounds are 1 and 4",
    )
    wrong: list[tuple[Object, str]] = [
        ({"script": "sh x", "toDelete": {"count": 1}}, "spec.script is not run"),
        ({"toDelete": {"podNames": [f"{NAME}-worker-7"]}}, f"{NAME} has no worker {NAME}-worker-7"),
        (
            {"of": "nothing", "toDelete": {"count": 1}},
            f"there is no MPIJob {job.namespace}/nothing",
        ),
    ]
    for parts, why in wrong:
        name = await ask(job, SCALE_INS, generateName="in-", **parts)
        phase, said = await ended(job, SCALE_INS, name)
        assert phase == "ScaleFailed"
        assert said.startswith(why)
        await told(job, name, ("Warning", "ScalingInFailed", said))
    await job.settled(4)


@pytest.mark.thorough
@pytest.mark.usefixtures("elastic")
async def test_workers_that_do_not_come_in_time_are_taken_back(job: Job) -> None:
    await job.create(replicas=2, annotations=SOON, worker_spec={"nodeSelector": {}})
    await job.settled(2)
    await job.limit(4)
    name = await ask(job, SCALE_OUTS, name="out", toAdd={"count": 2}, timeout=2)
    late = f"{NAME}-worker-2, {NAME}-worker-3 did not all start within 2 s, so all were taken back"
    assert await ended(job, SCALE_OUTS, name) == ("ScaleFailed", late)
    await job.settled(2)


@pytest.mark.thorough
async def test_a_killed_controller_carries_on(
    job: Job, cluster: Cluster, with_requests: Installed
) -> None:
    await job.create(replicas=2, annotations=SOON)
    with Controller.start(cluster, with_requests, "--component=et-operator") as first:
        await job.settled(2)
        names = [await ask(job, SCALE_OUTS, name=f"out-{index}", **ONE_MORE) for index in range(3)]
        await seen(job.state, lambda state: state.replicas > 2, "the first size")
        first.kill()
    orphan = await ask(job, SCALE_INS, of="nothing", name="in", toDelete={"count": 1})
    with Controller.start(cluster, with_requests, "--component=et-operator"):
        for name in names:
            assert (await ended(job, SCALE_OUTS, name))[0] == "ScaleSucceeded"
        assert (await ended(job, SCALE_INS, orphan))[0] == "ScaleFailed"
        await job.settled(5)


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("--component=et-operator",)])
async def test_without_the_option_and_beside_et_operator_nothing_is_written(
    job: Job, cluster: Cluster, with_requests: Installed, options: tuple[str, ...]
) -> None:
    theirs = definition(TRAINING_JOBS, status=True)
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(theirs))
    established(cluster, f"crd/{theirs['metadata']['name']}")
    try:
        with Controller.start(cluster, with_requests, *options):
            await job.create(replicas=2, annotations=SOON)
            await job.settled(2)
            names = [await ask(job, SCALE_INS, of=of, **BY_COUNT) for of in (NAME, "nothing")]
            await job.scale(3)  # a look at the job, and at what is about it
            await job.settled(3)
            await job.at_rest()
            for name in names:
                found = await read(job, SCALE_INS, name)
                assert "status" not in found
                assert "ownerReferences" not in found["metadata"]
    finally:
        gone(cluster, f"crd/{theirs['metadata']['name']}")


TO_SIZE = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}}
ANOTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u"}


def owners(*found: Object) -> Object:
    return {"metadata": {"ownerReferences": list(found)}}


@pytest.mark.thorough
async def test_the_controllers_token_can_do_no_more(job: Job, with_requests: Installed) -> None:
    await job.create(replicas=2, annotations={**SOON, "mpijob-elastic/max-replicas": "3"})
    asked = await ask(job, SCALE_INS, **BY_COUNT)
    mpi_job = controller(Identity(name=NAME, uid="u"))
    tried: list[tuple[bool, Resource, str | None, Object]] = [
        (True, SCALE_INS, None, owners(mpi_job)),
        (True, SCALE_INS, "status", {"status": {"phase": "Scaling"}}),
        (False, SCALE_INS, None, owners(mpi_job, ANOTHER)),
        (False, SCALE_INS, None, owners({**mpi_job, "name": "other"})),
        (False, SCALE_INS, None, {"spec": {"toDelete": {"count": 2}}}),
        (False, SCALE_INS, None, {"metadata": {"annotations": {"a": "b"}}}),
        (True, MPI_JOBS, None, TO_SIZE),
        (True, MPI_JOBS, None, {"metadata": {"annotations": {"mpijob-elastic/parked": "0"}}}),
        (True, MPI_JOBS, None, {"metadata": {"annotations": {"mpijob-elastic/scaled-by": "u"}}}),
        (False, MPI_JOBS, None, {"metadata": {"annotations": {"mpijob-elastic/enabled": "true"}}}),
        (False, MPI_JOBS, None, {"spec": {"slotsPerWorker": 2}}),
        (False, MPI_JOBS, None, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}}),
    ]
    async with await connect(
        user_agent="test", kubeconfig=with_requests.controller_kubeconfig
    ) as client:
        for allowed, resource, subresource, body in tried:
            path = resource.path(
                job.namespace, asked if resource is SCALE_INS else NAME, subresource
            )
            with (
                contextlib.nullcontext()
                if allowed
                else pytest.raises((errors.Forbidden, errors.Invalid))
            ):
                await client.patch_object(
                    path, body=body, content_type=MERGE_PATCH, query={"dryRun": "All"}
                )
        with pytest.raises(errors.Forbidden, match="mpijob-elastic-scale-requests"):
            await client.delete_object(SCALE_INS.path(job.namespace, asked))


@pytest.mark.thorough
@pytest.mark.usefixtures("with_requests")
async def test_uninstall_takes_the_rights_and_leaves_the_definitions(client: ApiWriter) -> None:
    _, found = await server.look(client)
    assert ("ClusterRole", "mpijob-elastic-et-operator") in {
        (one.identity.kind, one.identity.name) for one in found
    }
    assert server.DEFINITION not in {one.identity.kind for one in found}
