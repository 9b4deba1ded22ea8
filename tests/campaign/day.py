"""What a day is to the search for the stale, the missed and the crashed: steps, what must come true, and what is left.

Each step waits until all is as it should be, but not for ever: users do not wait for a controller
that is in trouble.
"""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from lab.cluster import Cluster
from lab.errors import LabError
from mpijob_elastic import names
from mpijob_elastic.capabilities.history import QUIET as HISTORY_QUIET
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.resources import Resource
from tests.campaign.sequence_place import Look, come_true
from tests.campaign.sequence_rules import Lags, Version
from tests.lab.job import Job, Object, State

QUIET = HISTORY_QUIET + 3.0  # seconds for which nothing may change at the end: the phase goes last
# The objects of which an ending tells.
KINDS = (
    resources.MPI_JOBS,
    resources.PODS,
    resources.CONFIG_MAPS,
    resources.ROLES,
    resources.Resource(plural="serviceaccounts", kind="ServiceAccount"),
    resources.Resource(
        group="rbac.authorization.k8s.io", plural="rolebindings", kind="RoleBinding"
    ),
)

Steps = Mapping[str, Callable[[], Awaitable[None]]]


@dataclass(frozen=True, kw_only=True)
class Day(ABC):
    """A day of a job. pool: a name of the day's own. versions: what was written in the namespace; it grows.

    WATCHED: kinds whose watches are troubled. CUT_FROM: steps from which they give nothing. KINDS:
    of which an ending tells.
    """

    WATCHED: ClassVar[tuple[Resource, ...]]
    CUT_FROM: ClassVar[tuple[str, ...]]
    KINDS: ClassVar[tuple[Resource, ...]] = KINDS

    cluster: Cluster
    job: Job
    pool: str
    versions: list[Version] = field(default_factory=list)

    @abstractmethod
    def morning(self) -> Steps:
        """The steps until the job is whole."""

    @abstractmethod
    def evening(self) -> Steps:
        """The steps until it has ended."""

    @abstractmethod
    async def is_whole(self, state: State) -> str:
        """Return what is not as it should be after a step of the morning, "" if nothing."""

    @abstractmethod
    def broken(self, *, deleted: AbstractSet[str], lags: Lags) -> list[str]:
        """Return what broke a safety rule. deleted: uids of pods that we deleted. lags: of watches."""

    @abstractmethod
    async def begin(self) -> None:
        """Make what the day needs beside its namespace."""

    @abstractmethod
    async def end(self) -> None:
        """Remove that. Raises LabError if somebody holds it."""

    def jobs(self) -> Iterable[Job]:
        """All jobs that the day may have made."""
        return [self.job]

    async def has_ended(self, state: State) -> str:
        """Return what a job that has ended has and this does not, "" if nothing."""
        return (
            ""
            if "Succeeded" in state.conditions and not state.workers
            else f"{state.conditions} {[*state.workers]}"
        )

    async def ending(self) -> dict[str, object]:
        """Return all that is left of the job, as far as it is the same after each such day."""
        found = {
            name: trait(item) for name, item in (await self.left()).items() if self.counts(name)
        }
        state = await self.job.state()
        result: dict[str, object] = {
            **found,
            "size": state.replicas,
            "conditions": sorted(state.conditions),
        }
        if "Succeeded" in state.conditions:  # what follows stays as it was in that moment
            return result
        files = {"hostfile": state.hostfile, "exec": state.exec_names}
        hosts = [names.pod_of(host.rpartition(":")[0]) for host in state.hosts]
        return {**result, **files, "hosts": hosts, "notices": state.notices}

    def counts(self, _name: str) -> bool:
        """Return whether an object has to be as after other days."""
        return True

    async def left(self) -> dict[str, Object]:
        """Return the objects of the namespace by kind and name."""
        found: dict[str, Object] = {}
        for kind in self.KINDS:
            raw = await self.job.client.get(kind.path(self.job.namespace))
            found |= {
                f"{kind.kind} {item['metadata']['name']}": item
                for item in msgspec.json.decode(raw)["items"]
            }
        return found


def trait(item: Object) -> Object:
    """Return what of an object is the same after each day."""
    metadata: Object = item["metadata"]
    ours = {key for key in metadata.get("annotations", {}) if key.startswith(names.PREFIX)}
    return {
        "ours": sorted(
            ours - {names.STATUS, names.HISTORY}
        ),  # some is seen only while nothing is in trouble
        "finalizers": metadata.get("finalizers", []),
        "going": "deletionTimestamp" in metadata,
        "phase": item.get("status", {}).get("phase"),
        "members": item.get("spec", {}).get("minMember"),
    }


async def play(
    day: Day, steps: Steps, until: Look, *, patience: float, before: Callable[[str], None]
) -> None:
    """Take the steps, one when the job is as it should be after the one before, or after `patience` seconds.

    before: called with the name of each step.
    """
    for name, take in steps.items():
        before(name)
        with contextlib.suppress(
            errors.ApiError, LabError, KeyError
        ):  # what it acts on may not be there
            await take()
        await come_true(day.job, until, day.versions, quiet=0.0, patience=patience)
