"""`scaleout` and `scalein`: change the number of workers, and wait until the job has it."""

from functools import partial
from itertools import count as counting

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import goals
from mpijob_elastic.cli.jobs.change import Change, Patience, change, command, refuse_unless_ours, size_owner
from mpijob_elastic.cli.jobs.goals import Seen
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import workers


async def scale(where: Where, job: str, *, grows: bool, count: int, to: int | None, patience: Patience) -> Exit:
    """Set the size `to`, or `count` workers more or fewer than were read. Raises `errors.KubeError`."""

    async def decide(client: ApiWriter, snapshot: Snapshot) -> Change:
        view = snapshot.view
        state = refuse_unless_ours(snapshot, elastic=view.elastic)
        if view.blind:
            raise Refused(
                f"the launcher of {view.name} cannot see the host list: `{names.adopt(view.name, view.namespace)}`"
            )
        size = to if to is not None else view.replicas + (count if grows else -count)
        _refuse_direction(view, size, grows=grows)
        waits = state.wishes.stop or state.wishes.held.get(names.launcher(view.name))
        if waits and patience.wait:
            how = f"is suspended by {waits}" if state.wishes.stop else f"does not run yet, because {waits}"
            raise Refused(f"{view.name} {how}; with --no-wait the size is set for its start")
        if owner := await size_owner(client, snapshot):
            raise Refused(owner)
        return _change(view, size, grows=grows)

    return await change(where, job, decide, patience)


def trains(seen: Seen) -> str:
    """Say that all workers train, as far as that is known."""
    view, found = seen.snapshot.view, seen.found
    if found.training is None:
        return (
            f"{view.name} has {workers(view.replicas)}, all listed. Whether they train is not known: {found.not_known}."
        )
    return f"{view.name} has {workers(view.replicas)}, and a rank runs in each."


def _refuse_direction(view: JobView, size: int, *, grows: bool) -> None:
    other = "scalein" if grows else "scaleout"
    if size < 1:
        instead = f"`{command('suspend', view)}` stops the job, and `{command('delete', view)}` ends it"
        raise Refused(f"{view.name} has {workers(view.replicas)}, and one has to stay: {instead}")
    if (size < view.replicas) if grows else (size > view.replicas):
        raise Refused(f"{view.name} has {workers(view.replicas)}: `{command(other, view, f'--to {size}')}` does that")


def _change(view: JobView, size: int, *, grows: bool) -> Change:
    # The operator's number counts workers that the job does without, too.
    replicas = next(number for number in counting(size) if view.facts.workers_of(number) == size)
    is_so = size == view.replicas
    surplus = sum(worker.index >= replicas for worker in view.workers)
    grown = f"{view.name}: {view.replicas} → {workers(size)}"
    return Change(
        patch=None if is_so else {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}},
        says=f"{view.name} is to have {workers(size)} already" if is_so else grown,
        goal=partial(goals.trains, size=size) if grows else partial(goals.shrinks, size=size, leaving=surplus),
        ended=trains if grows else lambda _: f"{view.name} has {workers(size)}; {surplus} left.",
    )
