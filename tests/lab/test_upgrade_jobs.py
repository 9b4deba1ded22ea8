"""`install`, its canary, `adopt` and `uninstall --traces` beside jobs that run, on a lab of their own."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.operator.process import Operator
from lab.ports import free_ports
from lab.registration import by_service, called, register
from lab.replicas import Controller, Webhook
from mpijob_elastic import names
from mpijob_elastic.install import Refused, installer, server
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Ask, Manifest, ObjectChange
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.names import SUSPEND
from tests.lab import second_writer
from tests.lab.deaths import ended, killed_and_run_again
from tests.lab.job import HOROVODRUN, MPIRUN, Job
from tests.lab.suspended import held
from tests.lab.upgrades import deploy_operator
from tests.lab.waiting import PATIENCE, until
from upgrade import adopt, canary, preflight, record, scale, traces
from upgrade.findings import Advice, Report
from upgrade.uninstall import Uninstallation

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]
AT_ONCE = installer.InstallOptions(wait=False)
PLAN = InstallPlan(image="none")
CANARY = "canary"  # a namespace that does not exist
HOOKS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"


def yes() -> bool:
    return True


def no() -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Reachable(InstallPlan):
    """An installation whose Service leads to a port of this machine."""

    port: int

    def manifests(self) -> list[Manifest]:
        return [by_service(manifest, self.port) for manifest in super().manifests()]


class Lab:
    """The lab with an operator, and our programs as processes in place of the pretended pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.said: list[str] = []
        self.running = ExitStack()
        self.controller: Controller | None = None

    async def install(self, client: ApiWriter) -> None:
        """Install, and start what runs in the pods of a real cluster."""
        await self.install_objects(client)
        await asyncio.to_thread(self._start)

    async def install_objects(self, client: ApiWriter) -> None:
        await installer.install(client, PLAN, AT_ONCE, say=self.say)
        await scale.offer(client, dry_run=False, seconds=PATIENCE, say=self.say)

    def _start(self) -> None:
        # The API server reaches no Service here, so the same webhooks are registered at a port.
        self.cluster.kubectl("delete", HOOKS, "-l", f"app.kubernetes.io/name={names.PROGRAM}")
        [port] = free_ports(1)
        register(self.cluster, port=port)
        self._run(port)
        until(lambda: called(self.cluster))

    async def install_as_a_user(self, client: ApiWriter) -> None:
        """Install, wait and fly the canary, with the webhook behind its Service."""
        [port] = free_ports(1)

        def say(news: ObjectChange | str) -> None:
            self.say(news)
            # A Deployment comes after the rights, and before what is waited for.
            if (
                isinstance(news, ObjectChange)
                and news.identity.kind == "Deployment"
                and self.controller is None
            ):
                self._run(port)

        plan = Reachable(port=port, image="none")
        await canary.check(client)
        await installer.install(client, plan, installer.InstallOptions(timeout=PATIENCE), say=say)
        await scale.offer(client, dry_run=False, seconds=PATIENCE, say=self.say)
        await canary.run(client, CANARY, image="none", seconds=PATIENCE, say=self.say)

    def _run(self, port: int) -> None:
        one = Installed(
            controller_kubeconfig=self.cluster.service_account_kubeconfig(
                names.NAMESPACE, names.CONTROLLER
            ),
            webhook_kubeconfig=self.cluster.service_account_kubeconfig(
                names.NAMESPACE, names.WEBHOOK
            ),
            webhook_port=port,
        )
        self.running.enter_context(Webhook.start(self.cluster, one))
        self.controller = self.running.enter_context(Controller.start(self.cluster, one))

    async def uninstall(self, client: ApiWriter) -> None:
        """Take it back; the programs end when their Deployment goes, as pods do."""
        planned = await Uninstallation.prepare(client, takes_scale=True, takes_traces=True)
        await planned.run(seconds=PATIENCE, say=self.say)
        self.running.close()

    async def adopt(self, job: Job, *, ask: Ask = yes) -> bool:
        return await adopt.adopt(
            job.client,
            job.namespace,
            job.name,
            ask=ask,
            say=self.say,
            now=time.time(),
            timeout=PATIENCE,
        )

    def say(self, news: ObjectChange | str) -> None:
        self.said.append(str(news))
        if isinstance(news, ObjectChange) and (news.identity.kind, news.outcome) == (
            "Deployment",
            "deleted",
        ):
            self.running.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with (
        Cluster.start(name=f"pytest-{os.getpid()}-upgrade-jobs") as running,
        Operator.start(running, qps=0),
    ):
        yield running


