"""`mpijob-elastic get` beside workers in which the example's writer tells how far the training is."""

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.readers import readers_kubeconfig
from tests.lab.test_cli import NEEDED, ours
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("elastic", "operator")]

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TRAINS = """\
import sys, time
sys.path.insert(0, {folder!r})
from progress import Progress
training = Progress(total=4000)
training.begin()
for step in range(1, 4000):
    began = time.time()
    time.sleep(0.1)
    training.step(step, samples=128, ranks=2, began=began)
    training.saved()
"""


def trains(cluster: Cluster, job: Job, pod: str) -> None:
    """Start a rank that trains, in a pod with a /dev/shm of its own."""
    code = shlex.quote(TRAINS.format(folder=str(EXAMPLES)))
    rank = f"{sys.executable} -c {code} >/dev/null 2>&1 &"
    in_pod(cluster, job, pod, f"mount -t tmpfs tmpfs /dev/shm && {rank}")


async def test_how_far_a_training_is_and_what_was_kept_is_read_from_its_workers(
    cluster: Cluster, client: ApiWriter, namespace: str
) -> None:
    if not cluster.exec_offered:
        pytest.skip("PID namespaces cannot be had here")
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    await job.settled(2)
    here = ("-n", namespace)

    def get(*words: str) -> str:
        done = ours(cluster.kubeconfig, "get", *words, *here)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    nothing = await asyncio.to_thread(get, "train")
    assert re.search(r"\nWorker-seconds: \d+ allocated, kept at most \d+; ", nothing)
    assert "Progress:" not in nothing
    for pod in job.workers(0, 1):
        await asyncio.to_thread(trains, cluster, job, pod)

    def tells(read: Any) -> bool:
        return read["progress"] is not None and read["goodput"]["unknown"] == 0.0

    async def look() -> Any:
        return json.loads(await asyncio.to_thread(get, "train", "-o", "json"))

    await seen(look, tells, "both workers tell how far they are")
    page = await asyncio.to_thread(get, "train")
    assert re.search(
        r"\nProgress: +step \d+ of 4000 \(\d+%\), [\d.]+ steps/s, \d+ samples/s, ", page
    )
    assert re.search(r"\nWorker-seconds: \d+ allocated, \d+ kept \(\d+%\); ", page)
    assert re.search(r" \d+/4000 \(\d+%\) +\d+[sm]$", await asyncio.to_thread(get), re.MULTILINE)

    reader = await asyncio.to_thread(readers_kubeconfig, cluster, namespace, *NEEDED)
    done = await asyncio.to_thread(ours, reader, "get", *here)
    assert done.returncode == 0
    assert done.stderr.count("your account may not exec into pods") == 1
    assert re.search(r"- +-$", done.stdout, re.MULTILINE)
