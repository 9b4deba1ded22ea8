"""`mpijob-elastic explain` on a job with several troubles at once, and with a frozen exec that the controller ends."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import HOLD, Job
from tests.lab.waiting import PATIENCE, seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic")]
OPERATED = pytest.mark.usefixtures("operator")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def explain(cluster: Cluster, namespace: str, tmp_path: Path) -> Any:
    """A function that runs `kubectl mpijob-elastic explain` as a plugin and gives the exit code and the report."""
    plugin = tmp_path / "kubectl-mpijob_elastic"
    plugin.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m mpijob_elastic "$@"\n')
    plugin.chmod(0o755)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def explain(*arguments: str) -> tuple[int, dict[str, Any]]:
        command = [
            str(cluster.binaries.kubectl),
            "mpijob-elastic",
            "explain",
            *arguments,
            "-n",
            namespace,
            "-o",
            "json",
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode < 2, done.stderr
        return done.returncode, json.loads(done.stdout)

    return explain


def causes(report: dict[str, Any]) -> dict[str, str]:
    return {worker["name"].rpartition("-")[2]: worker["cause"]["cause"] for worker in report["workers"]}


def rank(cluster: Cluster, namespace: str, pod: str) -> subprocess.Popen[bytes]:
    """A rank in that worker, held by an exec as a launcher's driver holds it."""
    kubectl = [str(cluster.binaries.kubectl), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
    return subprocess.Popen([*kubectl, "exec", pod, "--", "/bin/sh", "-c", "sleep 300"], stderr=subprocess.DEVNULL)


@OPERATED
async def test_each_worker_of_a_job_has_its_own_cause(
    cluster: Cluster, client: ApiWriter, namespace: str, explain: Any
) -> None:
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=2)
    await train.settled(2)
    code, report = explain(train.name, "--no-exec")
    assert (code, report["allTrain"], causes(report)) == (0, True, {"0": "trains", "1": "trains"})

    await train.patch(holding())
    await train.scale(4)
    await train.until(lambda state: len(state.workers) == 4, "two more workers, held back")
    await train.set_status("train-worker-2", image_pull())
    code, report = explain(train.name, "--no-exec")
    assert code == 1
    assert causes(report) == {"0": "trains", "1": "trains", "2": "image", "3": "starting"}
    assert report["training"] == 2
    code, report = explain(train.name, "2", "--no-exec")
    [found] = report["workers"]
    assert (code, found["cause"]["nextStep"]) == (1, f"kubectl -n {namespace} describe pod train-worker-2")
    assert "registry says no" in found["cause"]["says"]


@OPERATED
@pytest.mark.thorough
async def test_looks_by_exec_show_drains_and_lost_ranks(
    cluster: Cluster, client: ApiWriter, namespace: str, explain: Any
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "10m"})
    await train.settled(3)
    with ExitStack() as ranks:
        for pod in train.workers(0, 2):
            ranks.enter_context(rank(cluster, namespace, pod))
        ranks.callback(lambda: cluster.kubectl("delete", "mpijob", train.name, "-n", namespace))
        await until_causes(explain, train, {"0": "trains", "1": "lost-rank", "2": "trains"})
        await train.scale(2)
        report = await until_causes(explain, train, {"0": "trains", "1": "lost-rank", "2": "draining"})
        assert "sleep" in report["workers"][2]["cause"]["says"]


@OPERATED
@pytest.mark.thorough
async def test_an_exec_that_outlives_its_pod_is_ended_reported_and_explained(
    cluster: Cluster, client: ApiWriter, namespace: str, explain: Any, tmp_path: Path
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=2)
    await train.settled(2)
    # What kubexec.sh runs, as its process looks; a shell takes its first argument, the word exec, for its script. This
    # process ends at the second signal: the first is the controller's, the second the user's.
    (tmp_path / "exec").write_text("trap 'trap - TERM' TERM\nwhile :; do sleep 1; done\n")
    words = ["/opt/kube/kubectl", "exec", "train-worker-1", "--", "/bin/sh", "-c", "python3 train.py"]
    frozen = f"import os; os.chdir({str(tmp_path)!r}); os.execv('/bin/sh', {words})"
    detached = f"{sys.executable} -c {json.dumps(frozen)} >/dev/null 2>&1 &"
    cluster.kubectl("exec", "-n", namespace, "train-launcher", "--", "/bin/sh", "-c", detached)
    await train.scale(1)
    await train.told("FrozenExecEnded", "`kubectl exec` into train-worker-1")
    await train.told("FrozenExec", "`kubectl exec` into train-worker-1")
    code, report = explain(train.name)
    assert code == 1
    assert report["notices"][0].startswith("FrozenExec: train-launcher holds a frozen")
    [found] = [cause for cause in report["job"] if cause["cause"] == "frozen-exec"]
    _, *typed = shlex.split(found["nextStep"])
    cluster.kubectl(*typed)
    await train.until(lambda state: "FrozenExec" not in state.notices, "the notice is gone")


@pytest.mark.thorough
async def test_an_operator_that_still_makes_workers_of_a_former_size_is_told_of(
    cluster: Cluster, client: ApiWriter, namespace: str, explain: Any
) -> None:
    train = Job(client=client, namespace=namespace)
    with Operator.start(cluster, namespace=namespace):  # with a release's limit of 5 requests a second
        await train.create(replicas=120)
        await train.until(lambda state: len(state.workers) >= 2, "its first workers")
        await train.scale(2)
        shown = partial(asyncio.to_thread, explain, train.name, "--no-exec")
        _, report = await seen(shown, lambda answer: "former-size" in of_job(answer[1]), "the cause")
        [found] = [cause for cause in report["job"] if cause["cause"] == "former-size"]
        assert "after the size became 2" in found["says"]
        assert found["nextStep"] == "kubectl -n mpi-operator rollout restart deployment/mpi-operator"
    with Operator.start(cluster, namespace=namespace):
        await train.settled(2)
        assert "former-size" not in of_job((await shown())[1])


def of_job(report: dict[str, Any]) -> list[str]:
    return [cause["cause"] for cause in report["job"]]


async def until_causes(explain: Any, train: Job, expected: dict[str, str]) -> dict[str, Any]:
    """The report once it says so."""
    deadline = time.monotonic() + PATIENCE
    while True:
        report: dict[str, Any] = (await asyncio.to_thread(explain, train.name))[1]
        if causes(report) == expected:
            return report
        assert time.monotonic() < deadline, report


def holding() -> dict[str, Any]:
    """Workers that are created from now on stay Pending."""
    template = {"metadata": {"annotations": {HOLD: "yes"}}}
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}}


def image_pull() -> dict[str, Any]:
    waiting = {"reason": "ImagePullBackOff", "message": "registry says no"}
    status = {"name": "worker", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    return {"phase": "Pending", "containerStatuses": [{**status, "state": {"waiting": waiting}}]}
