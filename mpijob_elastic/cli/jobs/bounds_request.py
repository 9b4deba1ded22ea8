"""The change that `set bounds` makes: the fewest and the most workers of a job."""

from collections.abc import Mapping, Sequence
from functools import partial

from mpijob_elastic import names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import several, waiting
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.jobs.write_change import (
    Decide,
    JobChange,
    command,
    refuse_uninstalled,
    refuse_unknown,
    refuse_unless_ours,
    write,
)
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import workers
from mpijob_elastic.telemetry.terminal import say

# The fewest and the most workers; 0 for no bound.
Bounds = tuple[int, int]


async def set_bounds(
    where: Where, jobs: Sequence[str], *, least: int | None, most: int | None
) -> Exit:
    """Set the bounds of each job; return the worst exit code.

    least, most: 0 removes a bound, and None leaves it as it is. Raises `errors.KubeError` if there
    is only one job.
    """
    end, decide = Exit.DONE, bounds_change(least=least, most=most)
    async with reached(where) as (client, namespace):
        await refuse_uninstalled(client, namespace, jobs)
        for job in jobs:
            try:
                begun = await write(client, namespace, job, decide)
            except errors.KubeError as error:
                if len(jobs) == 1:
                    raise
                end = max(end, several.say_error(error))
            else:
                say(begun.change.says)
    return end


def bounds_change(*, least: int | None, most: int | None) -> Decide:
    """Return the change to these bounds; see `set_bounds`."""

    async def decide(client: ApiWriter, snapshot: Snapshot) -> JobChange:
        view = snapshot.view
        refuse_unless_ours(snapshot, elastic=view.facts.acts_elastic)
        before = _bounds(view)
        after = _either(least, before[0]), _either(most, before[1])
        _refuse_unfit(view, after)
        patch = _patch(before, after)
        for key in patch:
            await refuse_unknown(client, view, key, then="nobody would keep to that bound")
        says = f"{view.name} may have {in_words(after)}, instead of {in_words(before)}"
        if not patch:
            says = f"{view.name} may have {in_words(after)} already; nothing was changed"
        says += _beyond_max_np(view, after)
        return JobChange(
            patch={"metadata": {"annotations": patch}} if patch else None,
            says=says,
            goal=partial(waiting.trains, size=view.replicas),
            ended=lambda _: says,
        )

    return decide


def _beyond_max_np(view: JobView, bounds: Bounds) -> str:
    """Return that the driver uses fewer workers than the bounds allow, or ""."""
    launch, used = view.facts.launch, view.facts.max_np_workers
    if launch is None or not used or not bounds[1] > used:
        return ""
    return (
        f". But {launch.program}'s --max-np is {launch.max_np}: beyond {workers(used)} no rank "
        "runs, until the job has a new launcher with a larger one"
    )


def in_words(bounds: Bounds) -> str:
    """Return bounds in words."""
    least, most = bounds
    if not most:
        return f"{workers(least)} or more" if least else "any number of workers"
    return f"{least or 1} to {workers(most)}"


def _bounds(view: JobView) -> Bounds:
    policy = view.facts.policy
    return policy.min_replicas or 0, policy.max_replicas or 0


def _either(asked: int | None, before: int) -> int:
    return before if asked is None else asked


def _refuse_unfit(view: JobView, bounds: Bounds) -> None:
    """Raise Refused for bounds that contradict each other, or the size of the job."""
    least, most = bounds
    if most and least > most:
        raise Refused(f"the fewest workers ({least}) would be more than the most ({most})")
    if view.facts.is_at_zero:
        return
    for bound, is_beyond in ((least, view.replicas < least), (most, 0 < most < view.replicas)):
        if is_beyond:
            raise Refused(
                f"{view.name} has {workers(view.replicas)}: "
                f"`{command('scale', view, f'--replicas {bound}')}` comes first"
            )


def _patch(before: Bounds, after: Bounds) -> Mapping[str, object]:
    """Return the annotations that change; None removes one."""
    keys = (names.MIN_REPLICAS, names.MAX_REPLICAS)
    changed = ((key, new) for key, old, new in zip(keys, before, after, strict=True) if old != new)
    return {key: str(new) if new else None for key, new in changed}
