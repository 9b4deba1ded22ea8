"""`mpijob-elastic get` and `explain`, as users with more and with fewer rights run them, and as a plugin of kubectl."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import MPIRUN, Job
from tests.lab.readers import readers_kubeconfig
from tests.lab.scalable import told
from tests.lab.waiting import until

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

ROOT = Path(__file__).parents[2]
NEEDED = ("mpijobs.kubeflow.org", "pods", "configmaps")


def ours(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours."""
    words = [sys.executable, "-m", "mpijob_elastic", *arguments, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
async def train(client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers at rest."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/max-replicas": "4"})
    await job.settled(2)
    return job


async def test_a_worker_that_a_quota_refuses_is_foretold_and_explained_and_the_job_is_not_as_desired(
    cluster: Cluster, train: Job
) -> None:
    await train.limit(pods=4)
    larger = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}})
    edit = ("patch", "mpijob/train", "-n", train.namespace, "--type=merge", f"--patch={larger}")
    foretold = "ResourceQuota team has 1 pods left, and 2 more workers need 2"
    until(
        lambda: foretold in told(cluster, *edit, "--dry-run=server")[1]
    )  # the webhook learns of it by a watch
    assert foretold in told(cluster, *edit)[1]
    await train.until(lambda state: len(state.hosts) == 3, "those that the quota takes")

    page = ours(cluster.kubeconfig, "get", "train", "-n", train.namespace).stdout
    assert "  nothing: the operator has not created train-worker-3" in page
    assert "as desired" not in page
    said = ["explain", "train", "3", "--no-exec", "-n", train.namespace, "-o", "json"]
    # The operator sends its Events beside its work.
    until(lambda: "exceeded quota: team" in ours(cluster.kubeconfig, *said).stdout)
    assert "at most 1,000 s after each refusal" in ours(cluster.kubeconfig, *said).stdout
    allowed = readers_kubeconfig(cluster, train.namespace, *NEEDED)
    found = ours(allowed, *said).stdout
    assert "Its last warning: unknown, as Events cannot be listed with your rights" in found


async def test_kubectl_finds_it_as_a_plugin_and_its_context_chooses_the_namespace(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    plugin = tmp_path / "kubectl-mpijob_elastic"
    plugin.write_text(
        f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m mpijob_elastic "$@"\n'
    )
    plugin.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    cluster.kubectl(
        "config",
        "set-context",
        "--current",
        f"--namespace={train.namespace}",
        kubeconfig=kubeconfig,
    )
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    command = [str(cluster.binaries.kubectl), "mpijob-elastic", "get", "train", "-o", "json"]
    printed = await asyncio.to_thread(subprocess.check_output, command, env=environment)
    assert json.loads(printed)["namespace"] == train.namespace


async def test_without_the_right_to_read_roles_all_but_that_role_is_shown(
    cluster: Cluster, train: Job
) -> None:
    kubeconfig = readers_kubeconfig(cluster, train.namespace, *NEEDED)
    done = ours(kubeconfig, "get", "train")
    assert done.returncode == 0
    assert "published 2" in done.stdout
    assert "EXEC is not known: you lack the right to read the launcher's Role" in done.stdout
    assert "The controller does next:\n  nothing: " in done.stdout


async def test_what_may_not_be_read_is_said_in_one_line(cluster: Cluster, train: Job) -> None:
    done = ours(readers_kubeconfig(cluster, train.namespace, "pods"), "get")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    lacks = f"your account may not list mpijobs.kubeflow.org in namespace {train.namespace}"
    assert done.stderr.startswith(f"mpijob-elastic: {lacks}; the ClusterRole mpijob-elastic-view ")


def headline(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stdout.partition("\n\n")[0].split())


@pytest.mark.thorough
async def test_nobody_is_told_that_workers_train_where_that_is_not_known(
    cluster: Cluster, client: ApiWriter, train: Job
) -> None:
    here = ("-n", train.namespace)
    plain = Job(client=client, namespace=train.namespace, name="plain")
    await plain.create(replicas=2, command=MPIRUN)
    not_known = (
        f"{train.namespace}/train: Running, 2 of 2 listed; whether they train is not known: "
    )
    done = ours(cluster.kubeconfig, "explain", "train", "--no-exec", *here)
    expected = f"{not_known}only exec can show that, and --no-exec was given"
    assert (done.returncode, headline(done)) == (4, expected)

    done = ours(readers_kubeconfig(cluster, train.namespace, *NEEDED), "explain", "train", *here)
    said = f"your account may not exec into pods of namespace {train.namespace} (pods/exec)"
    assert (done.returncode, headline(done)) == (4, not_known + said)

    await plain.until(lambda state: "Running" in state.conditions, "all running")
    done = ours(cluster.kubeconfig, "explain", "plain", *here)
    assert done.returncode == 4
    assert headline(done).startswith(not_known.replace("/train", "/plain"))
    done = ours(cluster.kubeconfig, "explain", "plain", *here, "-o", "json")
    assert json.loads(done.stdout)["allTrain"] is None


@pytest.mark.thorough
async def test_an_exec_that_outlives_its_pod_is_ended_reported_and_explained(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    # What kubexec.sh runs, as its process looks: a shell by the name of kubectl, which takes its
    # first argument, the word exec, for its script. This process ends at the second signal: the
    # first is the controller's, the second the user's.
    (tmp_path / "kubectl").symlink_to("/bin/sh")
    (tmp_path / "exec").write_text("trap 'trap - TERM' TERM\nwhile :; do sleep 1; done\n")
    words = [
        "/opt/kube/kubectl",
        "exec",
        "train-worker-1",
        "--",
        "/bin/sh",
        "-c",
        "python3 train.py",
    ]
    frozen = f"import os; os.chdir({str(tmp_path)!r}); os.execv('kubectl', {words})"
    detached = f"{sys.executable} -c {json.dumps(frozen)} >/dev/null 2>&1 &"
    cluster.kubectl(
        "exec", "-n", train.namespace, "train-launcher", "--", "/bin/sh", "-c", detached
    )
    await train.scale(1)
    await train.told("FrozenExecEnded", "`kubectl exec` into train-worker-1")
    await train.told("FrozenExec", "`kubectl exec` into train-worker-1")
    done = ours(cluster.kubeconfig, "explain", train.name, "-n", train.namespace, "-o", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["notices"][0].startswith("FrozenExec: train-launcher holds a frozen")
    [found] = [cause for cause in report["job"] if cause["cause"] == "frozen-exec"]
    _, *typed = shlex.split(found["nextStep"])
    cluster.kubectl(*typed)
    await train.until(lambda state: "FrozenExec" not in state.notices, "the notice is gone")
