"""Train a small classifier with PyTorch DDP and Gloo, started by mpirun or by torchrun.

    elastic.sh -- mpirun -np {np} -machinefile {hostfile} python3 train_ddp.py
    elastic.sh -- mpirun -np {np} -machinefile {hostfile} python3 node.py train_ddp.py

The parts that elastic.sh needs are marked (1) to (5). All ranks together take BATCH samples in a
step, so a change of the size changes neither the learning rate nor the number of steps. BATCH is a
multiple of each size that the job may have: DDP takes the mean over the ranks, so each needs the same
number of samples. Environment variables, with their defaults:

    CHECKPOINT=/work/checkpoint.pt    on a volume that each worker mounts
    STEPS=300 BATCH=48 SAVE_STEPS=50 RATE=0.05 SEED=1
    STEP_SECONDS=0    a step takes at least this long, to simulate a larger model

The output is one JSON object per line: each rank prints its start, rank 0 prints each step.
"""

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import torch
import torch.distributed as dist
from progress import Progress
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

CHECKPOINT = Path(os.environ.get("CHECKPOINT", "/work/checkpoint.pt"))
STEPS = int(os.environ.get("STEPS", "300"))
BATCH = int(os.environ.get("BATCH", "48"))
SAVE_STEPS = int(os.environ.get("SAVE_STEPS", "50"))
RATE = float(os.environ.get("RATE", "0.05"))
SEED = int(os.environ.get("SEED", "1"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0"))
FEATURES, CLASSES, SAMPLES = 16, 4, 4096


def tell(event: str, **facts: object) -> None:
    """Print one line of JSON."""
    about = {
        "event": event,
        "host": socket.gethostname(),
        "rank": dist.get_rank(),
        "size": dist.get_world_size(),
    }
    # With the end of the line in one piece: mpirun mixes what the ranks print.
    print(json.dumps({**about, **facts}) + "\n", end="", flush=True)


def meet() -> None:
    """Tell PyTorch where the ranks are; torchrun has done so already."""
    if "RANK" in os.environ:
        return
    # (1) Pods of mpi-operator v0.2.3 have no names in DNS, and mpirun tells no rank where rank 0 is.
    # So rank 0 tells the others its address, by MPI. In a pod /etc/hosts has it.
    from mpi4py import MPI  # noqa: PLC0415  # MPI_Init is needed below mpirun only

    world, address, port = MPI.COMM_WORLD, "", 0
    if world.rank == 0:
        address = os.environ.get("MASTER_ADDR") or socket.gethostbyname(socket.gethostname())
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
    address, port = world.bcast((address, port))
    os.environ |= {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "RANK": str(world.rank),
        "WORLD_SIZE": str(world.size),
        "LOCAL_RANK": str(world.Split_type(MPI.COMM_TYPE_SHARED).rank),
    }


def dataset() -> tuple[torch.Tensor, torch.Tensor]:
    """Return noisy points around one centre for each class, the same on every rank."""
    chance = torch.Generator().manual_seed(SEED)
    centres = torch.randn(CLASSES, FEATURES, generator=chance)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=chance)
    return centres[labels] + torch.randn(SAMPLES, FEATURES, generator=chance), labels


def share(step: int) -> torch.Tensor:
    """Return the samples of this rank in a step.

    Each epoch has its own order, which does not depend on the number of ranks.
    """
    epoch, batch = divmod(step, SAMPLES // BATCH)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(SEED + epoch))
    # (2) The samples of a step are shared out among the ranks that there are now.
    return order[batch * BATCH : (batch + 1) * BATCH][dist.get_rank() :: dist.get_world_size()]


def save(step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the checkpoint as a whole: an end may come at any time."""
    if dist.get_rank() == 0:
        new = CHECKPOINT.with_suffix(".new")
        torch.save(
            {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, new
        )
        new.rename(CHECKPOINT)
    dist.barrier()


def is_asked(asked: threading.Event) -> bool:
    """Return True on all ranks if one of them has heard the signal."""
    heard = torch.tensor(int(asked.is_set()))
    dist.all_reduce(heard, op=dist.ReduceOp.MAX)
    return bool(heard)


def main() -> None:
    """Train until all steps are done, or until elastic.sh asks the ranks to save."""
    meet()
    dist.init_process_group("gloo")
    # (3) The handler comes after MPI_Init, which takes SIGUSR1 for itself in MPICH and Intel MPI.
    asked = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: asked.set())
    if BATCH % dist.get_world_size():
        raise SystemExit(f"BATCH {BATCH} is no multiple of {dist.get_world_size()} ranks")
    torch.manual_seed(SEED)
    inputs, labels = dataset()
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)
    step, loss = 0, 0.0
    # (4) A start resumes from the checkpoint. Each rank reads it, so each worker mounts the volume.
    if CHECKPOINT.exists():
        found = torch.load(CHECKPOINT)
        step = found["step"]
        model.load_state_dict(found["model"])
        optimizer.load_state_dict(found["optimizer"])
    parallel = DistributedDataParallel(model)
    tell("start", step=step)
    progress = Progress(STEPS, writes=os.environ.get("LOCAL_RANK", "0") == "0")
    progress.begin()
    while step < STEPS:
        began, began_at = time.monotonic(), time.time()
        mine = share(step)
        optimizer.zero_grad()
        error = functional.cross_entropy(parallel(inputs[mine]), labels[mine])
        # DDP's allreduce is part of backward().
        own = time.monotonic() - began
        error.backward()
        optimizer.step()
        step, loss = step + 1, error.item()
        time.sleep(max(0.0, began + STEP_SECONDS - time.monotonic()))
        size = dist.get_world_size()
        progress.step(step, samples=BATCH, ranks=size, began=began_at, own=own)
        if dist.get_rank() == 0:
            tell("step", step=step, loss=round(loss, 4))
        # (5) The signal comes to each rank at another time, so the ranks agree on the step after
        # which they save. Then all end with 0.
        if is_asked(asked):
            save(step, model, optimizer)
            progress.saved()
            return
        if step % SAVE_STEPS == 0:
            save(step, model, optimizer)
            progress.saved()
    # A start after this one does no step, and ends with 0 at once.
    save(step, model, optimizer)
    progress.saved()
    tell("end", step=step, loss=round(loss, 4))


if __name__ == "__main__":
    main()
