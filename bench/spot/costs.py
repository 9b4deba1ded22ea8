"""The cost of training and its interruptions in seconds, each with its source.

"Measured" is Horovod 0.28.1 with PyTorch 1.13 on CPUs, a real kubelet and steps of 0.25 s. A large model on GPUs takes
longer to start, so each interruption costs every side more. Low values favour the side that restarts most.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The parameters of the model.

    step: a step, at every world size (the batch of each GPU is fixed); chosen.
    commit: between two `state.commit()`; chosen, because an elastic script should not commit at every batch.
    checkpoint: between two checkpoints that outlive the job; chosen.
    poll: between two runs of discover_hosts.sh (horovod/runner/elastic/driver.py, DISCOVER_HOSTS_FREQUENCY_SECS).
    reset: from a killed rank, or a commit with leaving ranks, to training with the rest; measured.
    start: added by new ranks: process, imports, broadcast; measured 4.9 s minus `reset` and `poll`.
    elastic_timeout: the driver ends after this time without a host (HOROVOD_ELASTIC_TIMEOUT).
    """

    step: float = 0.25
    commit: float = 10.0
    checkpoint: float = 15 * 60.0
    poll: float = 1.0
    reset: float = 1.2
    start: float = 2.5
    elastic_timeout: float = 600.0
