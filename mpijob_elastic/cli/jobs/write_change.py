"""Change a job: try the write as a dry run, write, wait, and say how the change ended.

All commands that change a job use this module.

A write is valid only for the version of the job that was read. If the job has changed since, it is
read again. If the same change is still to be written, because for example only the status has
changed, the write is repeated; otherwise the command is refused.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from mpijob_elastic.capabilities.shown import SIZINGS
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import at_work, dependencies, explain
from mpijob_elastic.cli.jobs.at_work import AtWork, Leader
from mpijob_elastic.cli.jobs.snapshot import Snapshot, fetch_job
from mpijob_elastic.cli.jobs.waiting import THERE, Goal, JobMoment, Progress, Show, wait
from mpijob_elastic.cli.target import Where
from mpijob_elastic.decide import derive
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.diagnosis.facts import Level
from mpijob_elastic.diagnosis.jobs import NO_CONTROLLER
from mpijob_elastic.install import ATTEMPTS, Refused, webhook_call
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import list_objects
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.telemetry.terminal import say

# Distinguishes in managedFields what a user's command wrote from what the controller wrote.
MANAGER = {"fieldManager": "mpijob-elastic-cli"}
# Warnings of the controller that a change ended differently: a rank was cut, a size was set back.
_OTHERWISE = frozenset({"DrainTimeout", "ScaleTimeout"})
# Seconds that an Event may take, because the controller sends Events beside its work.
_EVENT_WITHIN = 1.0


@dataclass(frozen=True, kw_only=True)
class JobChange:
    """A change of a job."""

    #: What to merge into the MPIJob; None if the MPIJob needs no change.
    patch: Mapping[str, Mapping[str, object]] | None
    #: The change in words.
    says: str
    #: What to wait for.
    goal: Goal = field(compare=False)
    #: Says that the goal is reached.
    ended: Callable[[JobMoment], str] = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How to wait for the end of a change."""

    #: Whether to wait at all.
    wait: bool
    #: The longest time to wait.
    seconds: float
    #: Whether to look into pods for ranks.
    look: bool


# Reason and message of the controller's warnings on a job, by the Event's name.
OwnWarnings = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class BegunChange:
    """A change of a job that is written, or that needs no write."""

    #: The job as it was before.
    snapshot: Snapshot
    change: JobChange
    #: The controller's warnings on the job before the write: all others are about this change,
    #: however late it is waited for. None if nobody waits for it, or if Events cannot be read.
    warnings: OwnWarnings | None = None


# Returns the change of the job in a snapshot. Raises Refused with the reason if the change is
# impossible.
Decide = Callable[[ApiWriter, Snapshot], Awaitable[JobChange]]


async def change(
    where: Where, job: str, decide: Decide, patience: Patience, *, creates: bool = False
) -> Exit:
    """Change a job, and wait for the end of the change. Raises `errors.KubeError`.

    creates: the change makes a new launcher.
    """
    async with reached(where) as (client, namespace):
        return await carry_out(client, namespace, job, decide, patience, creates=creates)


async def carry_out(
    client: ApiWriter,
    namespace: str | None,
    job: str,
    decide: Decide,
    patience: Patience,
    *,
    creates: bool = False,
) -> Exit:
    """Do the same as `change`, with a connected client.

    Nothing is written where mpijob-elastic is not installed, and nothing is waited for where no
    controller is at work and none may take over in a moment. Raises `errors.KubeError`.
    """
    working = await refuse_uninstalled(client, namespace, [job], creates=creates)
    begun = await write(client, namespace, job, decide, waits=patience.wait)
    say(begun.change.says)
    warn(working)
    end = end_without_wait(working, patience, begun.snapshot.view)
    if end is not None:
        return end
    return await say_outcome(client, begun, patience, Leader(working))


async def refuse_uninstalled(
    client: ApiWriter, namespace: str | None, jobs: Sequence[str], *, creates: bool = False
) -> AtWork:
    """Return who carries out changes of these jobs of a namespace.

    creates: the changes make new launchers.

    Raises Refused where mpijob-elastic is not installed, does not cover the namespace, or gives no
    sign of life.
    """
    working = await at_work.check_change(client, namespace, jobs, now=time.time(), creates=creates)
    if not working.installed:
        raise Refused(f"{working.trouble}; {working.advice}")
    return working


def warn(working: AtWork) -> None:
    """Say why changes of a command may not be carried out; a command says it once."""
    if working.trouble:
        trouble = working.trouble[:1].upper() + working.trouble[1:]
        say(f"{trouble}; {working.advice}.", err=True)
    if working.doubt:
        say(f"Warning: {working.doubt}; {working.advice}", err=True)


