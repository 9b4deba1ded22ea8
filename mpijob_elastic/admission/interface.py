"""What an optional capability adds to the webhook's answers, and what a review knows; pure.

By default a capability adds nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod
from mpijob_elastic.admission.review import Answer, Refusal, Request
from mpijob_elastic.admission.size import QuotaFacts
from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob


@dataclass(frozen=True, kw_only=True)
class LookedUp:
    """Objects that a capability looks up by name, while their resource is served."""

    resource: Resource
    #: Reads the JSON of an object.
    read: Callable[[bytes], KubeObject]
    #: The only name that is looked up; "" for every name.
    name: str = ""
    #: Each of them is in a namespace; otherwise they are cluster-wide.
    is_namespaced: bool = False


class Lookup:
    """Lookups in the cluster's last known state.

    Its methods raise LookupError if nobody can say. This default watches nothing, so they all
    raise it.
    """

    def serves(self, _resource: Resource) -> bool:
        """Tell whether the API serves a resource."""
        raise LookupError

    def named(self, _resource: Resource, _name: str, _namespace: str = "") -> KubeObject | None:
        """Return the object of that name, None if there is none; "": it is cluster-wide."""
        raise LookupError

    def within(self, _resource: Resource, _namespace: str) -> Iterable[KubeObject]:
        """Return the objects of a namespace."""
        raise LookupError


class CapabilityAdmission:
    """The part of one capability at admission."""

    def patched(self, _pod: AdmittedPod, _job: JobFacts, _lookup: Lookup) -> Patch:
        """Return the patch for a new launcher or worker; `_job`: the MPIJob as last seen."""
        return ()

    def names_queue(self, _job: MPIJob) -> bool:
        """Tell whether a new MPIJob belongs to a queue, or a quota, that this capability knows."""
        return False

    def default_queue(self, _job: MPIJob, _new: JobFacts, _lookup: Lookup) -> Patch:
        """Return the patch that puts a new MPIJob, which names no queue, into one."""
        return ()

    def refusals(
        self, _job: MPIJob, _new: JobFacts, _old: JobFacts | None, _lookup: Lookup
    ) -> Iterable[Refusal]:
        """Yield the mistakes that a new or changed MPIJob brings in; `_old`: None if it is new."""
        return ()

    def scale_refusals(self, _new: JobFacts, _old: JobFacts, _lookup: Lookup) -> Iterable[Refusal]:
        """Yield refusals of another size, asked for at the scale subresource.

        The facts differ in the size alone. What an edit of that size is refused for is refused
        here, too.
        """
        return ()

    def warnings(
        self, _job: MPIJob, _new: JobFacts, _old: JobFacts | None, _lookup: Lookup
    ) -> Iterable[str]:
        """Yield doubts about a new or changed MPIJob; `_old`: None if it is new."""
        return ()

    def findings(self, _job: MPIJob, _about: JobFacts) -> Iterable[str]:
        """Yield warnings on what is allowed, but not as it should be.

        After an edit only new ones are shown.
        """
        return ()


@dataclass(frozen=True, kw_only=True)
class ReviewContext:
    """The facts that a review lacks: the cluster as last seen, and the time.

    They are passed in, so that answers stay pure.
    """

    #: Returns the MPIJob of a namespace and name, None while it is not known.
    job: Callable[[str, str], JobFacts | None]
    #: Returns seconds since the epoch.
    now: Callable[[], float]
    #: Returns the ResourceQuotas of a namespace.
    quotas: Callable[[str], Iterable[QuotaFacts]] = lambda _namespace: ()
    #: The objects that capabilities look up.
    lookup: Lookup = field(default_factory=Lookup)
    #: What capabilities add.
    rooms: Sequence[CapabilityAdmission] = ()
    #: How labels of pods begin that another program reads as its own, and writes at admission.
    taken: tuple[str, ...] = ()
    #: The labels of pod templates are put back on new pods.
    restores_labels: bool = True


class ReviewHook(Protocol):
    """Answers reviews at a path that is a secret, because an answer there changes an object."""

    def is_at(self, path: str) -> bool:
        """Return True if a request to that path comes from the API server."""

    async def answer(self, request: Request, *, within: float) -> Answer:
        """Answer a review; the API server waits that many seconds."""
