"""A program that steps together on all ranks, saves at a signal, and goes on where it was.

    mpirun -np 2 python3 train.py --state /state

Each step is an allreduce. On SIGUSR1 all ranks agree at the end of a step, rank 0 saves the number
of that step, and all end with 0. Rank 0 also saves every --save-every steps. The next start goes on
from what was saved. A file `finish` in the state's folder ends the program for good: each start
after that ends with 0 at once.

It prints one JSON object per line: each rank prints its start and its end, rank 0 prints each step:
`began` and `time` are its begin and its end, `saved` tells that it is saved right after.
"""

import argparse
import json
import os
import signal
import socket
import sys
import time
from array import array
from pathlib import Path

# Before the import: that starts MPI, and the signal may come at any time.
asked: list[int] = []
signal.signal(signal.SIGUSR1, lambda number, _: asked.append(number))

from mpi4py import MPI  # noqa: E402
from progress import Progress  # noqa: E402

RANKS = MPI.COMM_WORLD
RANK, SIZE, HOST = RANKS.rank, RANKS.size, socket.gethostname()
# MPI may take the signal while it starts (MPICH does).
signal.signal(signal.SIGUSR1, lambda number, _: asked.append(number))


def tell(event: str, **facts: object) -> None:
    """Print one line of JSON, in one write."""
    about = {
        "event": event,
        "time": round(time.time(), 3),
        "host": HOST,
        "rank": RANK,
        "size": SIZE,
    }
    os.write(1, f"{json.dumps({**about, **facts})}\n".encode())


def any_rank(*flags: bool) -> list[bool]:
    """Tell of each flag whether any rank has set it; the same on all ranks."""
    mine, all_of_them = array("i", map(int, flags)), array("i", [0] * len(flags))
    RANKS.Allreduce(mine, all_of_them, MPI.MAX)
    return [bool(flag) for flag in all_of_them]


def load(path: Path) -> dict[str, int]:
    """Return what was saved last."""
    return json.loads(path.read_text()) if path.exists() else {"step": 0, "finished": 0}


def save(path: Path, state: dict[str, int]) -> None:
    """Write it as a whole, and onto the disk: the machine may end at any time."""
    new = path.with_suffix(".new")
    with new.open("w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def main() -> int:
    """Step until a signal comes or the work is done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--step-seconds", type=float, default=0.25)
    parser.add_argument("--save-every", type=int, default=20)
    given = parser.parse_args()
    saved = given.state / "saved.json"
    tell("start", pid=os.getpid())
    hosts = RANKS.allgather(HOST)
    state = RANKS.bcast(load(saved) if RANK == 0 else None)
    leaves = finished = bool(state["finished"])
    progress = Progress(writes=RANKS.Split_type(MPI.COMM_TYPE_SHARED).rank == 0)
    progress.begin()
    while not leaves:
        began = time.time()
        time.sleep(given.step_seconds)
        finish = RANK == 0 and (given.state / "finish").exists()
        own = time.time() - began
        stops, finished = any_rank(bool(asked), finish)
        leaves = stops or finished
        state = {"step": state["step"] + 1, "finished": int(finished)}
        progress.step(state["step"], samples=SIZE, ranks=SIZE, began=began, own=own)
        saves = leaves or state["step"] % given.save_every == 0
        if RANK == 0:
            tell("step", step=state["step"], hosts=hosts, began=round(began, 3), saved=saves)
        if saves and RANK == 0:
            save(saved, state)
        if saves:
            # No rank goes on or ends before the state is on the disk.
            RANKS.Barrier()
            progress.saved()
    tell("end", step=state["step"], reached=finished)
    return 0


if __name__ == "__main__":
    sys.exit(main())
