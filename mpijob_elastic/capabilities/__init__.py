"""The optional capabilities of a job, in the order in which they speak.

This is the only place that names their pure halves.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from mpijob_elastic.capabilities.autoscaling import Autoscaling
from mpijob_elastic.capabilities.autoscaling.facts import ANNOTATIONS as AUTOSCALING
from mpijob_elastic.capabilities.avoided_nodes import AvoidedNodes
from mpijob_elastic.capabilities.disruption import Disruption
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.disruption.known_signs import signs
from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs.facts import ANNOTATION as GANG_ANNOTATION
from mpijob_elastic.capabilities.gangs.facts import GANG
from mpijob_elastic.capabilities.gangs.facts import GROUPS as GANG_GROUPS
from mpijob_elastic.capabilities.history import History
from mpijob_elastic.capabilities.kube_queue import HOLDING as QUEUE_UNITS
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND
from mpijob_elastic.capabilities.kueue import HOLDING as WORKLOADS
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.kueue.topology import DOMAIN
from mpijob_elastic.capabilities.missed_fields import MARK as MISSED_FIELDS_MARK
from mpijob_elastic.capabilities.missed_fields import MissedFields
from mpijob_elastic.capabilities.run_policy import ANNOTATION as RUN_POLICY
from mpijob_elastic.capabilities.run_policy import Runs
from mpijob_elastic.capabilities.stragglers import Stragglers
from mpijob_elastic.capabilities.stragglers.facts import ANNOTATION as PROGRESS_TIMEOUT
from mpijob_elastic.decide.capability import Capability, Holding
from mpijob_elastic.model import job_facts, mpijob, policy
from mpijob_elastic.model.job import Attached, JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.node import Signs
from mpijob_elastic.model.policy import Annotation

__all__ = ["ALL", "GROUPS", "HOLDINGS", "KEYS", "POD_MARKS", "node_signs", "of", "read", "told"]
# The annotations and labels of capabilities that a command writes.
__all__ += ["GANG", "KUBEQUEUE_SUSPEND", "LABEL_QUEUE"]

ALL: tuple[type[Capability], ...] = (
    # What suspends a job comes first: its reason is the first that a user reads.
    Runs,
    KubeQueue,
    # Queues of quota come before gangs: a pod that waits for quota waits for no gang.
    Kueue,
    Gangs,
    # What sets the size comes after what lets the pods start.
    Autoscaling,
    # A worker that a queue takes back and whose node goes is told of by the queue.
    Disruption,
    # What becomes of later workers is told after what becomes of those that are there.
    AvoidedNodes,
    EtOperator,
    # A pod is made again for its fields if nobody has a better reason.
    MissedFields,
    # What may be wrong with the training is told after what becomes of the pods.
    Stragglers,
    # The history follows what all others have changed.
    History,
)

# The annotations of capabilities that users write.
ANNOTATIONS: tuple[Annotation, ...] = (
    RUN_POLICY,
    GANG_ANNOTATION,
    *AUTOSCALING.values(),
    PROGRESS_TIMEOUT,
)
KEYS = policy.KEYS.union(annotation.key for annotation in ANNOTATIONS)
# The labels and annotations by which schedulers know pods that start together.
_GROUPS = (GANG_GROUPS,)
GROUPS = frozenset[str]().union(*_GROUPS)
# The annotations of pods that a capability reads.
POD_MARKS = frozenset[str]((EVICTION_MARK, MISSED_FIELDS_MARK, DOMAIN))
# The objects of ours that hold quota.
HOLDINGS: tuple[Holding, ...] = (QUEUE_UNITS, WORKLOADS)
# Who knows the signs that a node is about to go.
_NODE_SIGNS: tuple[Callable[..., Signs], ...] = (signs,)


def told(view: JobView, *, seen: Iterable[Attached | None] = ()) -> JobView:
    """Return the view with its capabilities.

    `seen`: the capabilities that watches have found. The view's own objects tell of all others.
    """
    found = {type(known): known for known in seen}
    known = [found.get(each) or each.told(view) for each in ALL]
    return replace(view, capabilities=tuple(one for one in known if one is not None))


def of(job: MPIJob) -> JobFacts:
    """Return the facts of an MPIJob, with what it asks of each capability."""
    return job_facts.of(job, [each.asked for each in ALL])


def read(raw: bytes) -> JobFacts:
    """Return the facts in an MPIJob's JSON.

    Raises msgspec.DecodeError if the JSON is no MPIJob, or is too large.
    """
    return job_facts.kept(of(mpijob.decode(raw)))


def node_signs(*, more: Iterable[str] = (), ignored: Iterable[str] = ()) -> Signs:
    """Return the signs that a node is about to go; none without a capability that knows them.

    `more` are signs besides the usual signs; signs in `ignored` never count. Raises ValueError.
    """
    return next((known(more=more, ignored=ignored) for known in _NODE_SIGNS), Signs())
