"""KubeQueue's side of a job: its QueueUnit, which asks for the quota of the whole job.

https://github.com/kube-queue/api/blob/main/pkg/apis/scheduling/v1alpha1/type.go
https://github.com/koordinator-sh/koord-queue/blob/main/pkg/apis/scheduling/v1alpha1/type.go
"""

from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities.kube_queue.api import KUBEQUEUE_SUSPEND
from mpijob_elastic.model.capability import Known
from mpijob_elastic.model.wire import Owned

# The reason of a stop.
HELD = f"annotation {KUBEQUEUE_SUSPEND}"
# Phases. A unit without one waits, too: where the status is a subresource, nobody can write it at the creation.
ENQUEUED, RUNNING = "Enqueued", "Running"
# The job may start. The second: koord-queue's, once the scheduler has found nodes.
GRANTED = frozenset({"Dequeued", "SchedSucceed"})
# The quota is wanted back: koord-queue's extensions put the annotation back then.
TAKEN_BACK = frozenset({"TimeoutBackoff", "Preempted"})
# A job that waits has no use for a unit in these any more.
OVER = TAKEN_BACK | {RUNNING, "Succeed", "Failed"}


@dataclass(frozen=True)
class Held(Known):
    """KubeQueue's annotation holds the job."""

    gate = names.GATE_SUSPENDED
    queued = True


class QueueUnit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A QueueUnit as last seen. workers: for how many it asks; 0 if that was not written by us. phase: "" for none.

    pods: uids of the pods that own it, too.
    """

    metadata: Owned
    workers: int = 0
    phase: str = ""
    queue: str = ""
    said: str = ""
    pods: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """True if it is in the queue."""
        return self.phase not in GRANTED | OVER

    @property
    def shown_queue(self) -> str:
        """Its queue, or who it waits for where it names none."""
        return self.queue or "KubeQueue"

    @property
    def words(self) -> str:
        """Its name and phase."""
        return f"QueueUnit {self.metadata.name} is {self.phase or ENQUEUED}"
