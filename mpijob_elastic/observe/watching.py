"""What a capability may watch: objects that belong to jobs, even if the resource is not served."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.served import ServerVersion, WhileServed
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Fact
from mpijob_elastic.model.pod import PodFacts

F = TypeVar("F", bound=Fact)


class JobKey(NamedTuple):
    """A job's namespace and name: the queue's key."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class ByJob(Generic[F]):
    """Objects of one resource while it is served."""

    served: WhileServed
    #: The objects by their job and name.
    index: Mapping[JobKey, Mapping[str, F]]

    @property
    def known(self) -> bool | None:
        """True once the objects are listed, False if they are not served, None before."""
        return self.served.known

    def of(self, key: JobKey) -> Mapping[str, F]:
        """Return the objects of a job by name."""
        return self.index.get(key, {})

    def values(self) -> Collection[F]:
        """Return the objects of all jobs."""
        return self.served.cache.store.values()


class Watching(Protocol):
    """The caches, as a capability sees them."""

    #: The version of the API server.
    server: ServerVersion

    def by_job(
        self, resource: Resource, read: Callable[[bytes], F], *, selector: str | None = None
    ) -> ByJob[F]:
        """Watch a resource, and wake the job of each object that changes.

        selector: the label selector of the objects.
        """

    def unplaced(self) -> Iterable[tuple[JobFacts, Mapping[str, PodFacts]]]:
        """Yield each job with its pods for which the scheduler has found no node, by name."""


# Returns the view of a job with what each capability knows of it.
See = Callable[[JobKey, JobView], JobView]


def unseen(_key: JobKey, view: JobView) -> JobView:
    """Return the view without any capability."""
    return view
