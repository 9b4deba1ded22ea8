"""`mpijob-elastic upgrade apply` and `rollback` on a lab of their own, for they change what belongs to the cluster."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names
from mpijob_elastic.install import installer
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.upgrades import CRD, define, deploy_operator, interrupted, whole
from tests.product.upgrade.definitions import v1
from upgrade import apply, record, rollback, status
from upgrade.apply import Options

pytestmark = pytest.mark.lab
# The webhook is a pretended pod here, which puts no CA into its configurations.
OPTIONS = Options(install=installer.Options(wait=False))
PLAN = Plan(image="none")


class Lab:
    """The lab, and the commands as functions."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.said: list[str] = []

    async def apply(self, client: ApiWriter, options: Options = OPTIONS, plan: Plan | None = None) -> bool:
        self.said = []
        return await apply.apply(client, plan or PLAN, options, ask=yes, say=self.say)

    async def rollback(self, client: ApiWriter, *, dry_run: bool = False) -> bool:
        self.said = []
        return await rollback.rollback(client, ask=yes, dry_run=dry_run, timeout=240, say=self.say)

    def say(self, news: object) -> None:
        self.said.append(str(news))

    def run(self, *arguments: str, group: tuple[str, ...] = ("upgrade",)) -> tuple[int, str]:
        process = self.start(*group, *arguments)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-m", "mpijob_elastic", *arguments]
        return subprocess.Popen(
            [*command, f"--kubeconfig={self.cluster.kubeconfig}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def definition(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.cluster.kubectl("get", CRD, "-o", "json"))
        return found


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Cluster.start(name=f"pytest-{os.getpid()}-upgrade") as cluster:
        cluster.kubectl("create", "namespace", "jobs")
        yield Lab(cluster)


@pytest.fixture
async def client(lab: Lab) -> AsyncIterator[ApiWriter]:
    async with await connect(user_agent="mpijob-elastic-test", kubeconfig=lab.cluster.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def administrators(lab: Lab, client: ApiWriter) -> Lab:
    """A cluster whose definition an administrator wrote; nothing of ours is there."""
    await lab.rollback(client)
    define(lab.cluster, "administrator")
    return lab


@pytest.fixture
async def legacy(lab: Lab, client: ApiWriter) -> Lab:
    """A cluster with the definition of v0.2.3's manifest; nothing of ours is there."""
    await lab.rollback(client)
    define(lab.cluster, "v0.2.3")
    return lab


def yes() -> bool:
    return True


def no() -> bool:
    return False


def create_job(lab: Lab, name: str = "train") -> None:
    specs = {"Launcher": {"replicas": 1, "template": {}}, "Worker": {"replicas": 2, "extra": {"kept": True}}}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "MPIJob",
        "metadata": {"name": name, "namespace": "jobs"},
        "spec": {"mpiReplicaSpecs": specs},
    }
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(job))


async def test_there_and_back_leaves_nothing_but_versions(legacy: Lab, client: ApiWriter) -> None:
    create_job(legacy)
    before = whole(legacy.cluster)
    await legacy.apply(client)
    assert (await status.look(client)).phase == "applied"
    legacy.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=3")
    assert legacy.cluster.kubectl("get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.replicas}") == "3"
    columns = legacy.cluster.kubectl("get", "-n", "jobs", "mpijobs").splitlines()[0].split()
    assert columns == ["NAME", "STATE", "DESIRED", "ACTIVE", "ELASTIC", "AGE"]
    legacy.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=2")
    await legacy.rollback(client)
    assert whole(legacy.cluster) == before


@pytest.mark.thorough
async def test_an_administrators_definition_comes_back_too(administrators: Lab, client: ApiWriter) -> None:
    before = whole(administrators.cluster)
    await administrators.apply(client)
    await administrators.rollback(client)
    assert whole(administrators.cluster) == before


@pytest.mark.thorough
async def test_the_selector_is_kept(administrators: Lab, client: ApiWriter) -> None:
    await administrators.apply(client)
    create_job(administrators, "selected")
    status = {"status": {"replicaStatuses": {"Worker": {"active": 1, "selector": "a=b"}}}}
    patch = ("patch", "-n", "jobs", "mpijob/selected", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    administrators.cluster.kubectl(*patch)
    scale = json.loads(
        administrators.cluster.kubectl("get", "-n", "jobs", "mpijob/selected", "--subresource=scale", "-o", "json")
    )
    assert scale["status"] == {"replicas": 1, "selector": "a=b"}


@pytest.mark.thorough
async def test_a_structural_schema_keeps_what_users_wrote(legacy: Lab, client: ApiWriter) -> None:
    create_job(legacy)
    await legacy.apply(client, Options(install=installer.Options(wait=False), structural=True))
    assert "preserveUnknownFields" not in json.dumps(legacy.definition()["spec"]).replace("x-kubernetes-", "")
    legacy.cluster.kubectl("annotate", "-n", "jobs", "mpijob/train", "touched=yes")
    extra = legacy.cluster.kubectl("get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.extra.kept}")
    assert extra == "true"
    with pytest.raises(LabError, match="greater than or equal to 1"):
        legacy.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=0")
    await legacy.rollback(client)
    assert any("does not accept the former schema any more" in line for line in legacy.said)
    assert "scale" not in v1(legacy.definition())["subresources"]


@pytest.mark.thorough
async def test_dry_run_writes_nothing(legacy: Lab, client: ApiWriter) -> None:
    before = whole(legacy.cluster)
    await legacy.apply(client, Options(install=installer.Options(wait=False, dry_run=True)))
    assert any("specReplicasPath" in line for line in legacy.said)
    assert whole(legacy.cluster) == before
    await legacy.apply(client)
    applied = whole(legacy.cluster)
    await legacy.rollback(client, dry_run=True)
    assert whole(legacy.cluster) == applied


@pytest.mark.thorough
async def test_without_a_yes_nothing_is_written(legacy: Lab, client: ApiWriter) -> None:
    before = whole(legacy.cluster)
    assert not await apply.apply(client, PLAN, OPTIONS, ask=no, say=legacy.say)
    assert whole(legacy.cluster) == before


@pytest.mark.thorough
async def test_a_second_time_nothing_changes(legacy: Lab, client: ApiWriter) -> None:
    await legacy.apply(client)
    kept = await record.read(client)
    before = whole(legacy.cluster)
    await legacy.apply(client)
    # An uninstallation would take the record with it.
    code, output = legacy.run("uninstall", "--yes", group=())
    assert (code, "`mpijob-elastic upgrade rollback`" in output) == (1, True), output
    assert whole(legacy.cluster) == before
    assert await record.read(client) == kept


@pytest.mark.thorough
async def test_an_elastic_operator_is_left_alone(legacy: Lab, client: ApiWriter) -> None:
    namespace = deploy_operator(legacy.cluster, "mpioperator/mpi-operator:v0.3.0")
    try:
        before = whole(legacy.cluster)
        with pytest.raises(Refused, match=r"Deployment .*mpi-operator.*0\.3\.0.*changes the size of jobs itself"):
            await legacy.apply(client)
        assert whole(legacy.cluster) == before
    finally:
        legacy.cluster.kubectl("delete", "namespace", namespace)


@pytest.mark.thorough
async def test_a_definition_that_stores_v2beta1_is_left_alone(lab: Lab, client: ApiWriter) -> None:
    await lab.rollback(client)
    define(lab.cluster, "v0.3.0")
    before = whole(lab.cluster)
    with pytest.raises(Refused, match="v2beta1"):
        await lab.apply(client)
    assert whole(lab.cluster) == before


@pytest.mark.thorough
async def test_an_installation_from_before_comes_back(legacy: Lab, client: ApiWriter) -> None:
    await installer.install(client, Plan(image="mpijob-elastic:old"), OPTIONS.install, say=legacy.say)
    before = whole(legacy.cluster)
    await legacy.apply(client, plan=Plan(image="mpijob-elastic:new"))
    await legacy.rollback(client)
    assert whole(legacy.cluster) == before
    code, output = legacy.run("rollback", "--yes")
    assert (code, "`mpijob-elastic uninstall` removes" in output) == (1, True)
    assert legacy.run("uninstall", "--yes", group=())[0] == 0


@pytest.mark.thorough
async def test_a_damaged_record_is_refused(legacy: Lab, client: ApiWriter) -> None:
    await legacy.apply(client)
    secret = json.loads(legacy.cluster.kubectl("get", "-n", names.NAMESPACE, f"secret/{record.NAME}", "-o", "json"))
    whole_data = dict(secret["data"])
    secret["data"]["sha256"] = base64.b64encode(b"0" * 64).decode()
    replace(legacy, secret)
    with pytest.raises(Refused, match="changed or damaged"):
        await legacy.rollback(client)
    assert "changed or damaged" in (await status.look(client)).damaged
    assert legacy.run("uninstall", "--dry-run", group=())[0] == 0
    secret["data"] = whole_data
    replace(legacy, secret)
    await legacy.rollback(client)


def replace(lab: Lab, secret: dict[str, Any]) -> None:
    lab.cluster.kubectl("delete", "-n", names.NAMESPACE, f"secret/{record.NAME}")
    for key in ("resourceVersion", "uid"):
        secret["metadata"].pop(key, None)
    lab.cluster.kubectl("create", "-f", "-", stdin=json.dumps(secret))


@pytest.mark.timeout(1800)
@pytest.mark.thorough
async def test_can_be_killed_after_every_write_and_run_again(legacy: Lab, client: ApiWriter) -> None:
    create_job(legacy)
    before = whole(legacy.cluster)
    first = None
    for at in range(1, 200):
        ended = await interrupted(legacy.cluster, legacy.apply, at=at)
        kept = await record.read(client)
        first = first or (kept.record if kept else None)
        assert (kept.record if kept else None) == first
        if ended:
            break
    assert (await status.look(client)).phase == "applied"
    for at in range(1, 200):
        if await interrupted(legacy.cluster, legacy.rollback, at=at):
            break
    assert whole(legacy.cluster) == before


@pytest.mark.thorough
async def test_a_process_that_is_killed_leaves_nothing_undone(legacy: Lab, client: ApiWriter) -> None:
    before = whole(legacy.cluster)
    process = legacy.start("upgrade", "apply", "--yes", "--no-wait", "--no-canary", "--image=none")
    assert process.stdout is not None
    for line in process.stdout:
        if "is recorded in Secret" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    code, output = legacy.run("apply", "--yes", "--no-wait", "--no-canary", "--image=none")
    assert code == 0, output
    assert "a rollback goes back to that" in output
    assert legacy.run("status")[0] in {0, 3}
    code, output = legacy.run("rollback", "--yes")
    assert code == 0, output
    assert whole(legacy.cluster) == before
    assert legacy.run("status")[0] == 1
