"""A process that wants to lead and, while it does, writes its name into a ConfigMap as often as it can.

python -m tests.lab.kube_candidate KUBECONFIG NAMESPACE IDENTITY
"""

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.lease import Lease, LeaseTimes
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter

# Short, and longer than a busy machine ever stops a process or an API server.
TIMES = LeaseTimes(duration=12, renew_deadline=9, retry=0.8, attempt=4, look=0.2)
NAME = "leader"


class _Named(msgspec.Struct):
    metadata: ObjectMeta


async def lead(client: ApiWriter, lease: Lease, namespace: str, identity: str) -> None:
    """Read, ask whether we hold, write under the version read: what a controller does."""
    path = CONFIG_MAPS.path(namespace, NAME)
    while True:
        with suppress(errors.KubeError):
            found = msgspec.json.decode(
                await client.get(path, limits=Timeouts(attempt=1)), type=_Named
            )
            body = {
                "metadata": {"resourceVersion": found.metadata.resource_version},
                "data": {"writer": identity},
            }
            if lease.held():
                await client.patch_object(
                    path,
                    body=body,
                    content_type=MERGE_PATCH,
                    limits=Timeouts(attempt=lease.time_left(), throttled=0),
                )
        await asyncio.sleep(0.01)


async def main(kubeconfig: str, namespace: str, identity: str) -> None:
    """Run until SIGTERM."""
    running = asyncio.current_task()
    assert running is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    async with await connect(user_agent=identity, kubeconfig=Path(kubeconfig)) as client:
        lease = Lease(
            client=client,
            namespace=namespace,
            name=NAME,
            identity=identity,
            random=Random(),
            times=TIMES,
        )
        await lease.run(lambda: lead(client, lease, namespace, identity))


if __name__ == "__main__":
    with suppress(asyncio.CancelledError):
        asyncio.run(main(*sys.argv[1:]))
