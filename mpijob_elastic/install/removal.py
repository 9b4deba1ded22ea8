"""Remove objects of ours so that nobody loses by it.

That concerns pods that wait for us, namespaces that need us, and quota of jobs:
- A pod at a scheduling gate of ours would wait for ever, so such pods are looked for before and
  after.
- If only some objects go, the installation must still cover its namespaces: those where our
  controller has its rights.
- The objects that hold quota belong to the job and to pods, so quota of a running job is free when
  the job is deleted and its pods are gone. If a job ends and stays, nobody else gives its quota
  back.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide.capability import Holding
from mpijob_elastic.install import Refused, gated_pods, server
from mpijob_elastic.install.objects import ObjectChange, Outcome, Say
from mpijob_elastic.install.server import Found
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.json_parts import owned
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.observe import facts_pod as pod

# The command that gives back the quota of jobs that have ended since.
AGAIN = "`mpijob-elastic uninstall`"
_BINDINGS = ("RoleBinding", "ClusterRoleBinding")
_ENDED = ("Succeeded", "Failed")


async def delete(
    client: ApiWriter, found: Iterable[Found], say: Say, *, dry_run: bool = False
) -> None:
    """Delete exactly these objects, or only say so. Raises `errors.KubeError`."""
    for one in found:
        path = one.resource.path(one.namespace, one.name)
        try:
            if not dry_run:
                await client.delete_object(
                    path, uid=one.uid, options={"propagationPolicy": "Background"}
                )
        except (errors.NotFound, errors.Conflict):
            continue  # somebody deleted it, and may have created another object of that name
        say(ObjectChange(identity=one.identity, outcome=Outcome.DELETED))


async def delete_each(client: ApiWriter, found: Iterable[Found], say: Say) -> list[str]:
    """Delete exactly these objects; return a line for each that was refused.

    A refusal holds up no other object. Raises `errors.KubeError` if the API server is away.
    """
    refused = []
    for one in found:
        try:
            await delete(client, [one], say)
        except errors.ApiError as error:
            if errors.is_away(error):
                raise
            refused.append(f"Not deleted: {one.identity}: {error}")
    return refused


def named(found: Iterable[ObjectMeta]) -> str:
    """Return the names of objects, as `a/train, b/train and 3 more`."""
    return listed(sorted(f"{meta.namespace}/{meta.name}" for meta in found))


async def check_coverage(
    client: ApiReader, stale: Iterable[Found], kept: Collection[str], *, uncover: bool
) -> None:
    """Raise `Refused` if objects that are to go cover other namespaces than `kept`.

    kept: none for all namespaces. uncover: allow it. Nothing allows it while pods wait at a gate
    there, because they would wait for ever.
    """
    going = {
        one.namespace
        for one in stale
        if one.resource.kind in _BINDINGS and one.name == names.CONTROLLER
    }

    def is_left(namespace: str) -> bool:
        return namespace not in kept and not going.isdisjoint({namespace, ""})

    if not going or not kept:
        return
    waiting = [pod for pod in await gated_pods.read(client) if is_left(pod.namespace)]
    if uncover:
        gated_pods.check_none(waiting)
        return
    jobs = [job for job in await server.metadata(client, MPI_JOBS.path()) if is_left(job.namespace)]
    where = "all other namespaces" if "" in going else f"namespace {listed(sorted(going))}"
    pods = (
        ", and with pods that would wait at a gate of ours for ever: "
        f"{gated_pods.in_words(waiting)}"
        if waiting
        else ""
    )
    raise Refused(
        f"{where} would not be covered any more, with these MPIJobs: "
        f"{named(jobs) or 'none today'}{pods}. A cluster has one installation: name each of its "
        "namespaces by --jobs-namespace, or none to cover all. --uncover lets the others go"
    )


@dataclass(frozen=True, kw_only=True)
class QuotaHolder(Found):
    """An object that holds quota of a job, or asks for it."""

    #: As `team-a/train`.
    job: str
    job_uid: str


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Quota of jobs."""

    #: Of jobs of which nothing runs.
    unused: tuple[QuotaHolder, ...] = ()
    #: Of jobs whose pods run.
    used: tuple[QuotaHolder, ...] = ()

    def lines(self) -> list[str]:
        """Return lines, for people, on what happens to the quota."""
        lines = []
        if self.unused:
            lines.append(
                "Quota of these jobs is given back, because nothing of "
                f"them runs: {_jobs(self.unused)}."
            )
        if self.used:
            lines.append(
                f"Quota stays with these jobs, because their pods run: {_jobs(self.used)}. It "
                "is free when the job is deleted and its pods are gone. If a job ends and is "
                f"not deleted, run {AGAIN} again."
            )
        return lines


async def quota(client: ApiReader) -> Quota:
    """Return the quota of all jobs.

    Raises `errors.KubeError`; a queue that is not installed holds none.
    """
    found = [one for kind in capabilities.HOLDINGS for one in await _holding(client, kind)]
    using = await _running(client) if found else set()
    return Quota(
        unused=tuple(one for one in found if one.job_uid not in using),
        used=tuple(one for one in found if one.job_uid in using),
    )


async def give_back(client: ApiWriter, *, seconds: float, say: Say) -> list[str]:
    """Give quota back where nothing of the job runs now; return what failed, in words.

    It takes `seconds` at most. A refusal holds up no other object. Raises `errors.Unreachable`.
    """
    refused: dict[str, str] = {}
    left: list[QuotaHolder] = []
    try:
        async with asyncio.timeout(seconds):
            left += (await quota(client)).unused
            while left:
                try:
                    await delete(client, left[-1:], say)
                except errors.ApiError as error:
                    refused.setdefault(str(error), str(left[-1].identity))
                left.pop()
    except errors.ApiError as error:
        return [f"Quota was not given back: {error}. Run {AGAIN} again."]
    except TimeoutError:
        return [
            f"Quota was not given back within {seconds:.0f} s: "
            f"{_jobs(left) or 'of any job'}. Run {AGAIN} again."
        ]
    whose = [f"{one} ({why})" for why, one in refused.items()]
    return (
        [f"Quota was not given back: {listed(whose)}. Delete these objects, or run {AGAIN} again."]
        if whose
        else []
    )


async def _holding(client: ApiReader, kind: Holding) -> list[QuotaHolder]:
    resource = kind.resource
    try:
        found = await list_objects(client, resource.path(), kind.read, selector=kind.selector)
    except errors.NotFound:
        return []
    except errors.Forbidden:  # also for a kind that is not served, if nobody gave the right
        if await server.resources(client, resource.api_version):
            raise
        return []
    return [
        QuotaHolder(
            resource=resource,
            namespace=ref.namespace,
            name=ref.name,
            uid=ref.uid,
            job=f"{ref.namespace}/{ref.job}",
            job_uid=ref.job_uid,
        )
        for ref in found
        if ref and ref.job_uid
    ]


async def _running(client: ApiReader) -> set[str]:
    """Return the uids of the jobs whose pods run, or may run without another write of ours."""
    pods = await list_objects(client, PODS.path(), pod.decode, selector=names.POD_SELECTOR)
    return {owned(one.metadata).job_uid for one in pods if _may_run(one)}


def _may_run(one: pod.ReportedPod) -> bool:
    has_ended = one.status is not None and one.status.phase in _ENDED
    return not (has_ended or (one.spec and one.spec.scheduling_gates))


def _jobs(found: Iterable[QuotaHolder]) -> str:
    return listed(sorted({one.job for one in found}))
