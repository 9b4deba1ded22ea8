"""An edit for the next launcher does not reach the driver that runs; nor does the loss of our memory."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic import names
from tests.lab.command_line import CommandLine
from tests.lab.job import HOROVODRUN, MPIRUN, Job, State

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

QUICK = {names.DRAIN_TIMEOUT: "1s"}


def template(command: list[str]) -> dict[str, Any]:
    """An edit of the launcher's template."""
    container = {"name": "launcher", "image": "horovod:test", "command": command}
    return {
        "spec": {
            "mpiReplicaSpecs": {"Launcher": {"template": {"spec": {"containers": [container]}}}}
        }
    }


def editor(cluster: Cluster, namespace: str) -> Path:
    """The kubeconfig of a user with the role `edit` in this namespace, and the same for MPIJobs."""
    bound = (f"--serviceaccount={namespace}:scientist", "-n", namespace)
    cluster.kubectl("create", "serviceaccount", "scientist", "-n", namespace)
    cluster.kubectl("create", "rolebinding", "edit", "--clusterrole=edit", *bound)
    verbs = "--verb=get,list,watch,create,update,patch,delete"
    cluster.kubectl(
        "create", "role", "mpijobs", verbs, "--resource=mpijobs.kubeflow.org", "-n", namespace
    )
    cluster.kubectl("create", "rolebinding", "mpijobs", "--role=mpijobs", *bound)
    return cluster.service_account_kubeconfig(namespace, "scientist")


async def typed(cluster: Cluster, *words: str, kubeconfig: Path) -> tuple[int, str]:
    return await asyncio.to_thread(CommandLine(cluster).run, *words, kubeconfig=kubeconfig)


def items(state: State) -> list[str]:
    """The keys that the launcher mounts."""
    assert state.launcher is not None
    volumes = {volume["name"]: volume for volume in state.launcher["spec"]["volumes"]}
    volume = volumes[names.CONFIG_VOLUME]["configMap"]
    assert "optional" not in volume
    return [item["key"] for item in volume["items"]]


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param({"metadata": {"annotations": {names.ENABLED: "true"}}}, id="enabled"),
        pytest.param(template(HOROVODRUN), id="template"),
    ],
)
@pytest.mark.thorough
async def test_no_edit_cuts_a_plain_job_that_runs(job: Job, edit: dict[str, Any]) -> None:
    await job.create(replicas=2, command=MPIRUN, annotations=QUICK)
    before = await job.until(
        lambda state: len(state.hosts) == 2 and state.launcher_runs, "mpirun runs"
    )
    await job.scale(1)
    await job.until(lambda state: "NotElastic" in state.notices, "the user is told")
    await job.patch(edit)
    await job.until(lambda state: "NotElastic" not in state.notices, "the edit is known")
    await asyncio.sleep(10)  # longer than the drain of an elastic job takes here
    after = await job.state()
    assert after.running == job.workers(0, 1)
    assert "It takes a new launcher" in after.notices
    assert items(after) == [names.KEY_KUBEXEC, names.KEY_HOSTFILE]
    assert (after.hosts, after.hostfile, after.exec_names) == (
        before.hosts,
        before.hostfile,
        before.exec_names,
    )
    assert after.refreshed is None


async def test_a_user_with_the_role_edit_gets_a_new_launcher_by_the_command_that_is_named(
    job: Job, cluster: Cluster
) -> None:
    scientist = editor(cluster, job.namespace)
    await job.create(replicas=2, command=MPIRUN)
    await job.until(lambda state: state.launcher_runs, "mpirun runs")
    await job.patch(template(HOROVODRUN))
    adopt = f"mpijob-elastic upgrade adopt train -n {job.namespace}"
    before = await job.until(lambda state: adopt in state.notices, "the notice names the command")

    code, output = await typed(
        cluster, "explain", "train", "-n", job.namespace, "-o", "json", kubeconfig=scientist
    )
    report = json.loads(output)
    [found, *_] = report["job"]
    assert (code, found["cause"], found["nextStep"]) == (1, "launcher-without-discovery", adopt)
    assert "last checkpoint" in found["says"]

    code, output = await typed(cluster, *adopt.split()[1:], "--yes", kubeconfig=scientist)
    assert (code, "training starts again from its last checkpoint" in output) == (0, True), output
    await job.scale(3)
    after = await job.settled(3)
    assert items(after) == [names.KEY_KUBEXEC, names.KEY_HOSTFILE, names.KEY_DISCOVER_HOSTS]
    assert "Failed" not in after.conditions
    assert before.workers.keys() <= after.workers.keys()
