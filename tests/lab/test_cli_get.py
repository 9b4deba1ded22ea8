"""`mpijob-elastic get` and `kubectl mpijob-elastic get`, as users with more and with fewer rights run it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.scalable import told
from tests.lab.waiting import may, until

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

ROOT = Path(__file__).parents[2]


def get(kubeconfig: Path, *arguments: str, command: str = "get") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mpijob_elastic", command, "--kubeconfig", str(kubeconfig), *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
async def train(client: ApiWriter, namespace: str) -> Job:
    """An elastic job of two workers at rest."""
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2, annotations={"mpijob-elastic/max-replicas": "4"})
    await job.settled(2)
    return job


def reader(cluster: Cluster, namespace: str, *resources: str) -> Path:
    """The kubeconfig of a ServiceAccount that may read these and nothing else, in its namespace."""
    account = ("serviceaccount", "reader", "-n", namespace)
    cluster.kubectl("create", *account)
    verbs = ("--verb=get,list,watch", f"--resource={','.join(resources)}")
    cluster.kubectl("create", "role", "reader", "-n", namespace, *verbs)
    binding = ("--role=reader", f"--serviceaccount={namespace}:reader")
    cluster.kubectl("create", "rolebinding", "reader", "-n", namespace, *binding)
    for resource in resources:
        may(cluster, "reader", "list", resource, namespace=namespace)
    return cluster.service_account_kubeconfig(namespace, "reader")


async def test_the_table_and_the_page(cluster: Cluster, train: Job) -> None:
    table = get(cluster.kubeconfig, "-n", train.namespace).stdout.splitlines()
    assert table[1].split()[:7] == ["train", "Running", "2", "2", "2", "0", "yes"]
    everywhere = get(cluster.kubeconfig, "-A", "-o", "wide").stdout
    assert any(line.split()[:2] == [train.namespace, "train"] for line in everywhere.splitlines())
    page = get(cluster.kubeconfig, "train", "-n", train.namespace).stdout
    assert "ready 2, published 2, draining 0 (allowed: 1 to 4)" in page
    assert "train-launcher, Running, discover_hosts.sh is up to date" in page
    assert "  nothing: the job is as desired" in page


async def test_a_worker_that_a_quota_refuses_is_foretold_and_explained_and_the_job_is_not_as_desired(
    cluster: Cluster, train: Job
) -> None:
    await train.limit(pods=4)
    larger = json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}}})
    edit = ("patch", "mpijob/train", "-n", train.namespace, "--type=merge", f"--patch={larger}")
    foretold = "ResourceQuota team has 1 pods left, and 2 more workers need 2"
    until(lambda: foretold in told(cluster, *edit, "--dry-run=server")[1])  # the webhook learns of it by a watch
    assert foretold in told(cluster, *edit)[1]
    await train.until(lambda state: len(state.hosts) == 3, "those that the quota takes")

    page = get(cluster.kubeconfig, "train", "-n", train.namespace).stdout
    assert "  nothing: the operator has not created train-worker-3" in page
    assert "as desired" not in page
    said = ["train", "3", "--no-exec", "-n", train.namespace, "-o", "json"]
    found = get(cluster.kubeconfig, *said, command="explain").stdout
    assert "exceeded quota: team" in found
    assert "at most 1,000 s after each refusal" in found
    allowed = reader(cluster, train.namespace, "mpijobs.kubeflow.org", "pods", "configmaps")
    found = get(allowed, *said, command="explain").stdout
    assert "Its last warning: unknown, as Events cannot be listed with your rights" in found


async def test_a_drain_is_seen_worker_by_worker(cluster: Cluster, train: Job) -> None:
    rank = "sleep 300 >/dev/null 2>&1 &"
    cluster.kubectl("exec", "-n", train.namespace, "train-worker-1", "--", "/bin/sh", "-c", rank)
    await train.scale(1)
    await train.until(lambda state: len(state.hosts) == 1 and bool(state.refreshed), "worker-1 drains")
    report = json.loads(get(cluster.kubeconfig, "train", "-n", train.namespace, "-o", "json").stdout)
    assert (report["desired"], report["ready"], report["published"], report["draining"]) == (1, 2, 1, 1)
    assert (report["lastScale"]["before"], report["lastScale"]["after"]) == (2, 1)
    worker = report["workers"][1]
    assert worker["draining"]["since"] < worker["draining"]["until"]
    assert report["execNames"] == train.workers(0, 1, 2, 3)


async def test_kubectl_finds_it_as_a_plugin_and_its_context_chooses_the_namespace(
    cluster: Cluster, train: Job, tmp_path: Path
) -> None:
    plugin = tmp_path / "kubectl-mpijob_elastic"
    plugin.write_text(f'#!/bin/sh\nexec env PYTHONPATH={ROOT} {sys.executable} -m mpijob_elastic "$@"\n')
    plugin.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(cluster.kubeconfig.read_bytes())
    cluster.kubectl("config", "set-context", "--current", f"--namespace={train.namespace}", kubeconfig=kubeconfig)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [str(cluster.binaries.kubectl), "mpijob-elastic", "get", "train", "-o", "json"]
    printed = await asyncio.to_thread(subprocess.check_output, command, env=environment)
    assert json.loads(printed)["namespace"] == train.namespace


async def test_without_the_right_to_read_roles_all_but_the_plan_is_shown(cluster: Cluster, train: Job) -> None:
    kubeconfig = reader(cluster, train.namespace, "mpijobs.kubeflow.org", "pods", "configmaps")
    done = get(kubeconfig, "train")
    assert done.returncode == 0
    assert "published 2" in done.stdout
    assert "unknown: you lack the right to read the launcher's Role" in done.stdout


async def test_what_may_not_be_read_is_said_in_one_line(cluster: Cluster, train: Job) -> None:
    done = get(reader(cluster, train.namespace, "pods"))
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert 'cannot list resource "mpijobs"' in done.stderr


async def test_a_job_that_is_not_there(cluster: Cluster, train: Job) -> None:
    done = get(cluster.kubeconfig, "tarin", "-n", train.namespace)
    expected = f"mpijob-elastic: no MPIJob tarin in namespace {train.namespace}; did you mean train?\n"
    assert (done.returncode, done.stderr) == (1, expected)
