"""Run mpi-operator v0.2.3 in a lab that is up, until Ctrl-C: `python -m lab.operator [--name LAB] [FLAG...]`."""

import argparse
import os
import sys
from collections.abc import Sequence

from lab.cluster import Cluster
from lab.errors import LabError
from lab.operator import KUBECTL_DELIVERY_IMAGE, Release, account


def main() -> None:
    """Become the operator; other arguments are its flags."""
    parser = argparse.ArgumentParser(prog="python -m lab.operator", description=__doc__)
    parser.add_argument("--name", default="default", help="name of the lab")
    arguments, flags = parser.parse_known_args()
    try:
        cluster = Cluster.attach(name=arguments.name)
        access = account.kubeconfig(cluster, Release.V0_2_3, gangs=_for_gangs(flags))
    except LabError as error:
        sys.exit(f"error: {error}")
    program = str(cluster.binaries.mpi_controller_v0_2_3)
    command = [program, f"--kubectl-delivery-image={KUBECTL_DELIVERY_IMAGE}", *flags]
    os.execve(program, command, {**os.environ, "KUBECONFIG": str(access)})  # noqa: S606 - no shell is wanted


def _for_gangs(flags: Sequence[str]) -> bool:
    return any("gang-scheduling" in flag for flag in flags)


if __name__ == "__main__":
    main()
