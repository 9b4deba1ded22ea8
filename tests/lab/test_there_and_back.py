"""There and back by `install` and `uninstall`, also with `--traces`, and by `upgrade scale`, on a lab of their own."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from tests.lab.command_line import INSTALL, UNINSTALL, CommandLine
from tests.lab.deaths import killed_and_run_again
from tests.lab.scalable import told
from tests.lab.versions import needs
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.thorough]
WORKERS = {"Launcher": {"replicas": 1, "template": {}}, "Worker": {"replicas": 2}}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A command that makes the cluster elastic, and the command that takes that back."""

    put: tuple[str, ...]
    take: tuple[str, ...]


INSTALLATION = Tool(put=INSTALL, take=UNINSTALL)
WITH_TRACES = Tool(put=INSTALL, take=(*UNINSTALL, "--traces"))
SUBRESOURCE = Tool(put=("upgrade", "scale"), take=("upgrade", "scale", "--remove"))
BOTH = pytest.mark.parametrize(
    "tool", [INSTALLATION, WITH_TRACES], ids=["install", "install, with traces"]
)


def show(lab: CommandLine) -> None:
    """Annotate the job as the controller does."""
    lab.cluster.kubectl("annotate", "-n", "jobs", "mpijob/train", f"{names.STATUS}=waiting")


@pytest.mark.parametrize(
    ("tool", "definition"),
    [
        pytest.param(WITH_TRACES, "v0.2.3", id="beside v0.2.3's definition, with traces"),
        pytest.param(WITH_TRACES, "administrator", id="beside another, with traces"),
        pytest.param(INSTALLATION, "administrator", id="beside another"),
    ],
)
def test_there_and_back_leaves_nothing_but_versions(
    lab: CommandLine, tool: Tool, definition: str
) -> None:
    lab.fresh(definition)
    lab.create_job(mpiReplicaSpecs=WORKERS)
    before = lab.world()
    lab.done(*tool.put)
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=3")
    assert (
        lab.cluster.kubectl(
            "get", "-n", "jobs", "mpijob/train", "-o", "jsonpath={..Worker.replicas}"
        )
        == "3"
    )
    if definition == "v0.2.3":
        columns = lab.cluster.kubectl("get", "-n", "jobs", "mpijobs").splitlines()[0].split()
        assert columns == ["NAME", "STATE", "DESIRED", "ACTIVE", "PHASE", "AGE"]
    lab.cluster.kubectl("scale", "-n", "jobs", "mpijob/train", "--replicas=2")
    if tool is WITH_TRACES:
        show(lab)
    said = lab.done(*tool.take)
    assert said.index("deleted     MutatingWebhookConfiguration") < said.index(
        "deleted     Deployment"
    )
    assert lab.world() == before
    assert "Nothing is installed." in lab.done(*tool.take)


def test_traces_of_an_installation_that_is_gone_are_removed_later(lab: CommandLine) -> None:
    lab.fresh("v0.2.3")
    lab.create_job(mpiReplicaSpecs=WORKERS)
    before = lab.world()
    show(lab)
    assert "Nothing is installed." in lab.done(*UNINSTALL)
    assert "To be removed from jobs:\n  MPIJob jobs/train: mpijob-elastic/status" in lab.done(
        *UNINSTALL, "--traces", "--dry-run"
    )
    lab.done(*UNINSTALL, "--traces")
    assert lab.world() == before


def test_a_second_time_nothing_changes(lab: CommandLine) -> None:
    lab.fresh("administrator")
    lab.done(*INSTALL)
    before = lab.world()
    said = lab.done(*INSTALL)
    assert not re.search(r"^(created|configured|deleted) ", said, re.MULTILINE), said
    assert lab.world() == before


