"""Remove everything that `install` brought, in an order in which no controller interferes.

- webhook configurations, so that no gone webhook is called, then controller and webhook; their pods
  end;
- quota of jobs of which nothing runs;
- on request our traces on jobs, which a controller would write again; the jobs run on meanwhile;
- the definition of MPIJobs loses what we added;
- everything else. Objects in our namespace go with the namespace.

Jobs stay, with everything else that the controller wrote on their objects. Run an interrupted
removal again to finish it.

A refusal, of a policy for example, ends the removal as long as a webhook configuration, the
controller or the webhook is there. After that it holds up nothing else, and is reported at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import Refused, gated_pods, removal, role_bindings, rollout, server
from mpijob_elastic.install.gated_pods import GatedPod
from mpijob_elastic.install.objects import Say
from mpijob_elastic.install.removal import Quota
from mpijob_elastic.install.role_bindings import LeftBinding
from mpijob_elastic.install.server import HOOKS, WORKLOADS, Found
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import canary, scale, traces
from upgrade.traces import Traces

STAYS = (
    "Jobs, their pods and their ConfigMaps stay as they are. The annotations "
    f"{names.PREFIX}* and the key {names.KEY_DISCOVER_HOSTS} on them do no harm. A change of "
    "replicas no longer affects a running launcher."
)
# With the removal of our traces.
OWN_STAYS = (
    "Jobs and their pods stay as they are. Annotations on MPIJobs that users wrote, or the webhook "
    f"when a job was created, stay and do no harm, such as {names.MIN_REPLICAS} and "
    f"{names.DRAIN_TIMEOUT}."
)
_FIRST = (*HOOKS, *WORKLOADS)
_AGAIN = "`kubectl describe` says why. Run the same command again"


@dataclass(frozen=True, kw_only=True)
class Uninstallation:
    """The removal of an installation."""

    client: ApiWriter
    #: Our objects, in the order in which they go.
    found: list[Found]
    #: Take the scale subresource back.
    takes_scale: bool
    #: None to leave the traces on jobs.
    traces: Traces | None
    #: Quota of queued jobs.
    quota: Quota
    #: Pods that wait at a gate of ours. As long as there are any, nothing is removed.
    waiting: tuple[GatedPod, ...] = ()
    #: Bindings that stay and give nothing.
    bindings: tuple[LeftBinding, ...] = ()

    @classmethod
    async def prepare(
        cls, client: ApiWriter, *, takes_scale: bool, takes_traces: bool
    ) -> Uninstallation:
        """Find what is there; whatever can fail fails before anything is deleted.

        Pods that wait are found, and refused by `check_none_waits`, so that a dry run can list
        everything first. Raises `Refused` and KubeError.
        """
        try:
            _, everything = await server.look(client)
            # What is in our namespace goes with it. The rest goes in the reverse of the order in
            # which it is applied.
            apart = [
                one
                for one in everything
                if one.namespace != names.NAMESPACE or one.resource.kind in WORKLOADS
            ]
            found = sorted(apart, key=lambda one: (-server.order(one.resource.kind), one.identity))
            await server.check_deletions(client, found)
            waiting = await gated_pods.read(client) if found else []
            if _holds_namespace(found):
                await _check_no_jobs(client)
            takes_scale = takes_scale and await _can_take_scale(client)
            bindings = await role_bindings.left(client, everything)
            quota = await removal.quota(client)
            await server.check_deletions(client, quota.unused)
            if takes_traces:
                await traces.check(client)
            left = await traces.look(client) if takes_traces else None
        except errors.Forbidden as error:
            why = f"{error.message}; controller, webhook and quota stay as they are"
            raise Refused(f"{why}: ask an administrator of the cluster to run this") from error
        return cls(
            client=client,
            found=found,
            waiting=tuple(waiting),
            bindings=tuple(bindings),
            takes_scale=takes_scale,
            traces=left,
            quota=quota,
        )

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to remove."""
        return not (
            self.found
            or self.takes_scale
            or self.quota.unused
            or (self.traces and self.traces.removals)
        )

    def stays(self) -> list[str]:
        """Return lines, for people, on what stays and why."""
        jobs = [STAYS] if self.traces is None else [OWN_STAYS, *self.traces.lines()]
        return [*jobs, *role_bindings.lines(self.bindings), *self.quota.lines()]

    def check_none_waits(self) -> None:
        """Raise `Refused` if pods wait at a gate of ours."""
        gated_pods.check_none(self.waiting)

    async def run(self, *, seconds: float, say: Say) -> list[str]:
        """Remove what was found; wait at most `seconds` for each step.

        Returns lines on what is left to do. Raises as `prepare` does.
        """
        client = self.client
        if self.traces is not None:
            await canary.remove_all(client)
        if self.found:  # a job may have been suspended since the question was asked
            gated_pods.check_none(await gated_pods.read(client))
        await removal.delete(
            client, [one for one in self.found if one.resource.kind in _FIRST], say
        )

        async def pods() -> str:
            count = len(await server.metadata(client, PODS.path(names.NAMESPACE), server.SELECTOR))
            return f"{count} pods in {names.NAMESPACE} are still ending" if count else ""

        await rollout.wait(pods, seconds=seconds, say=say, advice=_AGAIN)
        left = await gated_pods.left_waiting(client)
        left += await removal.give_back(client, seconds=seconds, say=say)
        if self.traces is not None:
            left += await traces.sweep(client, say=say, said=self.traces.lines())
        if self.takes_scale:
            left += await _take_scale(client, say=say)
        homes = [one for one in self.found if one.resource.kind == NAMESPACES.kind]
        rest = [one for one in self.found if one.resource.kind not in _FIRST and one not in homes]
        left += await removal.delete_each(client, rest, say)
        kept = await removal.delete_each(client, homes, say)

        async def namespace() -> str:
            there = await client.find(NAMESPACES.path(name=names.NAMESPACE))
            return f"namespace {names.NAMESPACE} is still ending" if there else ""

        if homes and not kept:
            await rollout.wait(namespace, seconds=seconds, say=say, advice=_AGAIN)
        return left + kept


async def _take_scale(client: ApiWriter, *, say: Say) -> list[str]:
    """Take the scale subresource back; return a line if that was refused."""
    try:
        await scale.take_back(client, dry_run=False, say=say)
    except (Refused, errors.ApiError) as error:
        if isinstance(error, errors.ApiError) and errors.is_away(error):
            raise
        return [f"The scale subresource was not taken back: {error}"]
    return []


def _holds_namespace(found: list[Found]) -> bool:
    return any(one.resource.kind == NAMESPACES.kind for one in found)


async def _check_no_jobs(client: ApiReader) -> None:
    """Raise `Refused` if our namespace holds MPIJobs, which would go with it."""
    try:
        jobs = await server.metadata(client, MPI_JOBS.path(names.NAMESPACE))
    except errors.NotFound:
        return
    if jobs:
        raise Refused(
            f"namespace {names.NAMESPACE} holds MPIJobs that would go with it: "
            f"{', '.join(job.name for job in jobs)}. Delete them, or create them in another "
            "namespace, and run this again"
        )


async def _can_take_scale(client: ApiWriter) -> bool:
    try:
        recorded = await scale.is_recorded(client)
        await scale.take_back(client, dry_run=True, say=lambda _: None)
    except Refused as error:
        raise Refused(
            f"{error}; or leave the definition of MPIJobs as it is: --no-scale"
        ) from error
    return recorded
