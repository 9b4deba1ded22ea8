"""The namespaces that an installation covers: those where our controller has its rights."""

from collections.abc import Collection, Iterable

from mpijob_elastic import names
from mpijob_elastic.install import inventory, removal
from mpijob_elastic.install.inventory import Found
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.phrases import listed

_BINDINGS = ("RoleBinding", "ClusterRoleBinding")


async def check(client: ApiReader, stale: Iterable[Found], kept: Collection[str], *, uncover: bool) -> None:
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
    held = [pod for pod in await removal.held(client) if is_left(pod.namespace)]
    if uncover:
        removal.check_none_waits(held)
        return
    jobs = [job for job in await inventory.metadata(client, MPI_JOBS.path()) if is_left(job.namespace)]
    where = "all other namespaces" if "" in going else f"namespace {listed(sorted(going))}"
    pods = f", and with pods that would wait at a gate of ours for ever: {removal.named(held)}" if held else ""
    raise Refused(
        f"{where} would not be covered any more, with these MPIJobs: {removal.named(jobs) or 'none today'}{pods}. "
        "A cluster has one installation: name each of its namespaces by --jobs-namespace, or none to cover all. "
        "--uncover lets the others go"
    )