@BOTH
def test_a_dry_run_shows_the_change_and_writes_nothing(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("administrator")
    before = lab.world()
    assert re.search(
        r"\+ +specReplicasPath: \.spec\.mpiReplicaSpecs", lab.done(*tool.put, "--dry-run")
    )
    assert lab.world() == before
    lab.done(*tool.put)
    before = lab.world()
    assert re.search(
        r"- +specReplicasPath: \.spec\.mpiReplicaSpecs", lab.done(*tool.take, "--dry-run")
    )
    assert lab.world() == before


def test_without_an_answer_nothing_is_written(lab: CommandLine) -> None:
    lab.fresh("administrator")
    lab.done(*INSTALL)
    before = lab.world()
    for more in ((), ("--traces",)):
        lab.refused("uninstall", *more)
        assert lab.world() == before


@BOTH
def test_without_rights_nothing_is_written(lab: CommandLine, tool: Tool) -> None:
    lab.fresh("administrator")
    nobody = lab.cluster.service_account_kubeconfig("jobs", "default")
    for command, first in ((tool.put, None), (tool.take, tool.put)):
        if first:
            lab.done(*first)
        before = lab.world()
        said = lab.refused(*command, kubeconfig=nobody)
        assert "may not" in said or "forbidden" in said
        assert lab.world() == before


def test_the_first_time_an_image_is_named(lab: CommandLine) -> None:
    lab.fresh("administrator")
    before = lab.world()
    for command in (("install",), ("install", "--dry-run"), ("install", "--canary=jobs")):
        assert "no image runs yet, so name the one to run: --image REPOSITORY/" in lab.refused(
            *command
        )
    assert lab.world() == before


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tool", [WITH_TRACES, SUBRESOURCE], ids=["install", "scale alone"])
def test_killed_at_any_write_and_run_again_it_comes_to_the_same_end(
    lab: CommandLine, tool: Tool
) -> None:
    lab.fresh("v0.2.3")
    lab.create_job(mpiReplicaSpecs=WORKERS)
    if tool is SUBRESOURCE:
        lab.install("--no-scale")
    before = lab.world()

    async def typed(command: tuple[str, ...], kubeconfig: Path) -> None:
        await asyncio.to_thread(lab.run, *command, kubeconfig=kubeconfig)

    for command, leads_to in ((tool.put, True), (tool.take, False)):
        if command is WITH_TRACES.take:
            show(lab)
        asyncio.run(killed_and_run_again(lab.cluster, partial(typed, command)))
        assert lab.is_scalable() == leads_to
    assert lab.world() == before


@needs("ValidatingAdmissionPolicy")
def test_what_a_policy_keeps_is_named_and_holds_up_nothing_else(lab: CommandLine) -> None:
    lab.fresh("administrator")
    for name in ("kept", "train"):
        lab.create_job(name, mpiReplicaSpecs=WORKERS)
    before = lab.world()
    lab.done(*INSTALL)
    marks = (f"{names.STATUS}=waiting", f"{names.SCALED_BY}=u")
    lab.cluster.kubectl("annotate", "-n", "jobs", "mpijob/kept", "mpijob/train", *marks)
    with keeping(lab, "kept", ROLE):
        code, said = lab.run(*WITH_TRACES.take)
    assert (code, "Uninstalled." in said) == (Exit.OTHERWISE, False), said
    lines = " ".join(said.split())
    gone = f"{names.STATUS}, {names.SCALED_BY}"
    assert f"removed from MPIJob jobs/train: {gone}" in lines
    assert f"Not removed from MPIJob jobs/kept: {gone}: 422 Invalid: " in lines
    assert f"Not deleted: ClusterRole {ROLE}: 422 Invalid: " in lines
    assert lines.count(WHY) == 2
    assert lab.world().keys() - before.keys() == {f"ClusterRole /{ROLE}"}
    lab.done(*WITH_TRACES.take)
    assert lab.world() == before


ROLE, WHY = "mpijob-elastic-nodes", "the platform team forbids it"


@contextmanager
def keeping(lab: CommandLine, *kept: str) -> Iterator[None]:
    """Have a policy keep MPIJobs and ClusterRoles of these names as they are, as long as the block lasts."""
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": [does]}
        for group, resource, does in (
            ("kubeflow.org", "mpijobs", "UPDATE"),
            ("rbac.authorization.k8s.io", "clusterroles", "DELETE"),
        )
    ]
    policy = {
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "kept", "expression": f"request.name in {[*kept]}"}],
            "validations": [{"expression": "false", "message": WHY}],
        },
    }
    binding = {
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": "keeping", "validationActions": ["Deny"]},
    }
    head = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": "keeping"},
    }
    items = [{**head, **one} for one in (policy, binding)]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    attempt = ("annotate", "-n", "jobs", "mpijob/kept", "a=b", "--dry-run=server")
    lab.cluster.kubectl("apply", "-f", "-", stdin=text)
    try:
        until(lambda: WHY in told(lab.cluster, *attempt)[1])
        yield
    finally:
        lab.cluster.kubectl("delete", "-f", "-", stdin=text)
    until(lambda: told(lab.cluster, *attempt)[0] == 0)
