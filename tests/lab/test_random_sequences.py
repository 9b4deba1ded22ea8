"""Sequences that the campaign found to fail (tests/campaign/random_sequences.py), and a few random ones."""

import asyncio

import pytest

from lab.install import Installed
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.random_sequences import attempt
from tests.campaign.sequence_place import placed
from tests.campaign.sequence_steps import Step, sequence

pytestmark = [pytest.mark.lab, pytest.mark.campaign, pytest.mark.usefixtures("webhook", "operator")]

KEPT: dict[str, tuple[Step, ...]] = {
    "garbage before there is a memory, by a clock that is behind": (
        Step("create", 2, 0.0),
        Step("clock", -2828, 0.3),
        Step("delete_worker", 0, 1.0),
        Step("role", "empty", 0.3),
        Step("script", "garbage", 0.0),
        Step("size", 3, 0.3),
    ),
    "a failed worker beside a list that cannot be read": (
        Step("create", 1, 5.0),
        Step("fail_worker", 0, 1.0),
        Step("script", "garbage", 4.0),
    ),
    "somebody else's list before ours, and a worker in it that fails": (
        Step("create", 3, 5.0),
        Step("size", 4, 4.0),
        Step("script", "#!/bin/sh\necho {job}-worker-0:1\n", 0.0),
        Step("delete_worker", 2, 0.3),
        Step("fail_worker", 0, 0.0),
        Step("script", "", 0.3),
    ),
    "edits of everything": (
        Step("create", 2, 5.0),
        Step("script", "garbage", 0.3),
        Step("role", "first", 0.3),
        Step("script", "", 0.3),
        Step("hostfile", None, 0.3),
        Step("script", "#!/bin/sh\nexit 1\n", 0.0),
        Step("size", 3, 0.0),
        Step("role", "empty", 0.3),
        Step("replace_config", None, 0.3),
        Step("script", "#!/bin/sh\necho {job}-worker-0:1\n", 0.3),
        Step("memory", "garbage", 0.3),
        Step("size", 1, 0.0),
    ),
}


@pytest.mark.parametrize("steps", KEPT.values(), ids=KEPT)
async def test_a_sequence_that_once_failed(
    installed: Installed, client: ApiWriter, namespace: str, steps: tuple[Step, ...]
) -> None:
    async with placed(client, installed, namespace) as place:
        assert await attempt(place, steps) == ""


async def test_random_sequences(installed: Installed, client: ApiWriter, namespace: str) -> None:
    async with placed(client, installed, namespace) as place:
        for number in range(2):
            assert await attempt(place, sequence(f"test:{number}")) == ""
            await asyncio.sleep(0)
