"""The optional capabilities of a job, in the order in which they speak.

This is the only place that names their pure halves.
"""

from collections.abc import Iterable
from dataclasses import replace

from mpijob_elastic.capabilities.autoscaling import Autoscaling
from mpijob_elastic.capabilities.disruption import Disruption
from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.gangs import Gangs
from mpijob_elastic.capabilities.gangs.facts import GANG
from mpijob_elastic.capabilities.history import History
from mpijob_elastic.capabilities.kube_queue import KubeQueue
from mpijob_elastic.capabilities.kueue import Kueue
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.parking import PARKED, Parking
from mpijob_elastic.capabilities.run_policy import Runs
from mpijob_elastic.capabilities.sizes import SIZES, Sizes
from mpijob_elastic.capabilities.suspension import SUSPEND, Suspension
from mpijob_elastic.decide.wishes import Capability
from mpijob_elastic.model import job_facts, mpijob, policy
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts, Known
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.model.pod import Signs

__all__ = ["ALL", "GROUPS", "KEYS", "POD_MARKS", "node_signs", "of", "read", "told"]
# The annotations and labels of capabilities that a command writes.
__all__ += ["GANG", "LABEL_QUEUE", "PARKED", "SIZES", "SUSPEND"]

ALL: tuple[type[Capability], ...] = (
    Suspension,
    Runs,
    KubeQueue,
    Kueue,
    Gangs,
    Autoscaling,
    Sizes,
    Parking,
    Disruption,
    EtOperator,
    History,
)


def told(view: JobView, *, seen: Iterable[Known | None] = ()) -> JobView:
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
    """Return the signs that a node is about to go, from the first capability that defines any.

    Raises ValueError.
    """
    return next((known for each in ALL if (known := each.node_signs(more, ignored))), Signs())


# The annotations that users write.
KEYS = policy.KEYS.union(each.key for one in ALL for each in one.annotations)
# The labels and annotations by which schedulers know pods that start together.
GROUPS = frozenset(key for one in ALL for key in one.groups)
# The annotations of workers that a capability reads.
POD_MARKS = frozenset(key for one in ALL for key in one.pod_marks)
