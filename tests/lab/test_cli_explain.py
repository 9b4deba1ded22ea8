"""`mpijob-elastic explain`: on a job with several troubles at once, where nobody may look, and with a frozen exec."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.operator.process import Operator
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import HOLD, MPIRUN, Job
from tests.lab.waiting import PATIENCE, seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic")]
OPERATED = pytest.mark.usefixtures("operator")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def typed(cluster: Cluster, namespace: str, tmp_path: Path) -> Any:
    """A function that runs `kubectl mpijob-elastic explain` as a plugin and gives the exit code and the output."""
    plugin = tmp_path / "kubectl-mpijob_elastic"
    plugin.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m mpijob_elastic "$@"\n')
    plugin.chmod(0o755)

    def typed(*arguments: str, kubeconfig: Path = cluster.kubeconfig) -> tuple[int, str]:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        command = [str(cluster.binaries.kubectl), "mpijob-elastic", "explain", *arguments, "-n", namespace]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout or done.stderr

    return typed


@pytest.fixture
def explain(typed: Any) -> Any:
    """A function that does the same and gives the exit code and the report."""

    def explain(*arguments: str) -> tuple[int, dict[str, Any]]:
        code, output = typed(*arguments, "-o", "json")
        assert code in (0, 1, 4), output
        return code, json.loads(output)

    return explain


def headline(output: str) -> str:
    return " ".join(output.partition("\n\n")[0].split())


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
    assert (code, report["allTrain"], causes(report)) == (4, None, {"0": "not-known", "1": "not-known"})

    await train.patch(holding())
    await train.scale(4)
    await train.until(lambda state: len(state.workers) == 4, "two more workers, held back")
    await train.set_status("train-worker-2", image_pull())
    code, report = explain(train.name, "--no-exec")
    assert code == 1
    assert causes(report) == {"0": "not-known", "1": "not-known", "2": "image", "3": "starting"}
    assert (report["training"], report["allTrain"]) == (None, False)
    code, report = explain(train.name, "2", "--no-exec")
    [found] = report["workers"]
    assert (code, found["cause"]["nextStep"]) == (1, f"kubectl -n {namespace} describe pod train-worker-2")
    assert "registry says no" in found["cause"]["says"]


@OPERATED
async def test_nobody_is_told_that_workers_train_where_that_is_not_known(
    cluster: Cluster, client: ApiWriter, namespace: str, typed: Any, explain: Any
) -> None:
    train = Job(client=client, namespace=namespace)
    await train.create(replicas=2)
    plain = Job(client=client, namespace=namespace, name="plain")
    await plain.create(replicas=2, command=MPIRUN)
    await train.settled(2)
    listed = f"{namespace}/train: Running, 2 of 2 listed; whether they train is not known: "
    code, output = typed("train", "--no-exec")
    assert (code, headline(output)) == (4, f"{listed}only exec can show that, and --no-exec was given")

    code, output = typed("train", kubeconfig=viewer(cluster, namespace))
    user = f"system:serviceaccount:{namespace}:viewer"
    said = f'{listed}403 Forbidden: pods "train-worker-0" is forbidden: User "{user}" cannot get resource "pods/exec"'
    assert (code, headline(output).startswith(said)) == (4, True), output

    await plain.until(lambda state: state.launcher_runs, "the launcher runs")
    code, output = typed("plain")
    said = f"{namespace}/plain: Running, 2 of 2 listed; whether they train is not known: "
    assert (code, headline(output).startswith(said)) == (4, True), output
    assert explain("plain")[1]["allTrain"] is None

    with exec_refused(cluster, namespace, "exec needs a ticket: ask team-x"):
        code, output = typed("train")
        while "needs a ticket" not in output:  # an API server takes a moment to obey a policy
            code, output = await asyncio.to_thread(typed, "train")
    assert code == 4
    assert headline(output).startswith(listed)
    assert headline(output).endswith("denied request: exec needs a ticket: ask team-x")


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


def viewer(cluster: Cluster, namespace: str) -> Path:
    """The kubeconfig of a user who may read what `explain` needs, and may not exec."""
    cluster.kubectl("create", "serviceaccount", "viewer", "-n", namespace)
    for group, kinds in (("", "pods,configmaps"), (".kubeflow.org", "mpijobs")):
        role = f"viewer{group}"
        resources = ",".join(f"{kind}{group}" for kind in kinds.split(","))
        cluster.kubectl("create", "role", role, "-n", namespace, "--verb=get,list,watch", f"--resource={resources}")
        bound = (f"--role={role}", f"--serviceaccount={namespace}:viewer")
        cluster.kubectl("create", "rolebinding", role, "-n", namespace, *bound)
    return cluster.service_account_kubeconfig(namespace, "viewer")


@contextmanager
def exec_refused(cluster: Cluster, namespace: str, message: str) -> Iterator[None]:
    """Have a policy of the cluster refuse each exec in this namespace with this message."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    specs: dict[str, dict[str, Any]] = {
        "ValidatingAdmissionPolicy": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": message}],
        },
        "ValidatingAdmissionPolicyBinding": {
            "policyName": namespace,
            "validationActions": ["Deny"],
            "matchResources": here,
        },
    }
    version = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    for kind, spec in specs.items():
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps({**version, "kind": kind, "spec": spec}))
    try:
        yield
    finally:
        for kind in specs:
            cluster.kubectl("delete", kind, namespace)


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
