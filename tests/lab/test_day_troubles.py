"""A day of each pattern of the campaign's part stale-missed-crashed (tests/campaign/stale_missed_crashed.py)."""

import asyncio
import secrets

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.day_troubles import Crash, Missed, Stale, Trouble
from tests.campaign.sequence_place import grant_lease
from tests.campaign.stale_missed_crashed import different, live
from tests.lab.waiting import create_namespace

pytestmark = [pytest.mark.lab, pytest.mark.campaign, pytest.mark.usefixtures("webhook", "operator")]

TROUBLES = (
    Trouble(),
    Crash(write="DELETE pods/day-worker-2", nth=1, after=True),
    Stale(kind=resources.PODS, seconds=5.0),
    Missed(event="DELETED Pod day-worker-2", nth=1),
)


async def test_no_trouble_changes_how_a_day_ends(
    cluster: Cluster, installed: Installed, client: ApiWriter
) -> None:
    namespaces = [f"day-{secrets.token_hex(4)}" for _ in TROUBLES]
    for namespace in namespaces:
        await asyncio.to_thread(create_namespace, cluster, namespace)
        await grant_lease(client, namespace)
    days = zip(namespaces, TROUBLES, strict=True)
    undisturbed, *others = await asyncio.gather(
        *(live((cluster, installed), client, *day) for day in days)
    )
    assert undisturbed.wrong == []
    for trouble, lived in zip(TROUBLES[1:], others, strict=True):
        assert trouble.struck, trouble
        assert lived.wrong + different(lived, undisturbed) == [], trouble
    for namespace in namespaces:
        await client.delete_object(resources.NAMESPACES.path(None, namespace))
