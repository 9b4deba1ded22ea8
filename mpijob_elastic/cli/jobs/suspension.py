"""`suspend` and `resume`: set or remove the annotation, and wait until nothing of the job runs, or all of it."""

from functools import partial

from mpijob_elastic import capabilities
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import goals
from mpijob_elastic.cli.jobs.change import (
    Change,
    Patience,
    annotated,
    change,
    command,
    refuse_unknown,
    refuse_unless_ours,
)
from mpijob_elastic.cli.jobs.goals import Seen
from mpijob_elastic.cli.jobs.scale import trains
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.writer import ApiWriter


async def suspend(where: Where, job: str, patience: Patience) -> Exit:
    """Suspend a job. Raises `errors.KubeError`."""
    return await change(where, job, suspending, patience)


async def resume(where: Where, job: str, patience: Patience) -> Exit:
    """Resume a suspended job. Raises `errors.KubeError`."""
    return await change(where, job, resuming, patience)


async def suspending(client: ApiWriter, snapshot: Snapshot) -> Change:
    """Return the change that suspends a job. Raises Refused with why it cannot be."""
    view, key = snapshot.view, capabilities.SUSPEND
    refuse_unless_ours(snapshot, elastic=view.facts.elastic)
    await refuse_unknown(client, view, key, then=f"{view.name} would start again at once")
    says = f"{view.name} is being suspended: its workers drain, and training ends until it is resumed"
    return Change(patch=annotated(key, "true"), says=says, goal=goals.stops, ended=_suspended)


async def resuming(_: ApiWriter, snapshot: Snapshot) -> Change:
    """Return the change that resumes a job. Raises Refused with why it cannot be."""
    view = snapshot.view
    state = refuse_unless_ours(snapshot, elastic=view.facts.elastic)
    return Change(
        patch=annotated(capabilities.SUSPEND, None) if state.wishes.stop else None,
        says=f"{view.name} is being resumed" if state.wishes.stop else f"{view.name} is not suspended",
        goal=partial(goals.trains, size=view.replicas),
        ended=trains,
    )


def _suspended(seen: Seen) -> str:
    view = seen.snapshot.view
    return f"{view.name} is suspended, and nothing of it runs. `{command('resume', view)}` starts it again."
