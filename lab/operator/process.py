"""Run a mpi-operator in a lab: a release's controller, a release's own program, or a binary of the caller's."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lab import companions, ports
from lab.build import ensure_compared
from lab.cluster import Cluster
from lab.errors import LabError
from lab.layout import Layout
from lab.operator import KUBECTL_DELIVERY_IMAGE, Release, account
from lab.processes import await_start, end
from lab.versions import KubernetesVersion

BINARY_VARIABLE = "MPI_OPERATOR_BIN"
LOCK_NAMESPACE = account.NAMESPACE
# For its health, without a flag: healthCheckPort in cmd/mpi-operator.v1/app/server.go of both
# releases.
HEALTH_PORT = 8080
# Both releases log it when their caches are filled and they begin to work.
STARTED = "Started workers"
PATIENCE = 120.0  # seconds to start on a busy machine
GRACE = 5.0  # seconds to end


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A running operator.

    with Operator.start(cluster, namespace="default", qps=0) as operator:
        print(operator.log.read_text())
    """

    program: Path
    log: Path
    pid: int

    @classmethod
    @contextmanager
    def start(
        cls,
        cluster: Cluster,
        *,
        release: Release = Release.V0_2_3,
        untouched: bool = False,
        namespace: str | None = None,
        gang_scheduling: str | None = None,
        qps: int | None = None,
        flags: Sequence[str] = (),
    ) -> Iterator["Operator"]:
        """Run an operator for as long as the block lasts, for one namespace or all; raise LabError.

        It has the rights that its release grants (lab/operator/account.py).

        By default it is the release's controller package in a main of ours
        (lab/binaries/mpi-operator-v0.2.3/main.go), so that many can run on one machine. `qps`
        limits its requests a second: by default to the release's 5 (and 10 at once), 0 not at all.

        `untouched` runs the release's own program: with a lock, with the release's limits, and with
        HEALTH_PORT, so only once on a machine. MPI_OPERATOR_BIN names a binary to run in v0.2.3's
        place. `flags` are passed on.
        """
        override = os.environ.get(BINARY_VARIABLE) if release is Release.V0_2_3 else None
        given = Path(override) if override else None
        own = given or (_built(cluster, "operator", release) if untouched else None)
        options = [f"--kubectl-delivery-image={KUBECTL_DELIVERY_IMAGE}"]
        options += [f"--namespace={namespace}"] if namespace else []
        options += [f"--gang-scheduling={gang_scheduling}"] if gang_scheduling else []
        if own:
            if given is None:
                _check_health_port(own.name)
            _free_lock(cluster)
            options.append(f"--lock-namespace={LOCK_NAMESPACE}")
        else:
            options += _limits(qps)
        program = own or _built(cluster, "controller", release)
        access = account.kubeconfig(cluster, release, gangs=gang_scheduling is not None)
        with _running(cluster, [str(program), *options, *flags], access) as (process, log):
            yield cls(program=program, log=log, pid=process.pid)


def _check_health_port(name: str) -> None:
    """Raise LabError if the operator program `name` could not start now, as another program has its port."""
    if ports.taken(HEALTH_PORT):
        raise LabError(
            f"{name} answers about its health on port {HEALTH_PORT}, which no flag changes, and another program "
            f"listens there: end that program (`ss -ltnp 'sport = :{HEALTH_PORT}'` names it), or run this in a "
            "container of its own"
        )


def _built(cluster: Cluster, kind: Literal["operator", "controller"], release: Release) -> Path:
    if release is not Release.V0_2_3:
        version = KubernetesVersion.parse(cluster.options.kubernetes_version)
        return ensure_compared(version, print)[f"mpi-{kind}-{release}"]
    programs = cluster.binaries
    return programs.mpi_operator_v0_2_3 if kind == "operator" else programs.mpi_controller_v0_2_3


def _limits(qps: int | None) -> list[str]:
    # For client-go 0 is its default, and a number below 0 no limit.
    return [] if qps is None else [f"--kube-api-qps={qps or -1}"]


@contextmanager
def _running(
    cluster: Cluster, command: list[str], access: Path
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    environment = {**os.environ, "KUBECONFIG": str(access)}
    layout = Layout(cluster.state_dir)
    process, log = companions.start(layout, "operator", command, environment=environment)
    try:

        def started() -> bool:
            return STARTED in log.read_text(errors="replace")

        await_start(process, started, name="operator", log=log, within=PATIENCE)
        yield process, log
    finally:
        end(process, within=GRACE)


def _free_lock(cluster: Cluster) -> None:
    # A lock left by an operator that has ended would be waited for until it expires.
    manifest = (
        f'{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{LOCK_NAMESPACE}"}}}}'
    )
    cluster.kubectl("apply", "--filename=-", stdin=manifest)
    cluster.kubectl(
        "delete", "endpoints", "mpi-operator", "--namespace", LOCK_NAMESPACE, "--ignore-not-found"
    )
