"""The webhook as a process whose certificates live for seconds: python -m tests.campaign.brief_webhook OPTIONS.

Nothing else differs from `mpijob-elastic webhook`: when a certificate is due, and each step then, is as installed.
"""

import argparse
import asyncio
from datetime import timedelta
from pathlib import Path

from mpijob_elastic.telemetry import logs
from webhook.certificates.rotation import Timing
from webhook.rules.certificates.pairs import Lifetimes
from webhook.server import serve
from webhook.settings import Settings

# A third of a leaf must be longer than a busy machine ever stops a replica. Ten leaves come and go with each CA.
LIFETIMES = Lifetimes(authority=timedelta(seconds=240), leaf=timedelta(seconds=24))
# As often as short lives demand. A CA counts as trusted after as long as installed: a busy API server needs seconds.
TIMING = Timing(look_every=0.5)


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.brief_webhook", description=__doc__)
    for option in ("--kubeconfig", "--host", "--extra-san"):
        parser.add_argument(option, required=True)
    for option in ("--health-port", "--port", "--drain-seconds"):
        parser.add_argument(option, type=int, required=True)
    given = parser.parse_args()
    logs.configure(log_format="json", level="info")
    settings = Settings(
        kubeconfig=Path(given.kubeconfig),
        host=given.host,
        port=given.port,
        health_port=given.health_port,
        extra_sans=frozenset({given.extra_san}),
        drain_seconds=given.drain_seconds,
        lifetimes=LIFETIMES,
        timing=TIMING,
    )
    asyncio.run(serve(settings))


if __name__ == "__main__":
    main()
