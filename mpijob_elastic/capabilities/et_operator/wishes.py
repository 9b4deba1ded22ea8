"""The ScaleIns and ScaleOuts of a job, carried out one after the other, the oldest first; pure.

Each takes three writes, so that a crash between any two is made good: the status names the pods,
the MPIJob gets its new size with a mark that this request set it, and the status says how the
request ended. Because of the mark a request sets the size once, whatever a user makes of the size
later.
"""

from collections.abc import Collection, Iterator, Sequence

from mpijob_elastic import names
from mpijob_elastic.capabilities.et_operator.actions import OwnRequest, SayPhase, SetWorkers
from mpijob_elastic.capabilities.et_operator.facts import (
    FAILED,
    PENDING,
    SCALING,
    SUCCEEDED,
    UNDONE,
    Scaled,
    ScaleRequest,
)
from mpijob_elastic.decide import capability
from mpijob_elastic.decide.actions import Action, normal
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.phrases import listed, workers

# The most workers of one request, whose names are in its status, and the most requests of one job
# that are looked at.
MOST_AT_ONCE, MOST_REQUESTS = 500, 50


def due(state: JobState, requests: Sequence[ScaleRequest]) -> Iterator[Action]:
    """Yield the next write of the oldest request, and the phase Pending for the others.

    A request is carried out once its MPIJob owns it, and without the owner if that is refused.
    """
    for request in requests[:MOST_REQUESTS]:
        is_owned = bool(request.metadata.job_uid)
        if not is_owned:
            yield OwnRequest(
                resource=request.resource, ref=request.metadata, request=request, job=state.view.ref
            )
        if not is_owned and OwnRequest not in state.view.refused:
            continue
        if request is requests[0]:
            yield from filter(None, [_next(state, request)])
        elif not request.phase:
            yield say(request, PENDING, f"{requests[0].full_name} comes first", now=state.now)


def say(
    request: ScaleRequest, phase: str, why: str, *, now: float, pods: Sequence[str] = ()
) -> SayPhase:
    """Return the write of a phase."""
    return SayPhase(
        resource=request.resource,
        ref=request.metadata,
        request=request,
        phase=phase,
        why=why,
        pods=tuple(pods),
        at=now,
    )


def deadline(request: ScaleRequest) -> float | None:
    """Return the time at which a ScaleOut that scales is given up, None for any other request."""
    return (
        request.started_at + request.timeout if request.grows and request.phase == SCALING else None
    )


def _next(state: JobState, request: ScaleRequest) -> Action | None:
    view = state.view
    if request.phase == SCALING:
        return _going_on(state, request)
    why = f"MPIJob {view.namespace}/{view.name} executes {request.full_name}"
    if _is_suspended(state):
        return None if request.phase else _wait(state, request)
    if request.pods and _mark(state) == request.metadata.uid:
        # The job was suspended after this request had set the size: its time begins again.
        return say(request, SCALING, why, now=state.now, pods=request.pods)
    pods: Sequence[str] = ()
    if not (fault := next(_faults(state, request), "")):
        pods = _pods(view, request)
        fault = next(_unfit(state, *_target(view, pods, grows=request.grows)), "")
    if fault:
        return say(request, FAILED, fault, now=state.now)
    return say(request, SCALING, why, now=state.now, pods=pods)


def _is_suspended(state: JobState) -> bool:
    return state.wishes.suspend is not None and not state.view.ended


def _wait(state: JobState, request: ScaleRequest) -> Action:
    return say(
        request, PENDING, f"the job is suspended by {state.wishes.suspended_by}", now=state.now
    )


def _mark(state: JobState) -> str:
    """Return the mark of the request that set the size last."""
    scaled = state.view.facts.of(Scaled)
    return scaled.by if scaled else ""


def _going_on(state: JobState, request: ScaleRequest) -> Action | None:
    mark, uid = _mark(state), request.metadata.uid
    if end := _end(state, request, mark):
        return say(request, *end, now=state.now)
    if request.grows and _is_suspended(state):
        # No worker starts, so its timeout must not run.
        return _wait(state, request)
    if mark != uid:
        return _set(state, request, mark=uid, grows=request.grows)
    late = deadline(request)
    if late is not None and state.now >= late:
        return _set(state, request, mark=uid + UNDONE, grows=False)
    return None


