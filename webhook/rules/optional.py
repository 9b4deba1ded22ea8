"""What an optional capability adds to the answers of the webhook, by default nothing, and what a review knows; pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod
from webhook.rules.review import Answer, Refusal, Request
from webhook.rules.size import QuotaFacts


class Lookup:
    """Lookups in the cluster's last known state.

    This default watches nothing, so both methods raise LookupError.
    """

    def named(self, _resource: Resource, _name: str) -> KubeObject | None:
        """Return the cluster-wide object of that name, None if there is none."""
        raise LookupError

    def within(self, _resource: Resource, _namespace: str) -> Iterable[KubeObject]:
        """Return the objects of a namespace."""
        raise LookupError


class Admission:
    """One capability.

    watches: the cluster-wide resources that it looks up, and how their JSON is read.
    watches_within: those that have a namespace. taken: how labels of pods begin that somebody reads
    as their own, and writes at admission.
    """

    watches: ClassVar[Mapping[Resource, Callable[[bytes], KubeObject]]] = {}
    watches_within: ClassVar[Mapping[Resource, Callable[[bytes], KubeObject]]] = {}
    taken: ClassVar[tuple[str, ...]] = ()

    def patched(self, _pod: Pod, _job: JobFacts) -> Patch:
        """Return the patches for a new launcher or worker; `_job`: the MPIJob as last seen."""
        return ()

    def placeholder(self, _pod: Pod, _job: JobFacts) -> Patch:
        """Return the only patches of a worker that nobody wants: it holds its place and no resources."""
        return ()

    def refusals(
        self, _job: MPIJob, _new: JobFacts, _old: JobFacts | None, _lookup: Lookup
    ) -> Iterable[Refusal]:
        """Yield the mistakes that a new or changed MPIJob brings in; `_old`: None if it is new."""
        return ()

    def scale_refusals(self, _job: JobFacts, _replicas: int) -> Iterable[Refusal]:
        """Yield the refusals of a size that is asked for at the scale subresource."""
        return ()

    def scaled(self, _job: JobFacts, replicas: int, *, user: str) -> int:  # noqa: ARG002 - asked for by name
        """Return the size that a job gets when `user` asks for this one at the scale subresource."""
        return replicas

    def warnings(
        self, _job: MPIJob, _new: JobFacts, _old: JobFacts | None, _lookup: Lookup
    ) -> Iterable[str]:
        """Yield doubts about a new or changed MPIJob; `_old`: None if it is new."""
        return ()

    def findings(self, _job: MPIJob, _about: JobFacts) -> Iterable[str]:
        """Yield warnings of what is allowed but unwise; for an edit only the new ones."""
        return ()

    def edits(self, _new: JobFacts, _old: JobFacts) -> Iterable[str]:
        """Yield the effects of an edit of a job that has started."""
        return ()


@dataclass(frozen=True, kw_only=True)
class ReviewContext:
    """The facts that a review lacks: the cluster as last seen, and the time; passed in, so that answers stay pure.

    job: returns the MPIJob of a namespace and name, None while it is not known. quotas: returns the
    ResourceQuotas of a namespace. now: returns seconds since the epoch. lookup: what capabilities
    look up. rooms: what they add.
    """

    job: Callable[[str, str], JobFacts | None]
    now: Callable[[], float]
    quotas: Callable[[str], Iterable[QuotaFacts]] = lambda _namespace: ()
    lookup: Lookup = field(default_factory=Lookup)
    rooms: Sequence[Admission] = ()


class Hook(Protocol):
    """Answers reviews at a path that is a secret, because an answer there changes an object."""

    def is_at(self, path: str) -> bool:
        """Return True if a request to that path comes from the API server."""

    async def answer(self, request: Request) -> Answer:
        """Answer a review."""
