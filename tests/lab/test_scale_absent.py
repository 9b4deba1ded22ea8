"""Where MPIJobs have no subresource scale, as v0.2.3 defines them, the controller never writes their status."""

import asyncio
import re
import signal

import pytest

from lab.replicas import Controller, Webhook
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import Job

pytestmark = [pytest.mark.lab, pytest.mark.thorough, pytest.mark.usefixtures("operator")]


async def test_no_selector_is_written(client: ApiWriter, namespace: str, elastic: Controller, webhook: Webhook) -> None:
    job = Job(client=client, namespace=namespace)
    await job.create(replicas=2)
    await job.settled(2)
    webhook.signal(signal.SIGSTOP)
    try:
        await job.scale(3)
        await job.settled(3)
        await asyncio.sleep(1)
        assert not re.search(r'resource="mpijobs/status"', elastic.metrics())
    finally:
        webhook.signal(signal.SIGCONT)
