"""Writers that capabilities bring for their actions, and their additions to pods."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from mpijob_elastic.act.events import Events
from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.decide.actions import Action, Operations, Ungate
from mpijob_elastic.kube import errors, meta
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model.job import JobView

# The most values in an object that we create: a third of the values that we read, because the API
# server notes the manager of most fields, and others add a status.
_MOST_VALUES = meta.MOST_VALUES // 3


# Returns the additions to a pod that loses its gates, as a JSON patch; [] if there are none. A
# precondition comes first.
Additions = Callable[[Identity], Awaitable[Operations]]


class Seen(Protocol):
    """Takes in answers of the API server to writes."""

    def see(self, resource: Resource, raw: bytes) -> None:
        """Take in the JSON of an object after our write."""

    def see_gone(self, resource: Resource, namespace: str, ref: Identity) -> None:
        """Take in that an object does not exist any more."""

    def is_served(self, resource: Resource) -> bool | None:
        """Tell whether a resource of a capability is served; None while that is not known."""

    def of_job(self, resource: Resource, namespace: str, name: str) -> Collection[Any]:
        """Return the objects of such a resource that name this job, whether the job exists or not.

        Each change of them, and of what is served, has the job looked at.
        """


def check_size(body: object) -> None:
    """Raise errors.Invalid for a new object that would be too large to be read again.

    Quota that such an object gets would never be freed.
    """
    try:
        meta.check_cost(msgspec.json.encode(body), most=_MOST_VALUES)
    except meta.TooLarge as error:
        raise errors.Invalid(
            status=422, reason="Invalid", message=f"its pods ask for too much: {error}"
        ) from error


async def add_nothing(_pod: Identity) -> Operations:
    """Return no additions."""
    return []


class CapabilityWriter:
    """Carries out the writes of some kinds of action; by default of no kind."""

    #: The kinds of action whose writes `perform` carries out.
    kinds: tuple[type, ...] = ()

    async def perform(self, view: JobView, action: Action) -> None:
        """Carry out an action of these kinds.

        Raises errors.KubeError or NotLeader: the action may have changed something.
        """

    def forget(self, namespace: str, name: str) -> None:
        """Forget a job that is gone."""

    async def jobless(self, namespace: str, name: str) -> None:
        """Do the writes that are due for objects that refer to a job that does not exist.

        Raises errors.KubeError or NotLeader.
        """

    async def starting(self, _view: JobView, _action: Ungate) -> Additions:
        """Read live objects before these pods start; return the function that adds to each pod.

        Raises act.writer.Outdated if these pods may not start.
        """
        return add_nothing


@dataclass(kw_only=True, eq=False)
class LiveWrites(CapabilityWriter):
    """Writes for which live objects are read first."""

    client: ApiReader
    leader_writer: LeaderWriter
    seen: Seen
    events: Events
    #: Returns seconds since the epoch.
    now: Callable[[], float]

    async def read(
        self, resource: Resource, name: str, namespace: str | None = None
    ) -> dict[str, Any]:
        """Return an object as it is now; namespace: None for a cluster-wide object.

        Raises errors.KubeError.
        """
        found: dict[str, Any] = msgspec.json.decode(
            await self.client.get(resource.path(namespace, name))
        )
        return found