def _end(state: JobState, request: ScaleRequest, mark: str) -> tuple[str, str] | None:
    """Return the phase and the words with which a request has ended; None while it goes on."""
    view, pods, uid = state.view, {*request.pods}, request.metadata.uid
    if mark == uid + UNDONE:
        return (
            FAILED,
            f"{listed(request.pods)} did not all start within "
            f"{request.timeout} s, so all were taken back",
        )
    if why := next(_never(state), ""):
        return FAILED, why
    if mark != uid:
        return None
    if pods.difference(_asked(view)) if request.grows else pods.intersection(_asked(view)):
        return FAILED, f"somebody else has set another size of {view.name} since"
    published = {worker.name for worker in state.workers if worker.published}
    is_done = pods <= published if request.grows else pods.isdisjoint(state.by_name)
    return (SUCCEEDED, f"{request.full_name} has Succeeded") if is_done else None


def _set(state: JobState, request: ScaleRequest, *, mark: str, grows: bool) -> Action:
    facts = state.view.facts
    replicas, skips = _target(state.view, request.pods, grows=grows)
    if why := state.view.refused.get(SetWorkers) or next(_unfit(state, replicas, skips), ""):
        return say(request, FAILED, why, now=state.now)
    size = workers(_size(replicas, skips))
    return SetWorkers(
        ref=state.view.ref,
        before=facts.replicas,
        after=replicas,
        parked=",".join(map(str, sorted(skips))),
        request=request,
        mark=mark,
        note=normal(
            "SizeRequested", f"{request.full_name} sets the size: {facts.workers} → {size}"
        ),
    )


def _target(view: JobView, pods: Sequence[str], *, grows: bool) -> tuple[int, Collection[int]]:
    """Return `Worker.replicas` and the parked workers once these workers come or leave."""
    found = (names.worker_index(pod, job=view.name) for pod in pods)
    indices = [index for index in found if index is not None]
    return view.facts.grown(indices) if grows else view.facts.shrunk(indices)


def _size(replicas: int, skips: Collection[int]) -> int:
    return replicas - sum(index < replicas for index in skips)


def _pods(view: JobView, request: ScaleRequest) -> Sequence[str]:
    """Return the workers that come, or leave."""
    if request.grows:
        return [names.worker(view.name, index) for index in view.facts.next_workers(request.count)]
    return request.names or _asked(view)[-request.count :]


def _asked(view: JobView) -> list[str]:
    """Return the workers that the MPIJob asks for, even if something else keeps them away."""
    indices = range(min(view.facts.replicas, MOST_WORKERS))
    return [names.worker(view.name, index) for index in indices if index not in view.skips]


def _never(state: JobState) -> Iterator[str]:
    """Yield the reasons why the size of a job cannot change."""
    view = state.view
    if state.foreign or view.foreign:
        yield f"another operator manages {view.name}"
    if view.ended:
        yield f"{view.name} has ended"
    if not (view.elastic and view.facts.size_known) or view.blind:
        yield (
            f"{view.name} cannot change its size: `mpijob-elastic explain {view.name} "
            f"-n {view.namespace}` says why"
        )


def _faults(state: JobState, request: ScaleRequest) -> Iterator[str]:
    """Yield the reasons why a request cannot be carried out, before its workers are looked at."""
    view, count, named = state.view, request.count, {*request.names}
    if request.script:
        yield "spec.script is not run: that would need the right to run any command in launchers"
    yield from _never(state)
    if max(count, len(request.names)) > MOST_AT_ONCE:
        yield f"more than {MOST_AT_ONCE} workers at once: ask for them in several steps"
    if request.grows and count < 1:
        yield ".spec.toAdd.count has to be greater than 0"
    if request.grows:
        return
    if not named and count < 1:
        yield ".spec.toDelete.count or .spec.toDelete.podNames has to be set"
    if named and count not in (0, len(named)):
        yield ".spec.toDelete.count and .spec.toDelete.podNames disagree"
    if unknown := named.difference(_asked(view)):
        yield f"{view.name} has no worker {listed(sorted(unknown))}"


def _unfit(state: JobState, replicas: int, skips: Collection[int]) -> Iterator[str]:
    """Yield the reasons why a job must not have this size."""
    view, size, facts = state.view, _size(replicas, skips), state.view.facts
    least, most = view.policy.min_replicas or 1, view.policy.max_replicas or size
    yield from filter(None, (one.size_owner(view) for one in capability.of(view)))
    if not least <= size <= most:
        yield (
            f"{view.name} would have {workers(size)}; its bounds are {least} and "
            f"{view.policy.max_replicas or 'none'}"
        )
    if size != facts.size_at_most(size):
        yield f"{view.name} may have only these sizes: {', '.join(map(str, facts.sizes))}"
    if facts.queued and {*skips}.difference(view.skips):
        yield f"{view.name} is queued, so only its highest workers can leave"
