"""Run the stand-in for mpi-operator v0.2.3, a test double; end it with SIGTERM or Ctrl-C."""

import argparse
import asyncio
import contextlib
import logging
import signal
from pathlib import Path

from lab.operator.controller import Controller, Options
from lab.operator.pods import PodOptions
from mpijob_elastic.kube.client import connect

log = logging.getLogger("lab.operator")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.operator",
        description="A stand-in for mpi-operator v0.2.3: a test double that does to MPIJobs (kubeflow.org/v1) "
        "what that operator does. Not for use on a real cluster.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    default = Options()
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="cluster to work on; else KUBECONFIG")
    add("--namespace", default=default.namespace, help="the only namespace to work in; empty: all")
    add("--gang-scheduling", default="", metavar="NAME", help="scheduler of PodGroups; empty: no PodGroups")
    image = default.pods.kubectl_delivery_image
    add("--kubectl-delivery-image", default=image, metavar="IMAGE", help="init container's image")
    add("--qps", type=float, default=default.qps, help="requests a second to each API group; 0: no limits")
    add("--burst", type=int, default=default.burst, help="requests at once to each API group")
    add("--threads", type=int, default=default.threads, help="jobs synced at the same time")
    return parser.parse_args()


async def _run(kubeconfig: Path | None, options: Options) -> None:
    loop = asyncio.get_running_loop()
    async with await connect(user_agent="mpi-operator", kubeconfig=kubeconfig) as client:
        work = asyncio.create_task(Controller(client, options).run())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, work.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await work


def main() -> None:
    """Parse the command line and work until told to stop."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    log.info("this is a stand-in for mpi-operator v0.2.3, a test double: %s", vars(arguments))
    pods = PodOptions(gang_scheduler=arguments.gang_scheduling, kubectl_delivery_image=arguments.kubectl_delivery_image)
    options = Options(
        namespace=arguments.namespace,
        qps=arguments.qps,
        burst=arguments.burst,
        threads=arguments.threads,
        pods=pods,
    )
    asyncio.run(_run(arguments.kubeconfig, options))


if __name__ == "__main__":
    main()
