"""Some days of the campaign's part stale-missed-crashed-queued (tests/campaign/queued_day.py)."""

import asyncio
import secrets

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.day_troubles import Crash, Missed, Stale, Trouble
from tests.campaign.queued_day import QueuedDay
from tests.campaign.sequence_place import grant_lease
from tests.campaign.stale_missed_crashed import PATIENCE, Lived, different, live
from tests.lab.waiting import create_namespace

pytestmark = [
    pytest.mark.lab,
    pytest.mark.peers,
    pytest.mark.campaign,
    pytest.mark.usefixtures("kueue_serves", "webhook", "operator"),
]

TROUBLES = (
    Trouble(),
    Crash(write="PATCH workloads/day-launcher/status", nth=2, after=True),
    Stale(kind=WORKLOADS, seconds=5.0),
    Missed(event="MODIFIED Workload day-launcher", nth=2),
)


async def test_no_trouble_changes_how_a_day_ends(
    cluster: Cluster, installed: Installed, client: ApiWriter
) -> None:
    async def lived(trouble: Trouble) -> Lived:
        namespace = f"day-{secrets.token_hex(4)}"
        await asyncio.to_thread(create_namespace, cluster, namespace)
        await grant_lease(client, namespace)
        found = await live(
            (cluster, installed), client, namespace, trouble, kind=QueuedDay, patience=PATIENCE
        )
        await asyncio.to_thread(cluster.kubectl, "delete", "namespace", namespace, "--wait=false")
        return found

    undisturbed, *others = await asyncio.gather(*map(lived, TROUBLES))
    assert undisturbed.wrong == []
    for trouble, day in zip(TROUBLES[1:], others, strict=True):
        assert trouble.struck, trouble
        assert day.wrong + different(day, undisturbed) == [], trouble
