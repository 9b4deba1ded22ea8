"""Cost of training and its interruptions in seconds, each with its source.

"Measured" is Horovod 0.28.1 with PyTorch 1.13 on CPUs, a real kubelet and steps of 0.25 s. A large model on GPUs takes
longer to start, which makes each interruption dearer for every side; the side that restarts most gains from low values.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The parameters of the model.

    step: one step, whatever the world size (the batch of each GPU is fixed); chosen.
    commit: between two `state.commit()`; chosen, for an elastic script should not commit at every batch.
    checkpoint: between two checkpoints that outlive the job; chosen.
    poll: the driver's look at discover_hosts.sh (horovod/runner/elastic/driver.py, DISCOVER_HOSTS_FREQUENCY_SECS).
    reset: from a killed rank, or a commit without leavers, to training with the rest; measured.
    start: what ranks that are new add to that: process, imports, broadcast; measured 4.9 s less what is above.
    elastic_timeout: without any host for so long the driver ends (HOROVOD_ELASTIC_TIMEOUT).
    cooldown: horovodrun's --blacklist-cooldown-range, None where it is not given: a lost host is lost for ever.
    """

    step: float = 0.25
    commit: float = 10.0
    checkpoint: float = 15 * 60.0
    poll: float = 1.0
    reset: float = 1.2
    start: float = 2.5
    elastic_timeout: float = 600.0
    cooldown: tuple[float, float] | None = None
