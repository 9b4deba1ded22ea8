"""Start torchrun on this node, as one process of mpirun; each node has a rank of MPI.

    elastic.sh -- mpirun -np {np} -machinefile {hostfile} python3 node.py train_ddp.py

slotsPerWorker of the job is 1, and PROCESSES (1) is how many processes torchrun starts on each node,
for example one for each GPU. SIGUSR1 and SIGTERM go to these processes: torchrun knows no SIGUSR1,
and would end by it.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mpi4py import MPI

WORLD = MPI.COMM_WORLD


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes below a process."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from descendants(child)


def main() -> int:
    """Run torchrun to its end, and return its exit code."""
    port, address = 0, ""
    if WORLD.rank == 0:
        address = os.environ.get("MASTER_ADDR") or socket.gethostbyname(socket.gethostname())
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
    address, port = WORLD.bcast((address, port))
    # torchrun and what it starts ignore the signal until the program has a handler.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    torchrun = subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--nnodes", f"{WORLD.size}", "--node_rank", f"{WORLD.rank}"),
            *("--nproc_per_node", os.environ.get("PROCESSES", "1")),
            *("--master_addr", address, "--master_port", f"{port}", *sys.argv[1:]),
        ],
        # mpirun signals its processes by their group: torchrun is in another one.
        start_new_session=True,
    )

    def forward(number: int, _: object) -> None:
        for process in descendants(torchrun.pid):
            with suppress(ProcessLookupError):
                os.kill(process, number)

    signal.signal(signal.SIGUSR1, forward)
    signal.signal(signal.SIGTERM, forward)
    return torchrun.wait()


if __name__ == "__main__":
    sys.exit(main())
