"""How far a job is and what a change cost, on a real API server with the real operator and real looks."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.replicas import Controller
from mpijob_elastic.decide import lost_ranks
from tests.lab.job import Job
from tests.lab.stepping import FORMING, Ring
from tests.lab.test_cli import ours
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("scale_served", "webhook", "operator")]
_SPENT = re.compile(r'mpijob_elastic_worker_seconds_total\{bucket="(\w+)"\} (\S+)')


async def changes(cluster: Cluster, job: Job) -> list[dict[str, Any]]:
    words = ("history", job.name, "-n", job.namespace, "-o", "json")
    told = await asyncio.to_thread(ours, cluster.kubeconfig, *words)
    found: list[dict[str, Any]] = json.loads(told.stdout)["changes"]
    return found


def spent(controller: Controller) -> dict[str, float]:
    """The counters of worker-seconds."""
    return {bucket: float(seconds) for bucket, seconds in _SPENT.findall(controller.metrics())}


async def test_a_resize_tells_its_cost_and_where_the_seconds_went(
    job: Job, cluster: Cluster, installed: Installed, tmp_path: Path
) -> None:
    await job.create(replicas=2)
    ring = Ring(cluster=cluster, job=job, folder=tmp_path)
    # Jobs of other tests may still be there, and would be counted, too.
    alone = replace(installed, namespaces=(job.namespace,))
    with Controller.start(cluster, alone) as controller:
        await job.settled(2)
        await ring.form(0, 1)
        await asyncio.sleep(lost_ranks.LOOK_SOON + FORMING)  # a look finds the ring of two
        await job.scale(3)
        await job.settled(3)
        await ring.form(0, 1, 2)
        found = await seen(
            lambda: changes(cluster, job),
            lambda told: told[-1]["secondsLost"] is not None,
            "a cost",
        )
        assert found[-1]["trainedAfter"] > found[-1]["listedAfter"] + FORMING
        assert found[-1]["stepsRepeated"] == 0
        # Both old ranks stand still while the ring forms; the newcomer has waited since the edit.
        assert found[-1]["secondsLost"] == pytest.approx(
            found[-1]["trainedAfter"] + 2 * FORMING, abs=2.0
        )
        await job.told("TrainsAgain", "2→3 workers: trains again after ")
        await job.scale(2)
        await ring.form(0, 1)
        await ring.end(2)
        await job.settled(2)
        found = await seen(
            lambda: changes(cluster, job),
            lambda told: (told[-1]["to"], told[-1]["secondsLost"] is None) == (2, False),
            "a cost",
        )
        await job.delete()
        # With the job the rest is counted that a look has shown.
        after = await seen(
            lambda: asyncio.to_thread(spent, controller),
            lambda now: now["leaving"] > 0.0,
            "the seconds of the worker that left",
        )
        assert after["kept"] > after["stalled"] > 0.0
        assert after["unknown"] == 0.0
        assert after["useless"] == 0.0
