"""`install` and `upgrade apply`, each with its way back: what holds for both, on a lab of their own."""

import asyncio
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.lab.command_line import INSTALL, ROLLBACK, UNINSTALL, UPGRADE, CommandLine
from tests.lab.deaths import killed_and_run_again

pytestmark = pytest.mark.lab
WORKERS = {"Launcher": {"replicas": 1, "template": {}}, "Worker": {"replicas": 2}}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A command that makes the cluster elastic, and the command that takes that back."""

    put: tuple[str, ...]
    take: tuple[str, ...]


INSTALLATION = Tool(put=INSTALL, take=UNINSTALL)
UPGRADES = Tool(put=UPGRADE, take=ROLLBACK)
SUBRESOURCE = Tool(put=("upgrade", "scale"), take=("upgrade", "scale", "--remove"))
BOTH = pytest.mark.parametrize("tool", [INSTALLATION, UPGRADES], ids=["install", "upgrade"])


@pytest.mark.parametrize(
    ("tool", "definition"),
    [
        pytest.param(UPGRADES, "v0.2.3", id="upgrade of v0.2.3's definition"),
        pytest.param(UPGRADES, "administrator", id="upgrade of another", marks=pytest.mark.thorough),
        pytest.param(INSTALLATION, "v0.2.3", id="install beside v0.2.3's definition", marks=pytest.mark.thorough),
        pytest.param(INSTALLATION, "administrator", id="install beside another", marks=pytest.mark.thorough),
    ],
)
def test_there_and_back_leaves_nothing_but_versions(lab: CommandLine, tool: Tool, definition: str) -> None:
    lab.fresh(definition)
    lab.create_job(mpiReplicaSpecs=WORKERS)
    before = lab.world()
    lab.done(*tool.put)
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=3")
    assert lab.cluster.kubectl("get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.replicas}") == "3"
    if tool is UPGRADES:
        assert "upgrade: applied" in lab.run("upgrade", "status")[1]
    if tool is UPGRADES and definition == "v0.2.3":
        columns = lab.cluster.kubectl("get", "-n", "jobs", "mpijobs").splitlines()[0].split()
        assert columns == ["NAME", "STATE", "DESIRED", "ACTIVE", "ELASTIC", "AGE"]
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=2")
    said = lab.done(*tool.take)
    assert said.index("deleted     MutatingWebhookConfiguration") < said.index("deleted     Deployment")
    assert lab.world() == before
    assert lab.run("upgrade", "status")[0] == 1
    assert "Nothing is installed." in lab.done(*UNINSTALL)


@BOTH
@pytest.mark.thorough
def test_a_second_time_nothing_changes(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("administrator")
    lab.done(*tool.put)
    before = lab.world()
    said = lab.done(*tool.put)
    assert not re.search(r"^(created|configured|deleted) ", said, re.MULTILINE), said
    assert lab.world() == before


@BOTH
@pytest.mark.thorough
def test_a_dry_run_shows_the_change_and_writes_nothing(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("administrator")
    before = lab.world()
    assert re.search(r"\+ +specReplicasPath: \.spec\.mpiReplicaSpecs", lab.done(*tool.put, "--dry-run"))
    assert lab.world() == before
    lab.done(*tool.put)
    before = lab.world()
    assert re.search(r"- +specReplicasPath: \.spec\.mpiReplicaSpecs", lab.done(*tool.take, "--dry-run"))
    assert lab.world() == before


@pytest.mark.thorough
def test_without_an_answer_nothing_is_written(lab: CommandLine) -> None:
    lab.fresh("administrator")
    for asks, first in ((UPGRADE, None), (UNINSTALL, INSTALL), (ROLLBACK, UPGRADE)):
        if first:
            lab.done(*first)
        before = lab.world()
        lab.refused(*(word for word in asks if word != "--yes"))
        assert lab.world() == before


@BOTH
@pytest.mark.thorough
def test_without_rights_nothing_is_written(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("administrator")
    nobody = lab.cluster.service_account_kubeconfig("jobs", "default")
    for command, first in ((tool.put, None), (tool.take, tool.put)):
        if first:
            lab.done(*first)
        before = lab.world()
        said = lab.refused(*command, kubeconfig=nobody)
        assert "may not" in said or "Forbidden" in said
        assert lab.world() == before


@pytest.mark.thorough
def test_the_first_time_an_image_is_named(lab: CommandLine) -> None:
    lab.fresh("administrator")
    before = lab.world()
    for command in (("install",), ("install", "--dry-run"), ("upgrade", "apply", "--yes")):
        assert "no image runs yet, so name the one to run: --image REPOSITORY/" in lab.refused(*command)
    assert lab.world() == before


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tool", [INSTALLATION, UPGRADES, SUBRESOURCE], ids=["install", "upgrade", "scale alone"])
def test_killed_at_any_write_and_run_again_it_comes_to_the_same_end(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("v0.2.3")
    lab.create_job(mpiReplicaSpecs=WORKERS)
    if tool is SUBRESOURCE:
        lab.install("--no-scale")
    before = lab.world()

    async def typed(command: tuple[str, ...], kubeconfig: Path) -> None:
        await asyncio.to_thread(lab.run, *command, kubeconfig=kubeconfig)

    for command, leads_to in ((tool.put, True), (tool.take, False)):
        asyncio.run(killed_and_run_again(lab.cluster, partial(typed, command)))
        assert lab.is_scalable() == leads_to
    assert lab.world() == before
