"""A rollout of the webhook, as its Deployment does it, loses no call: a new replica first, then SIGTERM to the old."""

import asyncio
from contextlib import ExitStack

import pytest

from lab.cluster import Cluster
from lab.install import Installed
from lab.ports import free_ports
from lab.replicas import Webhook
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.launchers import calling, patient, until_patched
from tests.lab.service import Backend, Service

pytestmark = [pytest.mark.lab, pytest.mark.thorough]


async def test_a_rollout_under_load_loses_no_call(
    cluster: Cluster, installed: Installed, client: ApiWriter, namespace: str
) -> None:
    service = Service()
    with ExitStack() as processes:

        async def start() -> Webhook:
            [port] = free_ports(1)
            # Ten probes of this Service long; 15 s by default, for the nodes of a cluster.
            starting = Webhook.start(cluster, installed, "--drain-seconds=2", port=port)
            process = await asyncio.to_thread(processes.enter_context, starting)
            service.backends.append(Backend(port=port, health=process.health))
            await service.until_ready(*service.backends)
            return process

        async with service.listening(installed.webhook_port), patient(client):
            old = await start()
            await until_patched(client, namespace)
            async with calling(client, namespace, callers=8) as calls:
                for _ in range(4):
                    new = await start()
                    assert await asyncio.to_thread(old.terminate) == 0
                    service.backends.pop(0)
                    old = new
    assert calls.lost == 0
    assert calls.made > 0