def end_without_wait(working: AtWork, patience: Patience, view: JobView) -> Exit | None:
    """Return how a command ends that does not wait for its change; None if it is to wait."""
    if working.trouble and not (working.may_return and patience.wait):
        return Exit.NOT_KNOWN if patience.wait else Exit.DONE
    if patience.wait:
        return None
    say(f"`{command('watch', view)}` shows what follows.")
    return Exit.DONE


async def say_outcome(
    client: ApiWriter, begun: BegunChange, patience: Patience, leader: Leader
) -> Exit:
    """Wait for the end of a change, and say how it ended. Raises `errors.KubeError`."""
    try:
        end, lines = await outcome(client, begun, patience, leader=leader)
    except asyncio.CancelledError:
        say(
            f"Interrupted. Nothing is undone, {_outlook(is_led=not leader.trouble)}: "
            f"`{command('watch', begun.snapshot.view)}` shows it.",
            err=True,
        )
        raise
    say(*lines, err=end is Exit.NOT_KNOWN)
    return end


async def outcome(
    client: ApiWriter,
    begun: BegunChange,
    patience: Patience,
    show: Show | None = None,
    *,
    leader: Leader,
) -> tuple[Exit, list[str]]:
    """Wait for the end of a change; return its exit code, and its outcome in words.

    show, leader: see `wait`.
    """
    view, asked = begun.snapshot.view, begun.change
    end = await wait(
        client,
        begun.snapshot,
        asked.goal,
        seconds=patience.seconds,
        look=patience.look,
        show=show,
        leader=leader,
    )
    if end is None:
        late, shows = phrases.duration(patience.seconds), f"`{command('watch', view)}` shows it"
        hope = f"{_outlook(is_led=not leader.trouble)}, and {shows}"
        return Exit.NOT_KNOWN, [f"After {late} the API server does not answer: {hope}."]
    progress, seen = end
    await asyncio.sleep(_EVENT_WITHIN)
    after = await _warnings(client, view)
    warnings = _new_warnings(begun.warnings, after)
    if not (progress.done or progress.otherwise):
        return Exit.NOT_KNOWN, await _unfinished(client, progress, seen, patience, leader)
    words = f"{progress.otherwise}." if progress.otherwise else asked.ended(seen)
    return Exit.OTHERWISE if progress.otherwise or warnings else Exit.DONE, [words, *warnings]


def _new_warnings(before: OwnWarnings | None, after: OwnWarnings | None) -> list[str]:
    """Return the warnings that the change ended differently; none where an older one may be one."""
    if before is None or after is None:
        return []
    return [
        message
        for name, (reason, message) in after.items()
        if name not in before and reason in _OTHERWISE
    ]


async def _unfinished(
    client: ApiWriter, progress: Progress, seen: JobMoment, patience: Patience, leader: Leader
) -> list[str]:
    """Return what a change waits for when nobody waits for the change any longer, in words."""
    found = await explain.explained(
        client, seen.snapshot, look=patience.look, controller=leader.silence
    )
    wrong = [worker for worker in found.workers if worker.cause.level not in THERE]
    job = [finding for finding in found.job if finding.level is not Level.FINE]
    causes = explain.text(msgspec.structs.replace(found, job=tuple(job), workers=tuple(wrong)))
    is_led = not leader.trouble and all(one.cause != NO_CONTROLLER for one in found.job)
    goes = "goes on" if is_led else "waits"
    first = f"After {phrases.duration(patience.seconds)} the change still {goes}: {progress}"
    shows = f"`{command('watch', seen.snapshot.view)}` shows it"
    return [first, "", *causes, "", f"Nothing is undone: {_outlook(is_led=is_led)}, and {shows}."]


def _outlook(*, is_led: bool) -> str:
    """Return what becomes of a change that nobody waits for any more.

    is_led: as far as anybody knows, a controller leads.
    """
    return "the change goes on" if is_led else at_work.ONCE


def command(name: str, view: JobView, *more: str) -> str:
    """Return the command line of one of our commands for a job."""
    return " ".join(("mpijob-elastic", name, view.name, "-n", view.namespace, *more))


def refuse_unless_ours(snapshot: Snapshot, *, elastic: bool) -> JobState:
    """Return the state of a job. Raises Refused with the reason if the job cannot be changed."""
    view, state = snapshot.view, derive(snapshot.view, now=time.time())
    explains = f"`{command('explain', view)}` says more"
    reasons = {
        f"another operator manages {view.name}: {state.foreign}": bool(state.foreign),
        f"{view.name} is being deleted": view.facts.deleting,
        (
            f"{view.name} has ended ({snapshot.job.state}); create it again to run it again"
        ): view.facts.finished,
        # With a size alone, the role would have no template, and the operator fails the job.
        f"{view.name} has no role Worker, so it has no size": not snapshot.job.has_workers,
        f"{view.name} does not say its size: Worker.replicas is missing": not view.facts.size_known,
        f"{view.name} is not elastic, so it runs as it is to its end; {explains}": not elastic,
    }
    if why := next((why for why, holds in reasons.items() if holds), ""):
        raise Refused(why)
    return state


