"""Remove an installation: webhook configurations first, so that no gone webhook is called; workloads; the rest.

Jobs stay, with everything that the controller wrote on their objects. Objects in our namespace go with the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import names
from mpijob_elastic.install import inventory, preflight, rollout
from mpijob_elastic.install.changes import Change, InstallError, Outcome, Say
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.objects import Identity
from mpijob_elastic.install.server import Server, examine
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import ApiWriter

STAYS = (
    f"Jobs, their pods and their ConfigMaps stay as they are. The annotations {names.PREFIX}* and the key "
    f"{names.KEY_DISCOVER_HOSTS} on them do no harm. A change of replicas no longer affects a running launcher."
)
AGAIN = "`kubectl describe` says why. Run the same command again"


@dataclass(frozen=True, kw_only=True)
class Removal:
    """Removes the objects that it found, in this order."""

    client: ApiWriter
    server: Server
    found: tuple[Found, ...]

    @classmethod
    async def prepare(cls, client: ApiWriter) -> Removal:
        """Find our objects, and check that they can go. Raises `InstallError` and `errors.KubeError`."""
        manifests = inventory.manifests()
        server = await examine(client, manifests)
        everything = await inventory.find(client, server, manifests)
        found = sorted((one for one in everything if not goes_with_namespace(one.identity)), key=_order)
        wanted = preflight.rights(server, [one.identity for one in found], ("delete",))
        await preflight.check_rights(client, wanted)
        if any(one.identity.kind == NAMESPACES.kind for one in found):
            await check_no_jobs(client)
        return cls(client=client, server=server, found=tuple(found))

    async def run(self, *, timeout: float, say: Say) -> None:  # noqa: ASYNC109 - enforced by `rollout.wait`
        """Remove everything, and wait at most `timeout` seconds for the pods and for the namespace each.

        Raises `InstallError` and `errors.KubeError`.
        """
        running = [one for one in self.found if one.identity.kind in (*HOOKS, *WORKLOADS)]
        await delete(self.client, self.server, running, say)
        await rollout.wait(lambda: ending_pods(self.client), seconds=timeout, say=say, advice=AGAIN)
        await delete(self.client, self.server, self.found[len(running) :], say)
        if any(one.identity.kind == NAMESPACES.kind for one in self.found):
            await rollout.wait(lambda: ending_namespace(self.client), seconds=timeout, say=say, advice=AGAIN)


async def delete(client: ApiWriter, server: Server, found: Iterable[Found], say: Say, *, dry_run: bool = False) -> None:
    """Delete exactly these objects, or only say so. Raises `errors.KubeError`."""
    for one in found:
        if dry_run or await _delete(client, server, one):
            say(Change(identity=one.identity, outcome=Outcome.DELETED))


async def ending_pods(client: ApiReader) -> str:
    """Say how many of our pods are still there; "" if none. Raises `errors.KubeError`."""
    count = len(await inventory.metadata(client, PODS.path(names.NAMESPACE), inventory.SELECTOR))
    return f"{count} pods in {names.NAMESPACE} are still ending" if count else ""


async def ending_namespace(client: ApiReader) -> str:
    """Say that our namespace is still there; "" if it is not. Raises `errors.KubeError`."""
    there = await client.find(NAMESPACES.path(name=names.NAMESPACE))
    return f"namespace {names.NAMESPACE} is still ending" if there else ""


async def check_no_jobs(client: ApiReader) -> None:
    """Raise `InstallError` if our namespace holds MPIJobs, which would go with it."""
    try:
        jobs = await inventory.metadata(client, MPI_JOBS.path(names.NAMESPACE))
    except errors.NotFound:
        return
    if jobs:
        raise InstallError(
            f"namespace {names.NAMESPACE} holds MPIJobs that would go with it: {', '.join(job.name for job in jobs)}. "
            "Delete them, or create them elsewhere, first"
        )


def goes_with_namespace(one: Identity) -> bool:
    """Return True for objects that go when our namespace is deleted, and need no deletion of their own."""
    return one.namespace == names.NAMESPACE and one.kind not in WORKLOADS


async def _delete(client: ApiWriter, server: Server, one: Found) -> bool:
    try:
        await client.delete_object(server.path(one.identity), uid=one.uid, options={"propagationPolicy": "Background"})
    except (errors.NotFound, errors.Conflict):
        return False  # somebody deleted it, and may have created another object of that name
    return True


def _order(one: Found) -> tuple[int, Identity]:
    kinds = (*HOOKS, *WORKLOADS, "", NAMESPACES.kind)
    kind = one.identity.kind
    return kinds.index(kind if kind in kinds else ""), one.identity
