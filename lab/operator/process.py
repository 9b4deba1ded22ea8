"""An operator for a lab: the stand-in, or the real mpi-operator v0.2.3 where MPI_OPERATOR_BIN names its binary."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.cluster import Cluster
from lab.errors import LabError
from lab.layout import Layout
from lab.operator import KUBECTL_DELIVERY_IMAGE, STARTED
from lab.processes import spawn

BINARY_VARIABLE = "MPI_OPERATOR_BIN"
LOCK_NAMESPACE = "mpi-operator"
# The real one's for its health, v0.3.0's too, without a flag: healthCheckPort in cmd/mpi-operator.v1/app/server.go.
HEALTH_PORT = 8080
PATIENCE = 120.0  # seconds to start; a busy machine needs some for the imports alone
GRACE = 5.0  # seconds to end
POLL = 0.02  # seconds
LOG_LINES = 15
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Operator:
    """A running operator.

    with Operator.start(cluster, namespace="default", qps=0) as operator:
        print(operator.log.read_text())

    `real` tells whether it is the binary.
    """

    log: Path
    pid: int
    real: bool

    @classmethod
    @contextmanager
    def start(
        cls,
        cluster: Cluster,
        *,
        namespace: str | None = None,
        gang_scheduling: str | None = None,
        qps: float = 5,
        burst: int = 10,
        threads: int = 2,
        binary: Path | None = None,
        flags: Sequence[str] = (),
    ) -> Iterator["Operator"]:
        """Run an operator for as long as the block lasts, for one namespace or all; raise LabError.

        `qps` and `burst` are its client's limits, 0 lifts them; the real one keeps to 5 and 10 whatever is asked for.
        It syncs `threads` jobs at the same time. Two real ones on one machine are not possible, as each listens on
        HEALTH_PORT. `binary` is run whatever MPI_OPERATOR_BIN says, another release's perhaps; `flags` are its own.
        """
        program = binary or os.environ.get(BINARY_VARIABLE)
        options = [f"--kubectl-delivery-image={KUBECTL_DELIVERY_IMAGE}"]
        options += [f"--namespace={namespace}"] if namespace else []
        options += [f"--gang-scheduling={gang_scheduling}"] if gang_scheduling else []
        if program:
            _free_lock(cluster)
            options += [f"--lock-namespace={LOCK_NAMESPACE}", f"--threadiness={threads}", *flags]
            command = [str(program), *options]
        else:
            options += [f"--qps={qps}", f"--burst={burst}", f"--threads={threads}"]
            command = [sys.executable, "-m", "lab.operator", *options]
        with _running(command, log=_new_log(cluster), environment=_environment(cluster)) as (process, log):
            yield cls(log=log, pid=process.pid, real=bool(program))


@contextmanager
def _running(
    command: list[str], *, log: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    process = spawn(command, log=log, environment=environment)
    try:
        _wait_until_started(process, log)
        yield process, log
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
        process.kill()
        process.wait()


def _wait_until_started(process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while STARTED not in (text := log.read_text(errors="replace")):
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            what = f"ended with exit code {code}" if code is not None else f"did not start within {PATIENCE:.0f} s"
            tail = "\n".join(text.splitlines()[-LOG_LINES:])
            raise LabError(f"the operator {what}. The end of {log}:\n{tail}")
        time.sleep(POLL)


def _new_log(cluster: Cluster) -> Path:
    descriptor, name = tempfile.mkstemp(prefix="operator-", suffix=".log", dir=Layout(cluster.state_dir).logs)
    os.close(descriptor)
    return Path(name)


def _environment(cluster: Cluster) -> dict[str, str]:
    # The lab is not installed, so the stand-in is found by its directory.
    return {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(ROOT)}


def _free_lock(cluster: Cluster) -> None:
    # A lock left by an operator that has ended would be waited for until it expires.
    manifest = f'{{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "{LOCK_NAMESPACE}"}}}}'
    cluster.kubectl("apply", "--filename=-", stdin=manifest)
    cluster.kubectl("delete", "endpoints", "mpi-operator", "--namespace", LOCK_NAMESPACE, "--ignore-not-found")