@pytest.fixture
async def lab(cluster: Cluster, client: ApiWriter) -> AsyncIterator[Lab]:
    """A cluster where nothing of ours is there."""
    one = Lab(cluster)
    with one.running:
        yield one
        cluster.kubectl("delete", "mpijobs", "--all", "-A")
        await one.uninstall(client)


@pytest.mark.thorough
async def test_install_with_a_canary_as_a_user_runs_it(lab: Lab, client: ApiWriter) -> None:
    await lab.install_as_a_user(client)
    assert lab.said[-1] == "canary: launcher, ConfigMap and scale subresource are as they should be"
    found = verdicts(await look(client))
    assert found["webhook"] == (Advice.GO, "installed; it answers")
    assert found["definition"][1].endswith("scalable")
    await gone(client)


@pytest.mark.thorough
async def test_a_canary_that_is_killed_at_any_write_leaves_nothing(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    await lab.install(client)

    async def fly(kubeconfig: Path, where: str) -> None:
        async with await connect(user_agent="mpijob-elastic-test", kubeconfig=kubeconfig) as broken:
            with contextlib.suppress(errors.Unreachable):
                await canary.run(broken, where, image="none", seconds=PATIENCE, say=lab.say)

    assert not await ended(
        lab.cluster, partial(fly, where=CANARY), before=2
    )  # it has made a namespace
    await killed_and_run_again(lab.cluster, partial(fly, where=namespace))
    assert "as they should be" in lab.said[-1]
    await canary.remove_all(client)
    await gone(client)


@pytest.mark.thorough
async def test_the_canary_says_what_is_missing_and_is_removed(lab: Lab, client: ApiWriter) -> None:
    await lab.install_objects(client)
    with pytest.raises(Refused, match="the webhook was not called"):
        await canary.run(client, CANARY, image="none", seconds=2.0, say=lab.say)
    await gone(client)


@pytest.mark.thorough
async def test_the_canary_leaves_namespaces_and_jobs_of_others_alone(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    await lab.install_objects(client)
    theirs = Job(client=client, namespace=namespace, name=canary.JOB)
    await theirs.create(replicas=1)
    uid = await started(theirs)
    for where in (namespace, names.NAMESPACE):
        with pytest.raises(Refused, match="canary"):
            await canary.run(client, where, image="none", seconds=2.0, say=lab.say)
    assert await started(theirs) == uid
    await read(client, resources.NAMESPACES, None, namespace)
    assert await record.read(client) is not None


@pytest.mark.thorough
async def test_a_running_job_is_adopted_on_request(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    before = await started(job)
    await lab.install(client)
    report = await look(client)
    assert [(one.name, one.readiness) for one in report.jobs] == [("train", "restart")]
    assert report.verdict is Advice.CARE
    assert not await lab.adopt(job, ask=no)
    assert await started(job) == before
    assert await lab.adopt(job)
    assert any("last checkpoint" in line for line in lab.said)
    assert await started(job) != before
    await job.scale(3)
    await job.settled(3)
    assert await lab.adopt(job)
    assert "needs no restart" in lab.said[-1]


@pytest.mark.thorough
async def test_what_cannot_be_adopted_is_refused(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    job = Job(client=client, namespace=namespace, name="plain")
    await job.create(replicas=1, command=MPIRUN)
    await started(job)
    with pytest.raises(Refused, match="cannot be adopted"):
        await lab.adopt(job)
    with pytest.raises(Refused, match="there is no MPIJob"):
        await lab.adopt(Job(client=client, namespace=namespace, name="other"))
    elastic = Job(client=client, namespace=namespace, name="elastic")
    await elastic.create(replicas=1)
    await started(elastic)
    with pytest.raises(Refused, match="`mpijob-elastic install` first"):
        await lab.adopt(elastic)


@pytest.mark.thorough
async def test_removal_in_the_middle_of_a_drain_leaves_everything_true(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    await lab.install(client)
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=3, annotations={names.DRAIN_TIMEOUT: "24h"})
    await job.settled(3)
    # Nobody answers for the processes in it, so it is not seen to be drained.
    assert lab.controller is not None
    await job.scale(1)
    before = await job.until(
        lambda state: state.hosts == ["train-worker-0:1"], "two workers left the list"
    )
    await lab.uninstall(client)
    after = await job.state()
    assert {name: pod["metadata"]["uid"] for name, pod in after.workers.items()}.items() >= {
        "train-worker-0": before.workers["train-worker-0"]["metadata"]["uid"]
    }.items()
    assert after.hosts == ["train-worker-0:1"]
    assert after.hostfile == ["train-worker-0 slots=1"]
    assert set(after.exec_names) >= set(after.workers)
    assert after.refreshed is None
    assert after.launcher is not None
    left = await traces.look(client)
    assert left.kept == (f"{namespace}/train",)
    assert list(left.surplus) == [
        f"{namespace}/{name}" for name in sorted(after.running) if name != "train-worker-0"
    ]
    # When its launcher has ended, nothing of ours need stay.
    await job.set_status("train-launcher", {"phase": "Failed"})
    await lab.uninstall(client)
    config = await read(client, resources.CONFIG_MAPS, namespace, "train-config")
    assert names.KEY_DISCOVER_HOSTS not in config["data"]
    assert names.MEMORY not in config["metadata"].get("annotations", {})


@pytest.mark.thorough
async def test_removal_leaves_no_pod_at_a_gate(lab: Lab, client: ApiWriter, namespace: str) -> None:
    await lab.install(client)
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=1, annotations={SUSPEND: "true"})
    await job.until(lambda state: held(state, 1), "gated pods")
    pods = f"{namespace}/train-launcher, {namespace}/train-worker-0"
    waiting = rf"gate of ours.*: {pods}\. .* `mpijob-elastic resume train -n {namespace}`"
    with pytest.raises(Refused, match=waiting):
        await lab.uninstall(client)
    await job.annotate(suspend=None)
    await job.settled(1)
    planned = await Uninstallation.prepare(client, takes_scale=True, takes_traces=True)
    await job.annotate(suspend="true")
    await job.until(lambda state: held(state, 1), "gated pods, after the user was asked")
    with pytest.raises(Refused, match=waiting):
        await planned.run(seconds=PATIENCE, say=lab.say)
    _, found = await server.look(client)
    assert set(planned.found) <= set(found)
    await job.annotate(suspend=None)
    after = await job.settled(1)
    await lab.uninstall(client)
    assert (await job.state()).running == after.running


@pytest.mark.thorough
async def test_what_an_elastic_operator_took_over_is_left_to_it(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    await lab.install(client)
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    await job.settled(2)
    operator = deploy_operator(lab.cluster, "mpioperator/mpi-operator:v0.3.0")
    try:
        async with second_writer.writing(lab.cluster.kubeconfig, namespace):
            before = await job.until(
                lambda state: names.is_handed_over(state.notices), "we gave way"
            )
            assert before.memory
            report = await look(client)
            assert [(one.name, one.readiness) for one in report.jobs] == [("train", "foreign")]
            verdict, said = verdicts(report)["operator"]
            assert verdict is Advice.NO
            assert "leave the jobs to it by `mpijob-elastic uninstall --traces`" in said
            await lab.uninstall(client)
            after = await job.state()
            assert (after.hosts, after.exec_names) == (
                [f"{name}:1" for name in job.workers(0, 1)],
                job.workers(0, 1),
            )
            assert (after.notices, after.memory, after.refreshed) == ("", "", None)
            left = await traces.look(client)
            assert (left.removals, left.kept) == ((), ())
    finally:
        lab.cluster.kubectl("delete", "namespace", operator)


@pytest.mark.thorough
async def test_live_jobs_are_scaled_during_the_installation(
    lab: Lab, client: ApiWriter, namespace: str
) -> None:
    kinds = ("elastic", "plain", "bounded", "off")
    jobs = [Job(client=client, namespace=namespace, name=kind) for kind in kinds]
    annotations = {
        "bounded": {names.MIN_REPLICAS: "1", names.MAX_REPLICAS: "4"},
        "off": {names.ENABLED: "false"},
    }
    for job in jobs:
        command = MPIRUN if job.name == "plain" else HOROVODRUN
        await job.create(replicas=2, annotations=annotations.get(job.name), command=command)
    before = {job.name: await started(job) for job in jobs}
    scaling = asyncio.create_task(scale_again_and_again(jobs))
    await lab.install(client)
    late = Job(client=client, namespace=namespace, name="late")
    await late.create(replicas=2)
    await late.settled(2)
    scaling.cancel()
    await asyncio.gather(scaling, return_exceptions=True)
    # No launcher that had started was touched, and no worker that its job asks for is gone or
    # another one.
    for job in jobs:
        assert await started(job) == before[job.name]
        state = await job.until(
            lambda state, job=job: set(state.workers) >= set(job.workers(*range(state.replicas))),  # type: ignore[misc]
            "as many workers as asked for",
        )
        assert state.exec_names[:2] == job.workers(0, 1)
    await lab.uninstall(client)
    left = await traces.look(client)
    assert left.removals == ()
    assert left.kept == (f"{namespace}/late",)
    for job in jobs:
        config = await read(client, resources.CONFIG_MAPS, namespace, names.config_map(job.name))
        assert names.KEY_DISCOVER_HOSTS not in config["data"]
        assert config["data"].keys() == {names.KEY_HOSTFILE, names.KEY_KUBEXEC}


async def look(client: ApiWriter) -> Report:
    return await preflight.look(client, InstallPlan(), now=time.time())


def verdicts(report: Report) -> dict[str, tuple[Advice, str]]:
    """The verdict and the text of each topic; of several findings the worst."""
    return {
        one.topic: (one.verdict, one.text)
        for one in sorted(report.findings, key=lambda one: one.verdict)
    }


async def scale_again_and_again(jobs: list[Job]) -> None:
    """Slower than the operator's queue of 10 a second."""
    for replicas in itertools.cycle((3, 1, 4, 2)):
        for job in jobs:
            with contextlib.suppress(errors.Invalid, errors.Forbidden):
                await job.scale(replicas)
            await asyncio.sleep(0.2)


async def started(job: Job) -> str:
    """The uid of its launcher, which runs."""
    state = await job.until(
        lambda state: (
            state.launcher is not None and state.launcher["status"].get("phase") == "Running"
        ),
        "a launcher",
    )
    assert state.launcher is not None
    uid: str = state.launcher["metadata"]["uid"]
    return uid


async def gone(client: ApiWriter) -> None:
    """Wait until the canary's namespace is gone."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.get(resources.NAMESPACES.path(name=CANARY))
            except errors.NotFound:
                return
            await asyncio.sleep(0.1)


async def read(
    client: ApiWriter, resource: resources.Resource, namespace: str | None, name: str
) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = msgspec.json.decode(
        await client.get(resource.path(namespace, name))
    )
    return found
