"""Remove an installation: webhook configurations first, so that no gone webhook is called; workloads; the rest.

Jobs stay, with everything that the controller wrote on their objects. Objects in our namespace go with the namespace.
Where only some objects go, the installation must still cover its namespaces: those where our controller has its rights.
"""

from collections.abc import Collection, Iterable

from mpijob_elastic import names
from mpijob_elastic.install import Refused, preflight, rollout, server, server_side_apply
from mpijob_elastic.install.objects import Change, Identity, Outcome, Say
from mpijob_elastic.install.server import Found, Server
from mpijob_elastic.install.server_side_apply import HOOKS, WORKLOADS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import MPI_JOBS, NAMESPACES, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.observe import facts_pod as pod

STAYS = (
    f"Jobs, their pods and their ConfigMaps stay as they are. The annotations {names.PREFIX}* and the key "
    f"{names.KEY_DISCOVER_HOSTS} on them do no harm. A change of replicas no longer affects a running launcher."
)
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_GATES = names.GATES | {names.GATE_PARKED}
_AGAIN = "`kubectl describe` says why. Run the same command again"


async def prepare(client: ApiWriter) -> tuple[Server, list[Found]]:
    """Return our objects in the order in which they go, after a check that they can. Raises as `stop` does."""
    where, everything = await server.look(client)
    found = sorted((one for one in everything if not goes_with_namespace(one.identity)), key=order)
    await preflight.check_deletions(client, where, found)
    if found:
        check_none_waits(await held(client))
    if _holds_namespace(found):
        await check_no_jobs(client)
    return where, found


async def stop(client: ApiWriter, server: Server, found: Iterable[Found], *, seconds: float, say: Say) -> None:
    """Remove webhook configurations and workloads, and wait at most `seconds` for the pods.

    Looks again if pods wait at a gate: a job may have been suspended since the question was asked. Raises as `prepare`.
    """
    found = list(found)
    if found:
        check_none_waits(await held(client))
    await delete(client, server, [one for one in found if runs(one.identity)], say)
    await wait_for_pods(client, seconds=seconds, say=say)


async def clear(client: ApiWriter, server: Server, found: Iterable[Found], *, seconds: float, say: Say) -> None:
    """Remove the rest of what was found, and wait at most `seconds` for the namespace."""
    found = list(found)
    await delete(client, server, [one for one in found if not runs(one.identity)], say)
    if _holds_namespace(found):
        await wait_for_namespace(client, seconds=seconds, say=say)


async def delete(client: ApiWriter, server: Server, found: Iterable[Found], say: Say, *, dry_run: bool = False) -> None:
    """Delete exactly these objects, or only say so. Raises `errors.KubeError`."""
    for one in found:
        path = server.path(one.identity)
        try:
            if not dry_run:
                await client.delete_object(path, uid=one.uid, options={"propagationPolicy": "Background"})
        except (errors.NotFound, errors.Conflict):
            continue  # somebody deleted it, and may have created another object of that name
        say(Change(identity=one.identity, outcome=Outcome.DELETED))


async def wait_for_pods(client: ApiReader, *, seconds: float, say: Say) -> None:
    """Wait until our pods are gone. Raises `Refused` and `errors.KubeError`."""

    async def ending() -> str:
        count = len(await server.metadata(client, PODS.path(names.NAMESPACE), server.SELECTOR))
        return f"{count} pods in {names.NAMESPACE} are still ending" if count else ""

    await rollout.wait(ending, seconds=seconds, say=say, advice=_AGAIN)


async def wait_for_namespace(client: ApiReader, *, seconds: float, say: Say) -> None:
    """Wait until our namespace is gone. Raises `Refused` and `errors.KubeError`."""

    async def ending() -> str:
        there = await client.find(NAMESPACES.path(name=names.NAMESPACE))
        return f"namespace {names.NAMESPACE} is still ending" if there else ""

    await rollout.wait(ending, seconds=seconds, say=say, advice=_AGAIN)


