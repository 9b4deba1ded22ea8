"""Park a worker or have it back: change the list of the annotation, and wait until it is gone, or trains."""

from functools import partial

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.jobs import goals
from mpijob_elastic.cli.jobs.change import (
    Change,
    Decide,
    annotated,
    refuse_unknown,
    refuse_unless_ours,
    size_owner,
)
from mpijob_elastic.cli.jobs.scale import trains
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.phrases import workers


def parks(index: int, *, away: bool) -> Decide:
    """Return what parks the worker with this number, or has it back."""

    async def decide(client: ApiWriter, snapshot: Snapshot) -> Change:
        view, key = snapshot.view, capabilities.PARKED
        refuse_unless_ours(snapshot, elastic=view.elastic)
        parked, pod = frozenset(view.facts.skips), names.worker(view.name, index)
        if index >= view.facts.replicas:
            raise Refused(f"{view.name} has no worker {index}; its workers are 0 to {view.facts.replicas - 1}")
        if owner := await size_owner(client, snapshot):
            raise Refused(owner)
        is_so = (index in parked) == away
        if away and not is_so:
            await refuse_unknown(client, view, key, then=f"{pod} would come back at once")
        after = parked | {index} if away else parked - {index}
        size = view.replicas if is_so else view.replicas + (-1 if away else 1)
        becomes = f"{pod} is being parked" if away else f"{pod} is to come back"
        already = f"{pod} is parked already" if away else f"{pod} is not parked"
        leaving = int(away and view.worker(pod) is not None)
        return Change(
            patch=None if is_so else annotated(key, ",".join(map(str, sorted(after))) or None),
            says=already if is_so else f"{becomes}; {view.name}: {view.replicas} → {workers(size)}",
            goal=partial(goals.shrinks, size=size, leaving=leaving) if away else partial(goals.trains, size=size),
            ended=(lambda _: f"{pod} is parked, and {view.name} has {workers(size)}.") if away else trains,
        )

    return decide
