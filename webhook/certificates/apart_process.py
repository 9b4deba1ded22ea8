"""The process that rotates certificates until there is no work; see `apart`.

It gets its order as the first line of standard input, tells its news on standard output, and ends
when its standard input does.
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mpijob_elastic import names, telemetry
from mpijob_elastic.kube import client, errors
from webhook.certificates.decision import CertificatePolicy
from webhook.certificates.handshakes import Unusable
from webhook.certificates.messages import Order, RotationNews, line, read_order
from webhook.certificates.rotation import Clocks, Rotation
from webhook.certificates.serving import Serving

# As the main module it would log as "__main__".
_log = logging.getLogger("webhook.certificates.apart_process")


async def rotate(order: Order, tell: Callable[[RotationNews], None]) -> None:
    """Rotate until there is nothing to do. Raises `errors.Unconfigured` without a cluster."""
    serving = Serving()
    if order.served is not None:
        with suppress(Unusable):
            serving.load(order.served.certificates, order.served.key)
    connecting = client.connect(
        user_agent=names.WEBHOOK,
        kubeconfig=Path(order.kubeconfig) if order.kubeconfig else None,
        context=order.context,
    )
    async with await connecting as cluster:
        rotation = Rotation(
            client=cluster,
            namespace=order.namespace,
            serving=serving,
            policy=CertificatePolicy(
                hosts=frozenset(order.hosts), lifetimes=order.lifetimes, early=order.early
            ),
            timing=order.timing,
            clocks=Clocks(wall=lambda: datetime.now(UTC), monotonic=time.monotonic),
            tell=tell,
        )
        await rotation.run()


async def main() -> int:
    """Carry out the order on standard input, and return the exit code."""
    order = read_order(sys.stdin.buffer.readline())
    telemetry.configure_logs(log_format=order.log_format, level=order.log_level)
    rotating = asyncio.create_task(rotate(order, _tell))
    asyncio.get_running_loop().add_reader(sys.stdin, rotating.cancel)
    try:
        await rotating
    except asyncio.CancelledError:
        return 0
    except (errors.KubeError, OSError) as error:
        _log.error("certificates not checked: %s", error)
        return 1
    return 0


def _tell(news: RotationNews) -> None:
    sys.stdout.buffer.write(line(news))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