async def check_no_jobs(client: ApiReader) -> None:
    """Raise `Refused` if our namespace holds MPIJobs, which would go with it."""
    try:
        jobs = await server.metadata(client, MPI_JOBS.path(names.NAMESPACE))
    except errors.NotFound:
        return
    if jobs:
        raise Refused(
            f"namespace {names.NAMESPACE} holds MPIJobs that would go with it: {', '.join(job.name for job in jobs)}. "
            "Delete them, or create them elsewhere, first"
        )


async def held(client: ApiReader) -> list[ObjectMeta]:
    """Return the pods that wait at a scheduling gate of ours."""
    pods = await list_objects(client, PODS.path(), pod.decode, selector=names.POD_SELECTOR)
    gates = ((one.metadata, (one.spec and one.spec.scheduling_gates) or ()) for one in pods)
    return [metadata for metadata, mine in gates if any(gate.name in _GATES for gate in mine)]


def check_none_waits(waiting: Iterable[ObjectMeta]) -> None:
    """Raise `Refused` if there are pods at a scheduling gate, which nobody else would take off."""
    if found := named(waiting):
        raise Refused(
            f"pods wait at a scheduling gate of ours that nobody else takes off: {found}. Resume their jobs, take them "
            "out of their queues, remove the annotation of parked workers, or delete them, first"
        )


async def left_waiting(client: ApiReader) -> list[str]:
    """Return, in words, which pods have come to a gate since `stop` looked; none if none have."""
    found = named(await held(client))
    why = f"pods wait at a scheduling gate of ours that nobody takes off: {found}"
    return [f"While it was removed, {why}. Delete them: mpi-operator makes them again without it."] if found else []


def named(found: Iterable[ObjectMeta]) -> str:
    """Return the names of objects, as `a/train, b/train and 3 more`."""
    return listed(sorted(f"{meta.namespace}/{meta.name}" for meta in found))


def goes_with_namespace(one: Identity) -> bool:
    """Return True for objects that go when our namespace is deleted, and need no deletion of their own."""
    return one.namespace == names.NAMESPACE and one.kind not in WORKLOADS


def runs(one: Identity) -> bool:
    """Return True for objects that go first: webhook configurations and workloads."""
    return one.kind in (*HOOKS, *WORKLOADS)


def order(one: Found) -> tuple[int, Identity]:
    """Return a sort key: the reverse of the order in which objects are applied."""
    return -server_side_apply.order(one.identity.kind), one.identity


def _holds_namespace(found: Iterable[Found]) -> bool:
    return any(one.identity.kind == NAMESPACES.kind for one in found)


async def check_coverage(client: ApiReader, stale: Iterable[Found], kept: Collection[str], *, uncover: bool) -> None:
    """Raise `Refused` if objects that are to go cover more than the namespaces `kept`, unless `uncover` allows that.

    kept: none for all namespaces.
    Nothing allows it while pods wait at a gate there, because they would wait for ever.
    """
    bindings = [one.identity for one in stale if one.identity.kind in _BINDINGS]
    going = {one.namespace for one in bindings if one.name == names.CONTROLLER}

    def is_left(namespace: str) -> bool:
        return namespace not in kept and not going.isdisjoint({namespace, ""})

    if not going or not kept:
        return
    waiting = [pod for pod in await held(client) if is_left(pod.namespace)]
    if uncover:
        check_none_waits(waiting)
        return
    jobs = [job for job in await server.metadata(client, MPI_JOBS.path()) if is_left(job.namespace)]
    where = "all other namespaces" if "" in going else f"namespace {listed(sorted(going))}"
    pods = f", and with pods that would wait at a gate of ours for ever: {named(waiting)}" if waiting else ""
    raise Refused(
        f"{where} would not be covered any more, with these MPIJobs: {named(jobs) or 'none today'}{pods}. "
        "A cluster has one installation: name each of its namespaces by --jobs-namespace, or none to cover all. "
        "--uncover lets the others go"
    )
