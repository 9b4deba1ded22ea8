"""KubeQueue's side of a job: names of KubeQueue and koord-queue, and the QueueUnit.

A QueueUnit asks for the quota of the whole job.

https://github.com/kube-queue/kube-queue
https://github.com/kube-queue/api/blob/main/pkg/apis/scheduling/v1alpha1/type.go
https://github.com/koordinator-sh/koord-queue/blob/main/pkg/apis/scheduling/v1alpha1/type.go
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.resources import MPI_JOBS, Resource
from mpijob_elastic.model.job_facts import CapabilityFacts, JobFacts
from mpijob_elastic.model.json_parts import Owned, Reference, Wire, owned, owning_pods

# On an MPIJob, written by users and by KubeQueue: holds new pods back.
KUBEQUEUE_SUSPEND = "scheduling.x-k8s.io/suspend"
# On an MPIJob, written by users, and on its QueueUnit, where koord-queue reads them: the queue of
# the job, and its quota in the tree (koordinator-sh/koord-queue:
# pkg/framework/plugins/elasticquota).
KUBEQUEUE_ANNOTATIONS = ("kube-queue/", "koord-queue/")
KUBEQUEUE_QUEUES = ("koord-queue/queue-name", "kube-queue/queue-name")
KUBEQUEUE_LABELS = "quota.scheduling."
# On a QueueUnit, written by the controller: for how many workers it asks.
UNIT_WORKERS = f"{names.PREFIX}workers"

QUEUE_UNITS = Resource(
    group="scheduling.x-k8s.io", version="v1alpha1", plural="queueunits", kind="QueueUnit"
)

# The reason of a stop.
HELD = f"annotation {KUBEQUEUE_SUSPEND}"
# Phases. A unit without a phase waits, too: where the status is a subresource, nobody can write it
# when the unit is created.
ENQUEUED, RUNNING = "Enqueued", "Running"
# Phases in which the job may start. The second is koord-queue's, once the scheduler has found
# nodes.
GRANTED = frozenset({"Dequeued", "SchedSucceed"})
# Phases in which the quota is wanted back: koord-queue's extensions put the annotation back then.
TAKEN_BACK = frozenset({"TimeoutBackoff", "Preempted"})
# A waiting job no longer has a use for a unit in these phases.
OVER = TAKEN_BACK | {RUNNING, "Succeed", "Failed"}
# Characters of KubeQueue's message that are kept: it lists what each quota lacks.
_LONGEST_SAID = 300


@dataclass(frozen=True)
class HeldJob(CapabilityFacts):
    """KubeQueue's annotation holds the job."""

    gate = names.GATE_SUSPENDED
    queued = True

    def findings(self, job: JobFacts) -> Iterable[str]:
        """Yield a warning if Kueue queues the job as well, because it then gets no QueueUnit."""
        if job.elastic and names.GATE_QUEUED in job.gates:
            yield (
                f"{KUBEQUEUE_SUSPEND} holds a job with a queue of Kueue "
                "for ever: it gets no QueueUnit"
            )


class QueueUnit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A QueueUnit as last seen."""

    metadata: Owned
    #: For how many workers it asks; 0 if we did not write that.
    workers: int = 0
    #: "" for none.
    phase: str = ""
    #: "" if it names none.
    queue: str = ""
    #: KubeQueue's message, on a single line.
    said: str = ""
    #: The uids of the pods that own it, besides the job.
    pods: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """True if it is in the queue."""
        return self.phase not in GRANTED | OVER

    @property
    def shown_queue(self) -> str:
        """Its queue, or KubeQueue if it names none."""
        return self.queue or "KubeQueue"

    @property
    def words(self) -> str:
        """Its name and phase."""
        return f"QueueUnit {self.metadata.name} is {self.phase or ENQUEUED}"


def queue_unit_name(job: str) -> str:
    """Return the name of a job's QueueUnit.

    koord-queue's extension for older MPIJobs uses the same name.
    """
    return f"{job}-mpi-qu"


class _Spec(Wire, frozen=True):
    consumer_ref: Reference | None = None
    queue: str = ""


class _Status(Wire, frozen=True):
    phase: str = ""
    message: str = ""


class _Unit(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None
    status: _Status | None = None


_decoder = msgspec.json.Decoder(_Unit)


def read(raw: bytes) -> QueueUnit:
    """Return the facts in a QueueUnit's JSON. Raises msgspec.DecodeError for anything else."""
    found = _decoder.decode(raw)
    spec, status, name = found.spec or _Spec(), found.status or _Status(), found.metadata.name
    consumer = spec.consumer_ref or Reference()
    is_job = consumer.kind == MPI_JOBS.kind and consumer.api_version == MPI_JOBS.api_version
    suffix = queue_unit_name("")
    job = name.removesuffix(suffix) if name.endswith(suffix) else consumer.name if is_job else ""
    workers = found.metadata.annotations.get(UNIT_WORKERS, "")
    return QueueUnit(
        metadata=msgspec.structs.replace(owned(found.metadata), job=job),
        workers=int(workers) if workers.isdecimal() else 0,
        phase=status.phase,
        queue=spec.queue,
        said=" ".join(status.message.split())[:_LONGEST_SAID],
        pods=owning_pods(found.metadata),
    )