def annotated(key: str, value: str | None) -> dict[str, dict[str, object]]:
    """Return the patch that sets an annotation of a job, or removes it if `value` is None."""
    return {"metadata": {"annotations": {key: value}}}


async def refuse_unknown(client: ApiWriter, view: JobView, key: str, *, then: str) -> None:
    """Raise Refused if no webhook knows an annotation.

    A webhook knows the annotation if it refuses a bad value, which is sent as a dry run. then: what
    would happen without a webhook, in words.
    """
    if not await webhook_call.refuses_edit(client, view.namespace, view.name, key):
        raise Refused(
            f"no webhook in namespace {view.namespace} knows {key}, so {then}; an administrator "
            "runs `mpijob-elastic upgrade preflight`"
        )


async def size_owner(client: ApiWriter, snapshot: Snapshot) -> str:
    """Return the owner of a job's size other than the job's user, in words.

    "" if there is no other owner, or if this user may not read the objects that name the owner.
    """
    view = snapshot.view
    for known in SIZINGS:
        found = []
        with suppress(errors.Forbidden, errors.NotFound):
            found = await list_objects(client, known.resource.path(view.namespace), known.read)
        if owner := known.owner(view, [one for one in found if one.metadata.job == view.name]):
            return owner
    return ""


def same_decision(decide: Decide, says: str, *, since: str) -> Decide:
    """Return the same decision, which is refused once its words differ from `says`.

    since: the moment at which the decision had these words.
    """

    async def same(client: ApiWriter, snapshot: Snapshot) -> JobChange:
        found = await decide(client, snapshot)
        if found.says != says:
            raise not_the_same(snapshot.view, found.says, since=since)
        return found

    return same


def not_the_same(view: JobView, says: str, *, since: str) -> Refused:
    """Return the refusal of a change that would be another one now, in these words."""
    return Refused(
        f"{view.name} has changed since {since}, so nothing was written: now it would be: {says}"
    )


async def write(
    client: ApiWriter,
    namespace: str | None,
    job: str,
    decide: Decide,
    *,
    dry_run: bool = False,
    waits: bool = False,
) -> BegunChange:
    """Write the change. Raises Refused if the job changes meanwhile.

    waits: the caller waits for the end of the change.
    """
    asked = None
    for _ in range(ATTEMPTS):
        snapshot = await fetch_job(client, namespace, job)
        before, asked = asked, await decide(client, snapshot)
        if before not in (None, asked):
            break
        with suppress(errors.Conflict):
            warnings = await _warnings(client, snapshot.view) if waits else None
            if asked.patch is not None:
                await _write(client, snapshot.view, asked.patch, dry_run=dry_run)
            return BegunChange(snapshot=snapshot, change=asked, warnings=warnings)
    raise Refused(
        f"{job} was changed by somebody else at the same time. Nothing was written; try again"
    )


async def _warnings(client: ApiWriter, view: JobView) -> OwnWarnings | None:
    """Return the controller's warnings on a job; None if Events cannot be read soon.

    A slow read would hold a write back, or the end of the command.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_EVENT_WITHIN):
            return await dependencies.own_warnings(client, view.namespace, view.ref.uid)
    return None


async def _write(
    client: ApiWriter, view: JobView, patch: Mapping[str, Mapping[str, object]], *, dry_run: bool
) -> None:
    """Try a change as a dry run; then write it, unless `dry_run`."""
    version = {"uid": view.ref.uid, "resourceVersion": view.ref.resource_version}
    body = {**patch, "metadata": {**patch.get("metadata", {}), **version}}
    path = MPI_JOBS.path(view.namespace, view.name)
    await client.patch_object(
        path, body=body, content_type=MERGE_PATCH, query={**MANAGER, "dryRun": "All"}
    )
    if dry_run:
        return
    try:
        await client.patch_object(path, body=body, content_type=MERGE_PATCH, query=MANAGER)
    except errors.KubeError as error:
        if not errors.may_pass(error):
            raise
        shows = f"`{command('get', view)}` shows it"
        raise errors.Unreachable(
            f"{error}; it is unknown whether {view.name} was changed; {shows}"
        ) from error
    except asyncio.CancelledError:
        say(
            f"Interrupted. It is unknown whether {view.name} was changed; "
            f"`{command('get', view)}` shows it.",
            err=True,
        )
        raise
