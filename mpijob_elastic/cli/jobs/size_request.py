"""The changes of `scale`, `scaleout`, `scalein`, `suspend` and `resume`, and what each waits for.

A scale-in removes named workers by the annotation `parked`, unless they are the last workers: then
a smaller size is enough. A scale-out that names parked workers brings them back. Only a scale-in
accepts a node: a placeholder has no node, and the scheduler chooses the node on which a parked
worker comes back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import waiting
from mpijob_elastic.cli.jobs.pods import worker_pod
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.jobs.waiting import JobMoment
from mpijob_elastic.cli.jobs.write_change import (
    Decide,
    JobChange,
    annotated,
    command,
    refuse_unknown,
    refuse_unless_ours,
    size_owner,
)
from mpijob_elastic.decide import suspend
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.install import Refused
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed, workers


@dataclass(frozen=True, kw_only=True)
class SizeRequest:
    """A requested change: to a size, by a count, or of named workers."""

    #: True to add workers, False to remove workers; None where `to` decides.
    grows: bool | None = None
    #: Workers to add or remove.
    count: int | None = None
    #: The new size.
    to: int | None = None
    #: The size that the job must have now; None for any.
    current: int | None = None
    #: Workers to add or remove, each as its index or the name of its pod.
    pods: Sequence[str] = ()
    #: Nodes whose workers all leave.
    nodes: Sequence[str] = ()

    @property
    def named(self) -> bool:
        """Whether the request names the workers that leave or come back."""
        return bool(self.pods or self.nodes)


def size_decision(asked: SizeRequest, *, waits: bool) -> Decide:
    """Return the change for a request.

    waits: the caller waits for the end, so a job that may not run now is refused.
    """

    async def decide(client: ApiWriter, snapshot: Snapshot) -> JobChange:
        view = snapshot.view
        state = refuse_unless_ours(snapshot, elastic=view.elastic)
        _refuse_other_size(view, asked.current)
        _refuse_blind(view)
        these = _named(snapshot, asked)
        size = _size(view, asked, these)
        grows = size >= view.replicas if asked.grows is None else asked.grows
        _refuse_direction(view, size, grows=grows)
        _refuse_beyond_bounds(view, size)
        if waits:
            _refuse_held(view, state)
        if owner := await size_owner(client, snapshot):
            raise Refused(owner)
        replicas, parked = _stored(view, these, size, grows=grows)
        if parked.difference(view.skips):
            await refuse_unknown(
                client,
                view,
                names.PARKED,
                then="the operator would create these workers again",
            )
        return _change(view, size, replicas, parked, grows=grows)

    return decide


async def suspending(client: ApiWriter, snapshot: Snapshot) -> JobChange:
    """Return the change that suspends a job. Raises Refused with the reason if it is impossible."""
    view, key = snapshot.view, names.SUSPEND
    state = refuse_unless_ours(snapshot, elastic=view.facts.acts_elastic)
    patch = None if view.policy.suspend else annotated(key, "true")
    if patch:
        await refuse_unknown(client, view, key, then=f"{view.name} would start again at once")
    says = _suspension(view, state, is_new=patch is not None)
    return JobChange(patch=patch, says=says, goal=waiting.stops, ended=_suspended)


def _suspension(view: JobView, state: JobState, *, is_new: bool) -> str:
    """Return what a suspension does to a job, in words. is_new: nobody has asked for it before."""
    if not is_new:
        return f"{view.name} is suspended already; nothing was changed"
    if state.wishes.suspended_by and all(pod.facts.held_back for pod in view.pods):
        by = state.wishes.suspended_by
        return f"{view.name} is suspended already by {by}; it now stays so until it is resumed"
    return (
        f"{view.name} is being suspended: its workers drain, and training ends until it is resumed"
    )


async def resuming(_: ApiWriter, snapshot: Snapshot) -> JobChange:
    """Return the change that resumes a job. Raises Refused with the reason if it is impossible."""
    view = snapshot.view
    state = refuse_unless_ours(snapshot, elastic=view.facts.acts_elastic)
    size, patch = view.replicas, dict[str, Mapping[str, object]]()
    says = f"{view.name} is not suspended"
    if state.wishes.suspend:
        patch |= annotated(names.SUSPEND, None)
        says = f"{view.name} is being resumed"
    if view.facts.is_at_zero:
        size = suspend.size_before(view)
        patch |= {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": size}}}}
        says += f" with {workers(size)}"
    return JobChange(
        patch=patch or None,
        says=says,
        goal=partial(waiting.trains, size=size),
        ended=trains_now,
    )


def trains_now(seen: JobMoment) -> str:
    """Return the sentence that all workers train, or that this is unknown."""
    view, found = seen.snapshot.view, seen.found
    if found.training is None:
        return (
            f"{view.name} has {workers(view.replicas)}, all listed. "
            f"Whether they train is not known: {found.not_known}."
        )
    return f"{view.name} has {workers(view.replicas)}, and a rank runs in each."


def _suspended(seen: JobMoment) -> str:
    view = seen.snapshot.view
    return (
        f"{view.name} is suspended, and nothing of it runs. "
        f"`{command('resume', view)}` starts it again."
    )


def _refuse_other_size(view: JobView, current: int | None) -> None:
    """Raise Refused unless the job has the size that it must have now."""
    if current not in {None, view.replicas}:
        raise Refused(f"{view.name} has {workers(view.replicas)} now, not {current}")


def _refuse_blind(view: JobView) -> None:
    if view.blind:
        raise Refused(
            f"the launcher of {view.name} cannot see the host list: "
            f"`{names.adopt(view.name, view.namespace)}`"
        )


def _refuse_held(view: JobView, state: JobState) -> None:
    """Raise Refused if the job may not run now, so that waiting would not end."""
    stop = state.wishes.suspended_by
    # Another size than 0 is what resumes a job at zero.
    if stop == suspend.BY_SIZE:
        stop = ""
    hold = state.wishes.held.get(names.launcher(view.name))
    how = f"does not run yet, because {hold}" if hold else ""
    if stop:
        how = f"is suspended by {stop}"
    if how:
        raise Refused(f"{view.name} {how}; with --no-wait the size is set for its start")


def _size(view: JobView, asked: SizeRequest, these: frozenset[int]) -> int:
    """Return the requested size. these: the indices of the workers that the request names."""
    if asked.to is not None:
        return asked.to
    moving = these.intersection(view.skips) if asked.grows else these.difference(view.skips)
    by = len(moving) if asked.named else asked.count or 1
    return view.replicas + by if asked.grows else view.replicas - by


def _stored(
    view: JobView, these: frozenset[int], size: int, *, grows: bool
) -> tuple[int, frozenset[int]]:
    """Return Worker.replicas and the parked workers of the new size.

    these: the workers that leave or come back; without any, those that a change of size takes.
    """
    if grows:
        return view.facts.grown(these or view.facts.next_workers(size - view.replicas))
    return view.facts.shrunk(these or list(view.wanted)[size:])


def _refuse_direction(view: JobView, size: int, *, grows: bool) -> None:
    other = "scalein" if grows else "scaleout"
    if size < 1:
        instead = (
            f"`{command('suspend', view)}` stops the job, and `{command('delete', view)}` ends it"
        )
        raise Refused(
            f"{view.name} has {workers(view.replicas)}, and at least one must stay: {instead}"
        )
    if (size < view.replicas) if grows else (size > view.replicas):
        raise Refused(
            f"{view.name} has {workers(view.replicas)}: "
            f"`{command(other, view, f'--to {size}')}` does that"
        )


def _refuse_beyond_bounds(view: JobView, size: int) -> None:
    """Raise Refused for a size that the webhook refuses, because its workers are named first."""
    if size > max(MOST_WORKERS, view.replicas):
        raise Refused(
            f"{view.name}: {view.replicas} → {workers(size)}: an elastic job has at most "
            f"{workers(MOST_WORKERS)}"
        )


def _named(snapshot: Snapshot, asked: SizeRequest) -> frozenset[int]:
    """Return the indices of the workers that the request names.

    Raises Refused if a name or node has no worker, or if --count does not match the names.
    """
    view = snapshot.view
    pods = {worker_pod(snapshot.job, pod) for pod in asked.pods}
    for node in asked.nodes:
        there = {pod.name for pod in view.workers if pod.facts.node == node}
        if not there:
            raise Refused(f"no worker of {view.name} is on a node {node}")
        pods |= there.intersection(view.wanted_names)
    indices = {pod: names.worker_index(pod, job=view.name) or 0 for pod in pods}
    there_are = {*view.wanted, *(index for index in view.skips if index < view.facts.replicas)}
    if unknown := sorted(pod for pod, index in indices.items() if index not in there_are):
        raise Refused(f"{view.name} has no {listed(unknown)}: it has {workers(view.replicas)}")
    if asked.named and asked.count not in (None, len(pods)):
        raise Refused(
            f"--count {asked.count} does not match the workers named: {listed(sorted(pods))}"
        )
    return frozenset(indices.values())


def _change(
    view: JobView, size: int, replicas: int, parked: frozenset[int], *, grows: bool
) -> JobChange:
    before, is_so = frozenset(view.skips), size == view.replicas
    patch: dict[str, Mapping[str, object]] = {
        "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}
    }
    if parked != before:
        patch |= annotated(names.PARKED, ",".join(map(str, sorted(parked))) or None)
    surplus = sum(worker.index >= replicas or worker.index in parked for worker in view.workers)
    grown = f"{view.name}: {view.replicas} → {workers(size)}"
    moved = [names.worker(view.name, index) for index in sorted(parked ^ before)]
    what = f"; {'back' if grows else 'parked'}: {listed(moved)}" if moved else ""
    return JobChange(
        patch=None if is_so else patch,
        says=f"{view.name} already has size {size}; nothing was changed"
        if is_so
        else f"{grown}{what}",
        goal=partial(waiting.trains, size=size)
        if grows
        else partial(waiting.shrinks, size=size, leaving=surplus),
        ended=trains_now
        if grows
        else lambda _: f"{view.name} has {workers(size)}; removed: {surplus}.",
    )
