"""What a command waits for: how far a job is on the way there, in stages; pure.

The steps between are those of `explain`: a worker is there once `explain` finds nothing that it waits for. Where nobody
can look into pods, that is when the launcher knows it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain

from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.explain.findings import Explanation, Finding, Level, WorkerFinding
from mpijob_elastic.model.phrases import workers

THERE = frozenset({Level.FINE, Level.UNKNOWN})


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A job at one moment, and what explains it."""

    snapshot: Snapshot
    state: JobState
    found: Explanation

    @property
    def wanted(self) -> list[WorkerFinding]:
        """The workers that the size asks for."""
        return [worker for worker in self.found.workers if worker.wanted]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far it is.

    stages: how many are done of how many, None where nobody knows. now: what it waits for, in words, and `step`, which
    stays the same while those only count. otherwise: why it does not get there.
    """

    stages: Mapping[str, tuple[int | None, int]]
    done: bool
    now: str = ""
    step: str = ""
    otherwise: str = ""

    def __str__(self) -> str:
        counts = ", ".join(
            f"{name} {'?' if done is None else done} of {of}" for name, (done, of) in self.stages.items()
        )
        return f"{counts}; {self.now}" if self.now else counts


Goal = Callable[[Seen], Progress]


def trains(seen: Seen, *, size: int) -> Progress:
    """Return how far a job is that is to train on so many workers."""
    view, wanted = seen.snapshot.view, seen.wanted
    pods = [pod for name in view.wanted_names if (pod := view.worker(name))]
    stages: dict[str, tuple[int | None, int]] = {"pods": (sum(pod.ready for pod in pods), size)}
    if view.facts.queued:
        stages["quota"] = (sum(not pod.facts.gates for pod in pods), size)
    stages["host list"] = (sum(bool(worker.host) for worker in wanted), size)
    stages["ranks"] = (seen.found.training, size)
    waits = next((worker for worker in wanted if worker.cause.level not in THERE), None)
    held = seen.state.wishes.held.get(waits.name) if waits else None
    now = f"{waits.name} does not start: {held}" if waits and held else _alone(waits.cause) if waits else ""
    stop = seen.state.wishes.stop
    return Progress(
        stages=stages,
        done=len(wanted) == size and not waits,
        now=now,
        step=f"{waits.name} {waits.cause.cause} {held}" if waits else "",
        otherwise=_otherwise(seen, size) or (f"{view.name} is suspended by {stop}" if stop else ""),
    )


def shrinks(seen: Seen, *, size: int, leaving: int) -> Progress:
    """Return how far a job is that is to have so many workers, and `leaving` fewer than before."""
    rest = [worker for worker in seen.found.workers if not worker.wanted]
    listed = sum(bool(worker.host) for worker in rest)
    stages = {"off the host list": (leaving - listed, leaving), "gone": (leaving - len(rest), leaving)}
    first = rest[-1].cause if rest else None
    return Progress(
        stages=stages,
        done=not rest,
        now=_alone(first) if first else "",
        step=f"{first.cause} {rest[-1].name}" if first else "",
        otherwise=_otherwise(seen, size),
    )


def stops(seen: Seen) -> Progress:
    """Return how far a job is of which nothing is to run."""
    view, stop = seen.snapshot.view, seen.state.wishes.stop
    runs = [pod.ref.name for pod in view.pods if not pod.facts.held_back]
    of = max(len(view.pods), view.replicas + 1)
    going = (worker.cause for worker in seen.found.workers if worker.name in runs and not worker.wanted)
    waits = next(chain(going, seen.found.job), None) if runs else None
    return Progress(
        stages={"stopped": (of - len(runs), of)},
        done=not runs and bool(stop),
        now=_alone(waits) if waits else "",
        step=f"{waits.cause} {' '.join(runs)}" if waits else "",
        otherwise=_otherwise(seen, view.replicas) or ("" if stop else f"{view.name} is not suspended any more"),
    )


def _alone(finding: Finding) -> str:
    """Return what it says where nothing stands above it."""
    return finding.says.replace(" (see above)", "")


def _otherwise(seen: Seen, size: int) -> str:
    view, facts = seen.snapshot.view, seen.snapshot.view.facts
    reasons = {
        f"{view.name} is being deleted": facts.deleting,
        f"{view.name} has ended: {seen.snapshot.job.state}": facts.finished,
        f"another operator manages {view.name} now: {seen.state.foreign}": bool(seen.state.foreign),
        f"{view.name} is to have {workers(view.replicas)} now, not {size}": view.replicas != size,
    }
    return next((why for why, holds in reasons.items() if holds), "")
