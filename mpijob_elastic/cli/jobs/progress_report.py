"""Report how far a job is, and where its GPU-seconds went, from the lines that looks have read.

What no line and no memory says is None, never a guess.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from mpijob_elastic.decide.ledger import following
from mpijob_elastic.model.goodput import NAMES, Ledger
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Probe, Worker
from mpijob_elastic.model.progress import ProgressLine


class ProgressReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far a job is, as the rank that wrote last has it."""

    #: The number of the last step.
    step: int
    #: Steps of the whole training, None where the job does not say.
    total: int | None
    #: The steps done, in whole percent of `total`; None where the job does not say.
    percent: int | None
    #: None where the job does not say.
    steps_per_second: float | None
    #: Samples per second of all ranks, None where the job does not say.
    samples_per_second: float | None
    #: Seconds to the last step at this pace, None where the job does not say.
    seconds_left: float | None
    #: When the last step ended, by the clock of its node.
    at: datetime
    #: Ranks of the ring.
    ranks: int


class GoodputReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where the GPU-seconds of a job went (model/goodput); the buckets add up to `allocated`."""

    #: `GPU-seconds`, or `worker-seconds` if the workers ask for no GPU: then each counts as one.
    unit: str
    #: Seconds from the node of each worker to its end, for each of its GPUs.
    allocated: float
    #: Before the worker was listed.
    starting: float
    #: From the list to its first step.
    joining: float
    #: Without a step.
    stalled: float
    #: Steps that were lost before they were saved.
    repeated: float
    #: Off the list.
    leaving: float
    #: Of pods that never had a rank.
    useless: float
    #: Steps that count.
    kept: float
    #: On the list, without a line of progress: they may be any of `joining`, `stalled`, `repeated`
    #: and `kept`.
    unknown: float
    #: Samples per second at each size so far, by the number of workers.
    rates: dict[str, float]


def of(
    view: JobView, lines: Mapping[str, ProgressLine], *, now: float
) -> tuple[ProgressReport | None, GoodputReport | None]:
    """Return how far an elastic job is, and where its GPU-seconds went; None where nobody knows.

    lines: by the uid of the pod.
    """
    if not is_ours(view):
        return None, None
    ledger = followed(None, view, lines, now=now)
    return progress(ledger), goodput(ledger, now=now) if is_counted(view) else None


def followed(
    before: Ledger | None, view: JobView, lines: Mapping[str, ProgressLine], *, now: float
) -> Ledger:
    """Return the ledger as the view and the lines show the job; before: of the last look."""
    workers = tuple(_with_line(view, worker, lines) for worker in view.workers)
    return following(before, replace(view, workers=workers), now=now)


def is_ours(view: JobView) -> bool:
    """Tell whether a job is elastic and ours."""
    return view.elastic and not view.foreign and not view.handed_over


def _with_line(view: JobView, worker: Worker, lines: Mapping[str, ProgressLine]) -> Worker:
    """Return the worker with its line.

    A rank may have run in each published worker from the first second: then the seconds without a
    line are unknown, instead of counting as lost.
    """
    if worker.name not in view.host_of:
        return worker
    return replace(worker, probe=Probe(busy_seen=True, progress=lines.get(worker.ref.uid)))


def progress(ledger: Ledger) -> ProgressReport | None:
    """Return how far a job is, by the last line of a rank that still runs."""
    lines = (span.line for span in ledger.spans.values())
    alive = [line for line in lines if line is not None and line.alive]
    if not alive:
        return None
    line = max(alive, key=lambda line: line.at)
    percent = min(100, 100 * line.step // line.total) if line.total else None
    return ProgressReport(
        step=line.step,
        total=line.total or None,
        percent=percent,
        steps_per_second=line.steps_per_second or None,
        samples_per_second=line.samples_per_second or None,
        seconds_left=line.seconds_left,
        at=datetime.fromtimestamp(line.at, UTC),
        ranks=line.ranks,
    )


def goodput(ledger: Ledger, *, now: float) -> GoodputReport:
    """Return where the GPU-seconds of a job went until now."""
    total = ledger.total(now=now)
    seconds = {name: round(getattr(total, name), 1) for name in NAMES}
    return GoodputReport(
        unit="GPU-seconds" if ledger.in_gpus else "worker-seconds",
        allocated=round(sum(seconds.values()), 1),
        rates={str(size): rate for size, rate in sorted(ledger.rates.items())},
        **seconds,
    )


def is_counted(view: JobView) -> bool:
    """Tell whether the memory and the pods account for all seconds of the job.

    The seconds of a published pod that is gone get into the memory with the next list.
    """
    memory = view.memory
    if memory.is_final and view.over_at is not None:
        return True
    if memory.spent is None and (view.host_of or memory.added_at):
        return False  # written by a version that did not count
    there = {worker.name: worker.fingerprint for worker in view.workers if worker.facts.node}
    for name in view.host_of:
        host = memory.hosts.get(name)
        if name not in there:
            return False
        if host and host.pod and host.pod != there[name]:
            return False
    return True
