"""PodDisruptionBudgets: which pods a budget selects, and how many of them it lets be evicted.

A budget with maxUnavailable, or with a percentage, expects as many pods as the scale subresource of
their owner asks for: `Worker.replicas`. So it takes a pod that waits at a gate, such as the
placeholder of a parked worker, for one that is unavailable. A budget with a number as minAvailable
expects nothing, and only counts the pods that are Ready.
https://github.com/kubernetes/kubernetes/blob/v1.34.1/pkg/controller/disruption/disruption.go
(getExpectedPodCount)
"""

import re
from collections.abc import Callable, Collection, Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire

# A budget whose selector has more requirements, or a requirement with more values, selects nothing
# here: little is kept of what any tenant may write.
MOST = 16
# The same holds for longer texts: a key has at most a prefix of 253 and a name of 63 characters.
LONGEST = 317
_PERCENT = re.compile(r"([0-9]{1,3})%")


class _Expression(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(Wire, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[_Expression] | None = None


class _Spec(Wire, frozen=True):
    selector: _Selector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class _Status(Wire, frozen=True):
    disruptions_allowed: int = 0


class _Budget(Wire, frozen=True):
    metadata: Identity
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Requirement(Wire, frozen=True):
    """A requirement of a label selector."""

    key: str
    #: In, NotIn, Exists or DoesNotExist.
    operator: str
    values: tuple[str, ...] = ()


class BudgetFacts(Wire, frozen=True):
    """All that is kept of a PodDisruptionBudget."""

    metadata: Identity
    #: What the labels of a pod must fulfil; None if the budget selects nothing.
    requirements: tuple[Requirement, ...] | None
    #: A number, or a text such as "50%"; None if absent.
    min_available: int | str | None
    #: As `min_available`.
    max_unavailable: int | str | None
    #: The number of pods that may be evicted now, as its controller has counted.
    allowed: int

    @property
    def form(self) -> str:
        """The limit in words."""
        if self.max_unavailable is not None:
            return f"maxUnavailable {self.max_unavailable}"
        return f"minAvailable {self.min_available}"

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the budget counts a pod with these labels."""
        wanted = self.requirements
        return wanted is not None and all(_holds(one, labels) for one in wanted)


_decoder = msgspec.json.Decoder(_Budget)


def read(raw: bytes) -> BudgetFacts:
    """Return the budget in its JSON. Raises msgspec.DecodeError for anything else."""
    found = _decoder.decode(raw)
    return BudgetFacts(
        metadata=found.metadata,
        requirements=_requirements(found.spec.selector),
        min_available=_limit(found.spec.min_available),
        max_unavailable=_limit(found.spec.max_unavailable),
        allowed=found.status.disruptions_allowed,
    )


def labels(job: JobFacts, role: str) -> Mapping[str, str]:
    """Return the labels of the pods of a role: those of its template, and the operator's."""
    return {
        **job.pod_labels[role],
        names.LABEL_GROUP_NAME: names.GROUP,
        names.LABEL_JOB_NAME: job.metadata.name,
        names.LABEL_JOB_ROLE: role,
    }


def waiting(view: JobView) -> tuple[str, ...]:
    """Return the pods below the size that only hold their place: parked, or held back for quota.

    None while the whole job waits: then it is no pod of a job that runs.
    """
    if not view.driver_running:
        return ()
    held = [pod.name for pod in view.workers if pod.facts.held_back]
    return tuple(sorted((*held, *(pod.name for pod in view.placeholders))))


def blocks(budget: BudgetFacts, job: JobFacts, *, ready: int) -> bool:
    """Tell whether a budget allows no eviction of the job's workers because some only wait.

    ready: the workers that run. A budget that would not allow one if all ran is not meant.
    """
    if not budget.selects(labels(job, names.ROLE_WORKER)):
        return False
    beside = int(budget.selects(labels(job, names.ROLE_LAUNCHER)))
    if_all = _evictable(budget, expected=job.replicas, healthy=job.replicas + beside)
    now = _evictable(budget, expected=job.replicas, healthy=ready + beside)
    return now <= 0 < if_all


def _evictable(budget: BudgetFacts, *, expected: int, healthy: int) -> int:
    """Return how many pods may be evicted."""
    if budget.max_unavailable is not None:
        return healthy - max(0, expected - _count(budget.max_unavailable, of=expected))
    if budget.min_available is not None:
        return healthy - _count(budget.min_available, of=expected)
    return healthy


def _count(limit: int | str, *, of: int) -> int:
    """Return a number of pods; a percentage is rounded up."""
    if isinstance(limit, int):
        return limit
    found = _PERCENT.fullmatch(limit)
    return -(-of * int(found[1]) // 100) if found else 0


def _limit(limit: int | str | None) -> int | str | None:
    """Return the limit; None for a text that is no percentage."""
    is_readable = not isinstance(limit, str) or _PERCENT.fullmatch(limit)
    return limit if is_readable else None


def _requirements(selector: _Selector | None) -> tuple[Requirement, ...] | None:
    if selector is None:
        return None
    equal = selector.match_labels or {}
    others = selector.match_expressions or []
    is_large = len(equal) + len(others) > MOST
    if is_large or any(len(one.values or ()) > MOST for one in others):
        return None
    found = (
        *(Requirement(key=key, operator="In", values=(value,)) for key, value in equal.items()),
        *(
            Requirement(key=one.key, operator=one.operator, values=tuple(one.values or ()))
            for one in others
        ),
    )
    texts = (text for one in found for text in (one.key, one.operator, *one.values))
    return None if any(len(text) > LONGEST for text in texts) else found


_HOLDS: Mapping[str, Callable[[str | None, Collection[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
}


def _holds(requirement: Requirement, found: Mapping[str, str]) -> bool:
    test = _HOLDS.get(requirement.operator)
    return test is not None and test(found.get(requirement.key), requirement.values)
