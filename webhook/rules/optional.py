"""What an optional capability adds to the answers of the webhook; by default nothing."""

from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar

from mpijob_elastic.kube.meta import KubeObject
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod
from webhook.rules.review import Refusal

# Returns a cluster-wide object of that name as last seen, None if there is none. Raises LookupError if nobody can say.
Lookup = Callable[[Resource, str], KubeObject | None]


class Admission:
    """One capability.

    watches: the cluster-wide resources that it looks up, and how their JSON is read. taken: how labels of pods begin
    that somebody reads as their own, and writes at admission.
    """

    watches: ClassVar[Mapping[Resource, Callable[[bytes], KubeObject]]] = {}
    taken: ClassVar[tuple[str, ...]] = ()

    def patched(self, _pod: Pod, _job: JobFacts) -> Patch:
        """Return what a new launcher or worker gets; `_job`: the MPIJob as last seen."""
        return ()

    def placeholder(self, _pod: Pod, _job: JobFacts) -> Patch:
        """Return what makes a worker that nobody wants hold its place and nothing else; it gets no more than that."""
        return ()

    def refusals(self, _job: MPIJob, _new: JobFacts, _old: JobFacts | None, _lookup: Lookup) -> Iterable[Refusal]:
        """Yield the mistakes that a new or changed MPIJob brings in; `_old`: None if it is new."""
        return ()

    def scale_refusals(self, _job: JobFacts, _replicas: int) -> Iterable[Refusal]:
        """Yield what is wrong with another size, asked for at the scale subresource."""
        return ()

    def scaled(self, _job: JobFacts, replicas: int, *, user: str) -> int:  # noqa: ARG002 - asked for by name
        """Return the size that a job gets when `user` asks for this one at the scale subresource."""
        return replicas

    def warnings(self, _job: MPIJob, _new: JobFacts, _lookup: Lookup) -> Iterable[str]:
        """Yield doubts about a new MPIJob."""
        return ()

    def findings(self, _job: MPIJob, _about: JobFacts) -> Iterable[str]:
        """Yield what is allowed, but not as it should be; of an edit only what is new is told."""
        return ()

    def edits(self, _new: JobFacts, _old: JobFacts) -> Iterable[str]:
        """Yield what an edit of a job that has started does."""
        return ()


def unknown(_resource: Resource, _name: str) -> KubeObject | None:
    """Look up nothing, as a webhook that watches nothing does."""
    raise LookupError
