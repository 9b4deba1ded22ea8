"""Sizes at admission: a size that is not allowed is refused, and that of an HPA is rounded.

An HPA computes any size and asks for it again and again, so the HPA gets the next larger allowed
size: each load has one size at which the job rests, whichever size the job had before.
"""

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.admission import size
from mpijob_elastic.admission.interface import CapabilityAdmission, Lookup
from mpijob_elastic.admission.review import Refusal
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob

# kube-controller-manager's HPA controller, with a credential of its own and without
# (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#controller-roles).
SCALERS = frozenset(
    {
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        "system:kube-controller-manager",
    }
)


class SizesAdmission(CapabilityAdmission):
    """What the webhook says of sizes."""

    def refusals(
        self, _job: MPIJob, new: JobFacts, old: JobFacts | None, _lookup: Lookup
    ) -> Iterator[Refusal]:
        """Yield a refusal if an edit asks for a size that is not allowed."""
        yield from _refusals(new, old, field=size.REPLICAS_FIELD)

    def scale_refusals(self, new: JobFacts, old: JobFacts, _lookup: Lookup) -> Iterator[Refusal]:
        """Yield a refusal of a size that is not allowed."""
        yield from _refusals(new, old, field=size.SCALE_FIELD)


def rounded(job: JobFacts, replicas: int, *, user: str) -> int:
    """Return the next larger size for an HPA, the largest if none is larger.

    Where 0 suspends the job, an HPA comes from 0, so each size up to the least size means the
    latter.
    """
    if user not in SCALERS:
        return replicas
    if job.policy.zero_suspends and job.acts_elastic:
        replicas = max(replicas, job.policy.min_replicas or 1)
    return job.size_at_least(replicas) or job.size_at_most(replicas)


def _refusals(new: JobFacts, old: JobFacts | None, *, field: str) -> Iterator[Refusal]:
    """Yield a refusal with the neighbours of the size; a size that was there before may stay."""
    allowed, workers = new.policy.sizes, new.workers
    is_as_before = old is not None and (old.workers, old.sizes) == (workers, new.sizes)
    if is_as_before or not allowed or not new.sizes or workers in new.sizes:
        return
    if new.is_at_zero or size.excess(workers, new):
        return
    message = (
        f"{workers} is not a size of metadata.annotations[{names.SIZES}] "
        f"({allowed.text}); use {new.sizes_near(workers)}"
    )
    yield Refusal(field=field, message=message)
