"""Remove everything that `install` brought, in an order in which no controller interferes.

- webhook configurations, then controller and webhook; their pods end;
- quota of jobs of which nothing runs;
- on request our traces on jobs, which a controller would write again; the jobs run on meanwhile;
- the definition of MPIJobs loses what we added;
- everything else, with our namespace.

Run an interrupted removal again to finish it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mpijob_elastic.install import Refused, quota, removal
from mpijob_elastic.install.objects import Say
from mpijob_elastic.install.quota import Quota
from mpijob_elastic.install.server import Found, Server
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from upgrade import canary, scale, traces
from upgrade.traces import Traces


@dataclass(frozen=True, kw_only=True)
class Uninstallation:
    """found: our objects. takes_scale: True to take the scale subresource back. traces: None to leave them on jobs.

    quota: of queued jobs.
    """

    client: ApiWriter
    server: Server
    found: list[Found]
    takes_scale: bool
    traces: Traces | None
    quota: Quota

    @classmethod
    async def prepare(cls, client: ApiWriter, *, takes_scale: bool, takes_traces: bool) -> Uninstallation:
        """Find what is there; whatever can fail fails before anything is deleted. Raises as `removal.prepare` does."""
        try:
            return await cls._prepared(client, takes_scale=takes_scale, takes_traces=takes_traces)
        except errors.Forbidden as error:
            why = f"{error.message}; controller, webhook and quota stay as they are"
            raise Refused(f"{why}: ask an administrator of the cluster to run this") from error

    @classmethod
    async def _prepared(cls, client: ApiWriter, *, takes_scale: bool, takes_traces: bool) -> Uninstallation:
        server, found = await removal.prepare(client)
        takes_scale = takes_scale and await _can_take_scale(client)
        held = await quota.look(client)
        await quota.check(client, held)
        return cls(
            client=client,
            server=server,
            found=found,
            takes_scale=takes_scale,
            traces=await _find_traces(client) if takes_traces else None,
            quota=held,
        )

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to remove."""
        return not (self.found or self.takes_scale or self.quota.unused or (self.traces and self.traces.removals))

    def stays(self) -> list[str]:
        """Return what stays and why, for people."""
        jobs = [removal.STAYS] if self.traces is None else self.traces.lines()
        return [*jobs, *self.quota.lines()]

    async def run(self, *, seconds: float, say: Say) -> list[str]:
        """Remove it; wait at most `seconds` for each step. Return what is left to do. Raises as `prepare` does."""
        if self.traces is not None:
            await canary.remove_all(self.client)
        await removal.stop(self.client, self.server, self.found, seconds=seconds, say=say)
        left = [*await removal.left_waiting(self.client), *await quota.give_back(self.client, seconds=seconds, say=say)]
        if self.traces is not None:
            await traces.sweep(self.client, say=say)
        if self.takes_scale:
            await scale.take_back(self.client, dry_run=False, say=say)
        await removal.clear(self.client, self.server, self.found, seconds=seconds, say=say)
        return left


async def _can_take_scale(client: ApiWriter) -> bool:
    try:
        recorded = await scale.is_recorded(client)
        await scale.take_back(client, dry_run=True, say=lambda _: None)
    except Refused as error:
        raise Refused(f"{error}; or leave the definition of MPIJobs as it is: --no-scale") from error
    return recorded


async def _find_traces(client: ApiWriter) -> Traces:
    await traces.check(client)
    return await traces.look(client)
