"""Workers that come back under another host name, because a rank may have died under the one before."""

import asyncio
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from lab.cluster import Cluster
from lab.operator import KUBECTL_DIRECTORY
from lab.replicas import Controller
from mpijob_elastic import names
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model import kubexec
from tests.lab.job import Job, State
from tests.lab.ranks import in_pod, start_rank
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator")]
ROOT = Path(__file__).parents[2]
BUSY = re.compile(
    r'^mpijob_elastic_probes_total\{of="published",outcome="busy"\} ([0-9.]+)', re.MULTILINE
)


def hosts(job: Job, *numbers: int) -> list[str]:
    """The lines for workers 0, 1, ... under these incarnations."""
    pods = job.workers(*range(len(numbers)))
    return [f"{names.host(pod, number)}:1" for pod, number in zip(pods, numbers, strict=True)]


async def kubexec_of(client: ApiWriter, job: Job) -> str:
    path = resources.CONFIG_MAPS.path(job.namespace, f"{job.name}-config")
    script: str = msgspec.json.decode(await client.get(path))["data"]["kubexec.sh"]
    return script


def launchers_kubectl(cluster: Cluster, job: Job) -> str:
    """Return a command that runs kubectl with the launcher's own rights, in its namespace."""
    rights = cluster.service_account_kubeconfig(job.namespace, f"{job.name}-launcher")
    return f"{cluster.binaries.kubectl} --kubeconfig={rights} --namespace={job.namespace}"


async def test_a_pod_that_was_deleted_comes_back_under_a_new_name_that_leads_to_it(
    cluster: Cluster, client: ApiWriter, job: Job, elastic: Controller
) -> None:
    assert elastic.ready()
    await job.create(replicas=2)
    await job.settled(2)
    await job.scale(3)
    before = await job.settled(3)
    assert before.hosts == hosts(job, 0, 0, 0)
    assert not kubexec.is_mapped(await kubexec_of(client, job))
    # Not where rank 0 may be: no addition has to wait for the others to get over its loss.
    pod = job.workers(2)[0]
    cluster.kubectl("delete", "pod", pod, "-n", job.namespace, "--force", "--grace-period=0")

    after = await job.until(
        lambda state: state.hosts == hosts(job, 0, 0, 1), "worker-2 is back as .r1"
    )
    assert after.workers[pod]["metadata"]["uid"] != before.workers[pod]["metadata"]["uid"]
    await job.settled(3)
    await job.told("HostRenamed", f"{pod} listed as {pod}.r1")
    command = [
        sys.executable,
        "-m",
        "mpijob_elastic",
        "get",
        job.name,
        "-n",
        job.namespace,
        "-o",
        "json",
    ]
    environment = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "PYTHONPATH": str(ROOT),
        "PATH": "/usr/bin:/bin",
    }
    shown = await asyncio.to_thread(subprocess.check_output, command, env=environment)
    worker = json.loads(shown)["workers"][2]
    assert (worker["name"], worker["host"], worker["incarnation"]) == (pod, f"{pod}.r1", 1)

    script = await kubexec_of(client, job)
    assert kubexec.is_mapped(script)
    assert cluster.exec_offered
    reaching = script.replace(f"{KUBECTL_DIRECTORY}/kubectl", launchers_kubectl(cluster, job))
    said = await asyncio.to_thread(
        subprocess.check_output,
        ["/bin/sh", "-c", reaching, "kubexec.sh", f"{pod}.r1", "echo", "here"],
        text=True,
    )
    assert said == "here\n"


@pytest.mark.thorough
async def test_a_lost_rank_is_found_and_its_worker_comes_back_under_a_new_name(
    cluster: Cluster, client: ApiWriter, job: Job, elastic: Controller
) -> None:
    """Real processes in the pods' own process namespaces; one is killed, and its pod runs on."""
    assert cluster.exec_offered
    await job.create(replicas=3)
    before = await job.settled(3)
    pods = job.workers(0, 1, 2)
    counted = busy_looks(elastic)
    ranks = [await asyncio.to_thread(start_rank, cluster, job, pod) for pod in pods]
    deadline = time.monotonic() + PATIENCE
    while busy_looks(elastic) < counted + 3:
        assert time.monotonic() < deadline, "the ranks are not seen"
        await asyncio.sleep(0.5)
    await asyncio.to_thread(in_pod, cluster, job, pods[1], f"kill -9 {ranks[1]}")

    def renamed(state: State) -> bool:
        return state.hosts == hosts(job, 0, 1, 0)

    # The next look, and half a minute of looks that show nothing.
    after = await job.until(renamed, "worker-1 is published as .r1", patience=2 * PATIENCE)
    assert after.workers[pods[1]]["metadata"]["uid"] == before.workers[pods[1]]["metadata"]["uid"]
    assert kubexec.is_mapped(await kubexec_of(client, job))
    await job.told("RankLost", pods[1])
    await job.told("HostRenamed", f"{pods[1]} listed as {pods[1]}.r1")


def busy_looks(controller: Controller) -> float:
    """Return how often a rank was seen in a published worker."""
    found = BUSY.search(controller.metrics())
    return float(found[1]) if found else 0.0
