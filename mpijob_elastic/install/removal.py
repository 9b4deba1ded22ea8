"""The way back: hooks first, so that nothing is asked of a webhook that goes; then the workloads; then all the rest.

Jobs are left alone, and what the controller wrote on their objects with them. What is in our namespace goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import inventory, preflight, rollout
from mpijob_elastic.install.changes import Change, Outcome, Say
from mpijob_elastic.install.failure import InstallError
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import Identity, identity
from mpijob_elastic.install.server import Server, examine
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import ApiWriter

STAYS = (
    f"What stays: jobs, their pods and their ConfigMaps as they are. The annotations {names.PREFIX}* and the key "
    f"{names.KEY_DISCOVER_HOSTS} on them do no harm; a change of replicas has no effect on a running launcher any more."
)


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Removes what it has found, in this order. `timeout` in seconds, for the pods and for the Namespace each."""

    client: ApiWriter
    server: Server
    found: tuple[Found, ...]

    @classmethod
    async def prepare(cls, client: ApiWriter) -> Removal:
        """Find everything of ours, and check that it can go. Raises `InstallError` and `errors.KubeError`."""
        manifests = inventory.manifests()
        server = await examine(client, manifests)
        everything = await inventory.find(client, server, (inventory.key(identity(one)) for one in manifests))
        found = sorted((one for one in everything if not _goes_with_namespace(one.identity)), key=_order)
        await preflight.check_rights(client, server, [one.identity for one in found], verbs=("delete",))
        if any(one.identity.kind == NAMESPACES.kind for one in found):
            await _check_no_jobs(client)
        return cls(client=client, server=server, found=tuple(found))

    async def run(self, *, timeout: float, say: Say) -> None:  # noqa: ASYNC109 - enforced by `waiting`
        """Remove it all and wait until it is gone. Raises `InstallError` and `errors.KubeError`."""
        running = [one for one in self.found if one.identity.kind in (*HOOKS, *WORKLOADS)]
        await delete(self.client, self.server, running, say)
        await self._until(self._pods, seconds=timeout, say=say)
        await delete(self.client, self.server, self.found[len(running) :], say)
        await self._until(self._namespace, seconds=timeout, say=say)

    async def _until(self, missing: rollout.Missing, *, seconds: float, say: Say) -> None:
        if late := await rollout.until(missing, seconds=seconds, say=say):
            raise InstallError(f"after {seconds:.0f} s {late}; `kubectl describe` says why. Run the same command again")

    async def _pods(self) -> str:
        path = PODS.path(names.NAMESPACE)
        count = len(await inventory.metadata(self.client, path, selector=inventory.SELECTOR))
        return f"{count} pods in {names.NAMESPACE} are still ending" if count else ""

    async def _namespace(self) -> str:
        if not any(one.identity.kind == NAMESPACES.kind for one in self.found):
            return ""
        try:
            await self.client.get(NAMESPACES.path(name=names.NAMESPACE))
        except errors.NotFound:
            return ""
        return f"namespace {names.NAMESPACE} is still ending"


async def delete(client: ApiWriter, server: Server, found: Iterable[Found], say: Say, *, dry_run: bool = False) -> None:
    """Delete these very objects, or only say so; what is gone already, or another by now, is fine.

    Raises `errors.KubeError`.
    """
    for one in found:
        if dry_run or await _delete(client, server, one):
            say(Change(identity=one.identity, outcome=Outcome.DELETED))


async def _delete(client: ApiWriter, server: Server, one: Found) -> bool:
    try:
        await client.delete_object(server.path(one.identity), uid=one.uid, options={"propagationPolicy": "Background"})
    except (errors.NotFound, errors.Conflict):
        return False  # somebody deleted it, and may have made another one of that name
    return True


def _goes_with_namespace(one: Identity) -> bool:
    return one.namespace == names.NAMESPACE and one.kind not in WORKLOADS


def _order(one: Found) -> tuple[int, Identity]:
    kinds = (*HOOKS, *WORKLOADS, "", NAMESPACES.kind)
    kind = one.identity.kind
    return kinds.index(kind if kind in kinds else ""), one.identity


async def _check_no_jobs(client: ApiWriter) -> None:
    try:
        jobs = await inventory.metadata(client, MPI_JOBS.path(names.NAMESPACE))
    except errors.NotFound:
        return
    if jobs:
        raise InstallError(
            f"namespace {names.NAMESPACE} holds MPIJobs that would go with it: {', '.join(job.name for job in jobs)}. "
            "Delete them, or create them elsewhere, first"
        )
