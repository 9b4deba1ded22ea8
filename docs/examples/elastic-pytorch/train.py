"""Train a small classifier with Elastic Horovod, and continue when hosts join and leave.

    horovodrun -np 1 --min-np 1 --max-np 4 --host-discovery-script /etc/mpi/discover_hosts.sh
    python3 train.py

The elastic parts are marked (1) to (5). Exit code 0: TARGET_STEPS steps are done and the loss is at
most TARGET_LOSS. Exit code 1: the loss is still higher after MAX_STEPS. Environment variables, with
their defaults:

    TARGET_STEPS=200 MAX_STEPS=20000 TARGET_LOSS=0.2 COMMIT_STEPS=4 BATCH_SIZE=32 SEED=1
    STEP_SECONDS=0     a step takes at least this long, to simulate a larger model

The output is one JSON object per line: each rank prints its start and its end, rank 0 prints each
step: `began` and `time` are its begin and its end, `saved` tells whether it is committed.
"""

import json
import os
import socket
import sys
import time

import horovod.torch as hvd
import torch
from progress import Progress
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

TARGET_STEPS = int(os.environ.get("TARGET_STEPS", "200"))
MAX_STEPS = int(os.environ.get("MAX_STEPS", "20000"))
TARGET_LOSS = float(os.environ.get("TARGET_LOSS", "0.2"))
COMMIT_STEPS = int(os.environ.get("COMMIT_STEPS", "4"))
BATCH_SIZE = int(os.environ.get("BATCH_SIZE", "32"))
SEED = int(os.environ.get("SEED", "1"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0"))

# ElasticSampler fails near the end of an epoch if fewer samples are left than half the ranks. So the
# samples are a multiple of the batch, and a batch is at least half as large as --max-np.
FEATURES, CLASSES, SAMPLES = 16, 4, 4096 // BATCH_SIZE * BATCH_SIZE
HOST = socket.gethostname()


def tell(event: str, **facts: object) -> None:
    """Print one line of JSON."""
    about = {
        "event": event,
        "time": round(time.time(), 3),
        "host": HOST,
        "rank": hvd.rank(),
        "size": hvd.size(),
    }
    print(json.dumps({**about, **facts}), flush=True)


def dataset() -> TensorDataset:
    """Return noisy points around one centre for each class, the same on every rank."""
    random = torch.Generator().manual_seed(SEED)
    centres = torch.randn(CLASSES, FEATURES, generator=random)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=random)
    return TensorDataset(centres[labels] + torch.randn(SAMPLES, FEATURES, generator=random), labels)


def reached(state: hvd.elastic.TorchState) -> bool:
    """Return True if the loss is low enough.

    Like `finished`, this is the same on all ranks, which end together.
    """
    return bool(state.loss <= TARGET_LOSS)


def finished(state: hvd.elastic.TorchState) -> bool:
    """Return True if training is over."""
    return state.step >= MAX_STEPS or (state.step >= TARGET_STEPS and reached(state))


def learn(state: hvd.elastic.TorchState, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """Do one step; return the seconds before the ranks wait for one another."""
    began = time.monotonic()
    state.optimizer.zero_grad()
    loss = functional.cross_entropy(state.model(inputs), labels)
    loss.backward()
    own = time.monotonic() - began
    state.optimizer.step()
    state.loss = 0.9 * state.loss + 0.1 * hvd.allreduce(loss.detach(), name="loss").item()
    state.step += 1
    time.sleep(max(0.0, began + STEP_SECONDS - time.monotonic()))
    return own


# (1) Horovod calls this again after each change of the hosts, with the state of the last commit.
@hvd.elastic.run
def train(state: hvd.elastic.TorchState, data: TensorDataset, progress: Progress) -> None:
    """Train until it is finished."""
    progress.begin()
    hosts = hvd.allgather_object(HOST)
    while not finished(state):
        # (2) The sampler distributes the samples that are left in this epoch over the current
        # ranks.
        for index, (inputs, labels) in enumerate(
            DataLoader(data, BATCH_SIZE, sampler=state.sampler)
        ):
            began, size = time.time(), hvd.size()
            own = learn(state, inputs, labels)
            progress.step(state.step, samples=BATCH_SIZE * size, ranks=size, began=began, own=own)
            saves = finished(state) or state.step % COMMIT_STEPS == 0
            state.sampler.record_batch(index, BATCH_SIZE)
            if hvd.rank() == 0:
                tell(
                    "step",
                    step=state.step,
                    epoch=state.epoch,
                    hosts=hosts,
                    loss=round(state.loss, 4),
                    began=round(began, 3),
                    saved=saves,
                )
            if saves:
                progress.saved()
            if finished(state):
                return
            # (3) Ranks can join and leave only here, so commit every few seconds.
            if saves:
                state.commit()
        state.epoch += 1
        state.sampler.set_epoch(state.epoch)


def main() -> int:
    """Train, and return the exit code."""
    # The other ranks wait for this call in Gloo, 30 s at most: nothing but imports comes before it.
    hvd.init()
    torch.manual_seed(SEED)
    tell("start", pid=os.getpid())
    data = dataset()
    model = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 64), torch.nn.ReLU(), torch.nn.Linear(64, CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    # (4) The state that a joining rank gets, and that a failed step must not lose.
    sampler = hvd.elastic.ElasticSampler(data, seed=SEED)
    state = hvd.elastic.TorchState(
        model=model, optimizer=optimizer, sampler=sampler, step=0, epoch=0, loss=2.0
    )
    # (5) When hosts only leave, Horovod sends no state, so without this the sampler would not
    # notice.
    state.register_reset_callbacks([sampler.reset])
    train(state, data, Progress(TARGET_STEPS, writes=hvd.local_rank() == 0))
    tell("end", step=state.step, loss=round(state.loss, 4), reached=reached(state))
    return 0 if reached(state) else 1


if __name__ == "__main__":
    sys.exit(main())
