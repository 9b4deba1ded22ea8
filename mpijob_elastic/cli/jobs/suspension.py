"""`suspend` and `resume`: set or remove the annotation, and wait until nothing of the job runs, or all of it."""

from functools import partial

from mpijob_elastic import capabilities
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import goals
from mpijob_elastic.cli.jobs.change import MANAGER, Change, Patience, change, command, refuse_unless_ours
from mpijob_elastic.cli.jobs.goals import Seen
from mpijob_elastic.cli.jobs.scale import trains
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from mpijob_elastic.model.job import JobView


async def suspend(where: Where, job: str, patience: Patience) -> Exit:
    """Suspend a job. Raises `errors.KubeError`."""

    async def decide(client: ApiWriter, snapshot: Snapshot) -> Change:
        view = snapshot.view
        refuse_unless_ours(snapshot, elastic=view.facts.elastic)
        await _refuse_unknown(client, view)
        return Change(
            patch=_annotated("true"), says=f"{view.name} is being suspended", goal=goals.stops, ended=_suspended
        )

    return await change(where, job, decide, patience)


async def resume(where: Where, job: str, patience: Patience) -> Exit:
    """Resume a suspended job. Raises `errors.KubeError`."""

    async def decide(_: ApiWriter, snapshot: Snapshot) -> Change:
        view = snapshot.view
        state = refuse_unless_ours(snapshot, elastic=view.facts.elastic)
        return Change(
            patch=_annotated(None) if state.wishes.stop else None,
            says=f"{view.name} is being resumed" if state.wishes.stop else f"{view.name} is not suspended",
            goal=partial(goals.trains, size=view.replicas),
            ended=trains,
        )

    return await change(where, job, decide, patience)


def _annotated(value: str | None) -> dict[str, dict[str, object]]:
    return {"metadata": {"annotations": {capabilities.SUSPEND: value}}}


def _suspended(seen: Seen) -> str:
    view = seen.snapshot.view
    return f"{view.name} is suspended, and nothing of it runs. `{command('resume', view)}` starts it again."


async def _refuse_unknown(client: ApiWriter, view: JobView) -> None:
    """Raise Refused where no webhook holds new pods back: it knows the annotation if it refuses a bad value of it."""
    path, query = MPI_JOBS.path(view.namespace, view.name), {**MANAGER, "dryRun": "All"}
    try:
        await client.patch_object(path, body=_annotated("?"), content_type=MERGE_PATCH, query=query)
    except errors.ApiError as error:
        if "admission webhook" not in error.message:
            raise
        return
    raise Refused(
        f"no webhook in namespace {view.namespace} knows {capabilities.SUSPEND}, so {view.name} would start again at "
        "once; an administrator runs `mpijob-elastic upgrade preflight`"
    )
