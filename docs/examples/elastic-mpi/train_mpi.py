"""Fit a plane with MPI, and go on with another number of ranks after each restart.

    elastic.sh -- mpirun -np {np} -machinefile {hostfile} python3 train_mpi.py

The parts that elastic.sh needs are marked (1) to (4). All ranks together take BATCH samples in a
step, whatever their number is: so the result does not depend on the size of the job. Environment
variables, with their defaults:

    CHECKPOINT=/work/checkpoint.json    on a volume that each worker mounts
    STEPS=400 BATCH=60 SAVE_STEPS=50 RATE=0.05
    STEP_SECONDS=0    a step takes at least this long, to simulate a larger program

The output is one JSON object per line: each rank prints its start, rank 0 prints each step.
"""

import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

from mpi4py import MPI
from progress import Progress

CHECKPOINT = Path(os.environ.get("CHECKPOINT", "/work/checkpoint.json"))
STEPS = int(os.environ.get("STEPS", "400"))
BATCH = int(os.environ.get("BATCH", "60"))
SAVE_STEPS = int(os.environ.get("SAVE_STEPS", "50"))
RATE = float(os.environ.get("RATE", "0.05"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0"))

PLANE = (2.0, -1.0, 0.5)
WORLD = MPI.COMM_WORLD


def tell(event: str, **facts: object) -> None:
    """Print one line of JSON."""
    about = {"event": event, "host": socket.gethostname(), "rank": WORLD.rank, "size": WORLD.size}
    # With the end of the line in one piece: mpirun mixes what the ranks print.
    print(json.dumps({**about, **facts}) + "\n", end="", flush=True)


def sample(number: int) -> tuple[float, float, float]:
    """Return the point with that number, and its height above the plane of the data."""
    noise = random.Random(number)
    x, y = noise.uniform(-1, 1), noise.uniform(-1, 1)
    return x, y, PLANE[0] * x + PLANE[1] * y + PLANE[2] + noise.gauss(0, 0.01)


def load() -> tuple[int, list[float]]:
    """Return the step and the weights of the checkpoint, or those of the beginning."""
    # (1) A start resumes from the checkpoint. Rank 0 alone reads it, so all ranks have the same.
    found = None
    if WORLD.rank == 0 and CHECKPOINT.exists():
        found = json.loads(CHECKPOINT.read_text())
    found = WORLD.bcast(found)
    return (found["step"], found["weights"]) if found else (0, [0.0, 0.0, 0.0])


def save(step: int, weights: list[float]) -> None:
    """Write the checkpoint as a whole: an end may come at any time."""
    if WORLD.rank == 0:
        new = CHECKPOINT.with_suffix(".new")
        new.write_text(json.dumps({"step": step, "weights": weights}))
        new.rename(CHECKPOINT)
    WORLD.Barrier()


def learn(step: int, weights: list[float]) -> tuple[list[float], float, float]:
    """Do one step; return the new weights, the loss, and the seconds without other ranks."""
    began = time.monotonic()
    sums = [0.0, 0.0, 0.0, 0.0]
    # (2) The samples of a step are shared out among the ranks that there are now.
    for number in range(step * BATCH + WORLD.rank, (step + 1) * BATCH, WORLD.size):
        x, y, height = sample(number)
        error = weights[0] * x + weights[1] * y + weights[2] - height
        for place, part in enumerate((error * x, error * y, error, error * error)):
            sums[place] += part
    own = time.monotonic() - began
    sums = [WORLD.allreduce(part) for part in sums]
    time.sleep(max(0.0, began + STEP_SECONDS - time.monotonic()))
    weights = [
        weight - RATE * 2 * part / BATCH for weight, part in zip(weights, sums, strict=False)
    ]
    return weights, sums[3] / BATCH, own


def main() -> None:
    """Train until all steps are done, or until elastic.sh asks the ranks to save."""
    # (3) The handler comes after MPI_Init, which takes SIGUSR1 for itself in MPICH and Intel MPI.
    # `import` of mpi4py.MPI calls it.
    asked = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: asked.set())
    step, weights = load()
    tell("start", step=step)
    writes = WORLD.Split_type(MPI.COMM_TYPE_SHARED).rank == 0
    progress = Progress(STEPS, writes=writes)
    progress.begin()
    while step < STEPS:
        began = time.time()
        weights, loss, own = learn(step, weights)
        step += 1
        progress.step(step, samples=BATCH, ranks=WORLD.size, began=began, own=own)
        if WORLD.rank == 0:
            tell("step", step=step, loss=round(loss, 6))
        # (4) The signal comes to each rank at another time, so the ranks agree on the step after
        # which they save. Then all end with 0.
        if WORLD.allreduce(asked.is_set(), MPI.LOR):
            save(step, weights)
            progress.saved()
            return
        if step % SAVE_STEPS == 0:
            save(step, weights)
            progress.saved()
    # A start after this one does no step, and ends with 0 at once.
    save(step, weights)
    progress.saved()
    tell("end", step=step, weights=[round(weight, 4) for weight in weights])


if __name__ == "__main__":
    main()
