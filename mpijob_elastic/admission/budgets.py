"""PodDisruptionBudgets that workers which only hold their place make useless; pure.

Workers that are parked never run, and the extra workers of a queued job wait for their quota. Where
a budget takes these for unavailable, it allows no eviction, and `kubectl drain` waits for ever.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice

from mpijob_elastic import names
from mpijob_elastic.admission.interface import Lookup
from mpijob_elastic.admission.review import MOST
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import BUDGETS, Resource
from mpijob_elastic.model import budgets
from mpijob_elastic.model.budgets import BudgetFacts
from mpijob_elastic.model.job_facts import JobFacts

# The resource that is looked up, and the reader of its JSON.
WATCHES: Mapping[Resource, Callable[[bytes], KubeObject]] = {BUDGETS: budgets.read}


def warnings(new: JobFacts, old: JobFacts | None, lookup: Lookup) -> Iterator[str]:
    """Yield a warning for each budget that will allow no eviction.

    There is none if the edit does not change how many workers run, or if nobody can say.
    """
    ready = _ready(new)
    if ready == new.replicas or (old and (old.replicas, _ready(old)) == (new.replicas, ready)):
        return
    why = "are parked" if new.workers < new.replicas else "wait for quota"
    for budget in islice(_blocking(new, lookup, ready=ready), MOST):
        yield (
            f"PodDisruptionBudget {budget.metadata.name} ({budget.form}) allows no eviction while "
            f"workers {why}: it counts them as unavailable; set minAvailable to a number of at "
            f"most {max(0, ready - 1)}"
        )


def _blocking(job: JobFacts, lookup: Lookup, *, ready: int) -> Iterator[BudgetFacts]:
    with suppress(LookupError):
        for found in lookup.within(BUDGETS, job.metadata.namespace):
            if isinstance(found, BudgetFacts) and budgets.blocks(found, job, ready=ready):
                yield found


def _ready(job: JobFacts) -> int:
    """Return how many workers run for sure: parked workers do not, and extras may wait."""
    is_rationed = job.elastic and names.GATE_QUEUED in job.gates
    least = job.policy.min_replicas if is_rationed else None
    return min(job.workers, least or job.workers)
