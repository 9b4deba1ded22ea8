"""Quota of queued jobs when our controller goes: given back where nothing of a job runs, and named where its pods run.

The objects that hold it belong to the job and to pods, so quota of a running job is free when the job is deleted and
its pods are gone. Where a job ends and stays, nobody else gives it back.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from mpijob_elastic import capabilities, names
from mpijob_elastic.decide.wishes import Holding
from mpijob_elastic.install import server
from mpijob_elastic.install.objects import Change, Identity, Outcome, Say
from mpijob_elastic.install.preflight import check_rights
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader, list_objects
from mpijob_elastic.kube.resources import PODS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.phrases import listed
from mpijob_elastic.model.wire import Owned, owned
from mpijob_elastic.observe import facts_pod as pod

# What gives back the quota of jobs that have ended since.
AGAIN = "`mpijob-elastic uninstall`"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class Held:
    """An object that holds quota of a job, or asks for it."""

    resource: Resource
    ref: Owned

    @property
    def job(self) -> str:
        """The job, as `team-a/train`."""
        return f"{self.ref.namespace}/{self.ref.job}"

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.ref.namespace}/{self.ref.name}"


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Quota of jobs: `unused` where nothing of the job runs, `used` where pods of it do."""

    unused: tuple[Held, ...] = ()
    used: tuple[Held, ...] = ()

    def lines(self) -> list[str]:
        """Return what happens to it, for people."""
        lines = []
        if self.unused:
            lines.append(f"Quota of these jobs is given back, because nothing of them runs: {_jobs(self.unused)}.")
        if self.used:
            lines.append(
                f"Quota stays with these jobs, because their pods run: {_jobs(self.used)}. It is free when the job is "
                f"deleted and its pods are gone. If a job ends and is not deleted, run {AGAIN} again."
            )
        return lines


async def look(client: ApiReader) -> Quota:
    """Return the quota of all jobs. Raises `errors.KubeError`; a queue that is not installed holds none."""
    kinds = [each.holding for each in capabilities.ALL if each.holding]
    held = [one for kind in kinds for one in await _held(client, kind)]
    using = await _running(client) if held else set()
    return Quota(
        unused=tuple(one for one in held if one.ref.job_uid not in using),
        used=tuple(one for one in held if one.ref.job_uid in using),
    )


async def check(client: ApiReader, quota: Quota) -> None:
    """Raise `Refused` if this account may not give unused quota back."""
    await check_rights(client, [(one.resource, one.ref.namespace, "delete") for one in quota.unused])


async def give_back(client: ApiWriter, *, seconds: float, say: Say) -> list[str]:
    """Give quota back where nothing of the job runs, as it is now, for at most `seconds`; return what failed, in words.

    A refusal holds up no other. Raises `errors.Unreachable`.
    """
    refused: dict[str, str] = {}
    left: list[Held] = []
    try:
        async with asyncio.timeout(seconds):
            left += (await look(client)).unused
            while left:
                try:
                    await _delete(client, left[-1], say=say)
                except errors.ApiError as error:
                    refused.setdefault(str(error), str(left[-1]))
                left.pop()
    except errors.ApiError as error:
        return [f"Quota was not given back: {error}. Run {AGAIN} again."]
    except TimeoutError:
        return [f"Quota was not given back within {seconds:.0f} s: {_jobs(left) or 'of any job'}. Run {AGAIN} again."]
    whose = [f"{held} ({why})" for why, held in refused.items()]
    return [f"Quota was not given back: {listed(whose)}. Delete what is named, or run {AGAIN} again."] if whose else []


async def _delete(client: ApiWriter, one: Held, *, say: Say) -> None:
    path = one.resource.path(one.ref.namespace, one.ref.name)
    try:
        await client.delete_object(path, uid=one.ref.uid)
    except (errors.NotFound, errors.Conflict):
        return  # somebody deleted it, and may have created another object of that name
    identity = Identity(
        api_version=one.resource.api_version,
        kind=one.resource.kind,
        namespace=one.ref.namespace,
        name=one.ref.name,
    )
    say(Change(identity=identity, outcome=Outcome.DELETED))


async def _held(client: ApiReader, kind: Holding) -> list[Held]:
    try:
        found = await list_objects(client, kind.resource.path(), kind.read, selector=kind.selector)
    except errors.NotFound:
        return []
    except errors.Forbidden:  # so is a kind that is not served, where nobody gave the right
        if await server.resources(client, kind.resource.api_version):
            raise
        return []
    return [Held(resource=kind.resource, ref=ref) for ref in found if ref and ref.job_uid]


async def _running(client: ApiReader) -> set[str]:
    """Return the uids of the jobs of which pods run, or may do so without another word of ours."""
    pods = await list_objects(client, PODS.path(), pod.decode, selector=names.POD_SELECTOR)
    return {owned(one.metadata).job_uid for one in pods if not (_has_ended(one) or _waits(one))}


def _has_ended(one: pod.Pod) -> bool:
    return one.status is not None and one.status.phase in _ENDED


def _waits(one: pod.Pod) -> bool:
    return bool(one.spec and one.spec.scheduling_gates)


def _jobs(held: Iterable[Held]) -> str:
    return listed(sorted({one.job for one in held}))
