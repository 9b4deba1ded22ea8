"""The ledger of a job: the times of its worker pods, followed from look to look; pure.

A ledger is kept in the memory of the process that leads. After a restart it begins again with what
the ConfigMap has of the pods that had left the list (model.goodput.Spent), and with the running
sums in the lines of the pods that are still there.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from msgspec.structs import replace

from mpijob_elastic.decide.state import SKEW
from mpijob_elastic.model import slowness
from mpijob_elastic.model.goodput import (
    MOST_RINGS,
    SURELY_LATER,
    Buckets,
    Ledger,
    Span,
    Spent,
    buckets,
)
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from mpijob_elastic.model.progress import ProgressLine

# Seconds for which the ledger keeps a pod that is gone: a change that it was part of may yet have
# to be told.
KEPT_FOR = 900.0
# Seconds of a ring before its samples per second count: the first steps are slow.
STEADY_AFTER = 30.0
# The most sizes whose samples per second are kept.
MOST_RATES = 32


def following(before: Ledger | None, view: JobView, *, now: float) -> Ledger:
    """Return the ledger as the view shows the job; the same object if nothing is new."""
    ledger = _same_job(before, view)
    is_followed = ledger is not None
    if ledger is None:
        ledger = _restored(view)
    spans = dict(ledger.spans)
    there = _see_pods(view, spans, is_followed=is_followed, now=now)
    _end_others(spans, there, gone_at=now)
    _end_all(spans, view.over_at, in_order=view.has_succeeded)
    _compare(view, ledger.spans, spans, now=now)
    past = _settle(spans, there, ledger.past, now=now)
    new = Ledger(
        uid=view.ref.uid,
        past=past,
        spans=spans,
        rates=_rates(view, ledger.rates, spans),
        in_gpus=ledger.in_gpus,
    )
    return ledger if new == ledger else new


def spent(view: JobView, published: Collection[str], *, now: float) -> Spent | None:
    """Return what the memory is to have once these pods are published."""
    ledger = view.ledger
    if ledger is None:
        return view.memory.spent
    past, again = ledger.past, dict[str, float]()
    workers = {worker.ref.uid: worker for worker in view.workers}
    for uid, span in ledger.spans.items():
        worker = workers.get(uid)
        if worker is None or worker.name not in published:
            past = past.plus(_off_the_list(span, worker, now))
        elif span.counted_from > span.bound_at:
            again[worker.name] = span.counted_from
    rates = {str(size): rate for size, rate in ledger.rates.items()}
    return Spent(buckets=past, at=now, again=again, rates=rates)


def final(view: JobView, *, now: float) -> Spent | None:
    """Return what a job that is over has spent; None if the memory has it, or nobody counted."""
    if view.memory.is_final or view.ledger is None:
        return None
    if not view.ledger.is_followed:
        return None
    found = spent(view, (), now=now)
    return replace(found, is_final=True) if found else None


def _off_the_list(span: Span, worker: Worker | None, now: float) -> Buckets:
    """Return what a pod has spent that the list does not have; nothing if it was never listed."""
    if span.listed_at is None and span.gone_at is None:
        return Buckets()
    left = span
    if span.unlisted_at is None and worker is not None:
        left = replace(span, unlisted_at=now, in_order=_leaves_in_order(worker))
    return buckets(left, now=now)


def _same_job(before: Ledger | None, view: JobView) -> Ledger | None:
    if before is None or before.uid != view.ref.uid:
        return None
    return before


def _restored(view: JobView) -> Ledger:
    """Return the ledger of a process that sees the job for the first time."""
    known = view.memory.spent or Spent()
    sizes = [size for size in known.rates if _is_size(size)][-MOST_RATES:]
    rates = {int(size): known.rates[size] for size in sizes}
    in_gpus = bool(view.facts.devices)
    return Ledger(uid=view.ref.uid, past=known.buckets, rates=rates, in_gpus=in_gpus)


_SIZE = re.compile(r"[0-9]{1,5}")


def _is_size(text: str) -> bool:
    return _SIZE.fullmatch(text) is not None


def _see_pods(
    view: JobView, spans: dict[str, Span], *, is_followed: bool, now: float
) -> frozenset[str]:
    """Take in the pods that have a node; return their uids. followed: none was there before."""
    there = {pod.metadata.uid for pod in view.hidden.values()}
    for worker in view.workers:
        uid = worker.ref.uid
        if not worker.facts.node:
            continue
        there.add(uid)
        span = spans.get(uid)
        if span is None:
            span = _first_seen(view, worker, is_followed=is_followed)
        spans[uid] = _followed(view, worker, span, now)
    return frozenset(there)


def _first_seen(view: JobView, worker: Worker, *, is_followed: bool) -> Span:
    """Return the times of a pod that the ledger does not have."""
    config = view.config
    if is_followed or config is None or config.memory is None:
        return _new(view, worker)
    return _old(view, worker)


def _new(view: JobView, worker: Worker) -> Span:
    """Return the times of a pod that has just got its node."""
    return Span(weight=view.facts.devices.weight, bound_at=worker.facts.bound_at)


def _old(view: JobView, worker: Worker) -> Span:
    """Return the times of a pod whose beginning nobody has seen.

    Whatever its rank did before this process looks into it is unknown, unless its line tells.
    """
    span = replace(_new(view, worker), is_old=True)
    known = view.memory.spent or Spent()
    if view.memory.is_final and view.over_at is not None:
        return _ended(span, span.bound_at)  # the memory has all that it spent
    if worker.name in view.host_of:
        listed_at = worker.facts.ready_at or span.bound_at  # or a moment later
        counted_from = known.again.get(worker.name, 0.0)
        return replace(span, listed_at=listed_at, rank_at=listed_at, counted_from=counted_from)
    left_at = _left_at(view, worker)
    if left_at is not None:
        times = {"listed_at": span.bound_at, "rank_at": span.bound_at, "unlisted_at": left_at}
        return replace(span, **times, counted_from=max(left_at, known.at))
    if worker.terminated or worker.facts.deleting:
        return _ended(span, span.bound_at)  # as above, or nobody can tell
    return span


def _followed(view: JobView, worker: Worker, span: Span, now: float) -> Span:
    """Return the times of a pod as the view shows it."""
    if worker.terminated:
        return _ended(span, _end_of(view, worker, span, now))
    if span.gone_at is not None and _may_return(view, worker):
        span = replace(span, gone_at=None)  # nobody saw it for a moment
    if view.config is not None:
        span = _listed(view, worker, span, now)
    span = _looked_into(worker, span)
    line = worker.probe.progress
    if line is not None and line.may_be_of(span.bound_at, skew=SKEW):
        span = _with_line(span, line)
    return span


def _end_of(view: JobView, worker: Worker, span: Span, now: float) -> float:
    """Return when a pod has ended of which nothing runs any more."""
    times = [now]
    if view.over_at is not None:
        times.append(view.over_at)
    if span.is_old and worker.facts.unready_at:
        times.append(worker.facts.unready_at)
    return max(min(times), span.bound_at)


def _may_return(view: JobView, worker: Worker) -> bool:
    return view.over_at is None and not worker.facts.deleting


def _looked_into(worker: Worker, span: Span) -> Span:
    """Return the times of a pod with what looks have shown of its rank."""
    probe = worker.probe
    if span.looked_at is None and probe.was_answered:
        span = replace(span, looked_at=max(probe.asked_at, span.bound_at))
    if not span.idle_seen and probe.idle_at is not None:
        span = replace(span, idle_seen=True)
    if span.rank_at is not None or span.listed_at is None:
        return span
    if probe.busy_seen:
        return replace(span, rank_at=max(probe.busy_at, span.listed_at))
    if worker.opaque:
        return replace(span, rank_at=span.listed_at)
    return span


def _leaves_in_order(worker: Worker) -> bool:
    """Tell whether a worker that leaves the list trains until then, and saves its steps."""
    if not worker.ready or worker.facts.node_gone_at:
        return False
    return worker.probe.idle_at is None


def _listed(view: JobView, worker: Worker, span: Span, now: float) -> Span:
    """Return the times of a pod as the list shows it."""
    if worker.name not in view.host_of:
        return _unlisted(view, worker, span, now)
    if span.listed_at is None:
        return replace(span, listed_at=max(view.memory.added_at, span.bound_at))
    if span.unlisted_at is not None:
        return replace(span, unlisted_at=None, in_order=False)
    return span


def _unlisted(view: JobView, worker: Worker, span: Span, now: float) -> Span:
    if span.listed_at is None or span.unlisted_at is not None:
        return span
    left_at = _left_at(view, worker)
    if left_at is None:
        left_at = now
    return replace(span, unlisted_at=left_at, in_order=_leaves_in_order(worker))


def _left_at(view: JobView, worker: Worker) -> float | None:
    """Return when this very pod left the list; None if the memory does not say."""
    left = view.memory.left.get(worker.name)
    if left is None or left.pod != worker.fingerprint:
        return None
    return left.at


def _with_line(span: Span, line: ProgressLine) -> Span:
    last, stepped_at = span.line, span.step_seen_at(line)
    if last is not None and line.at >= last.at + SURELY_LATER:
        span = replace(span, done_after=last.asked_at)
    if last is None:
        counted = _counted_steps(span, line)
        return replace(span, line=line, stepped_at=stepped_at, counted_steps=counted)
    if last.since == line.since:
        return replace(span, line=line, stepped_at=stepped_at)
    earlier = (*span.earlier, last)[-MOST_RINGS:]
    new = {"line": line, "earlier": earlier, "stepped_at": stepped_at}
    return replace(span, **new, slow=slowness.NOT_COMPARED)


def _counted_steps(span: Span, line: ProgressLine) -> float:
    """Return the seconds of steps that the memory has, as if the rank had trained on since."""
    if span.counted_from <= span.bound_at:
        return 0.0
    return max(0.0, line.done - (line.at - max(line.since, span.counted_from)))


def _compare(
    view: JobView, before: Mapping[str, Span], spans: dict[str, Span], *, now: float
) -> None:
    """Count the looks by what the ranks that have done a step say of their own times."""
    if now < max(view.memory.added_at, view.memory.removed_at) + slowness.SETTLED:
        return
    fresh = [key for key, span in spans.items() if _has_stepped(before.get(key), span)]
    if not fresh:
        return
    factors = slowness.factors(dict(_listed_lines(spans)), now=now)
    for key in fresh:
        slow = slowness.after(spans[key].slow, factors.get(key), among=len(factors))
        spans[key] = replace(spans[key], slow=slow)


def _has_stepped(before: Span | None, span: Span) -> bool:
    if before is None:
        return span.stepped_at > 0.0
    return span.stepped_at != before.stepped_at


def _listed_lines(spans: Mapping[str, Span]) -> Iterator[tuple[str, ProgressLine]]:
    for key, span in spans.items():
        line = span.listed_line
        if line is not None:
            yield key, line


def _end_others(spans: dict[str, Span], there: Collection[str], *, gone_at: float) -> None:
    """Note that the pods that are not there are gone."""
    for key, span in spans.items():
        if key not in there:
            spans[key] = _ended(span, gone_at)


def _ended(span: Span, gone_at: float) -> Span:
    """Return the times of a pod that is gone at that time, if not before."""
    if span.gone_at is not None:
        return span
    return replace(span, gone_at=gone_at)


def _end_all(spans: dict[str, Span], over_at: float | None, *, in_order: bool) -> None:
    """Note that the job has ended: pods that stay count no more."""
    if over_at is None:
        return
    for key, span in spans.items():
        if span.gone_at is None:
            gone_at = max(over_at, span.bound_at)
            spans[key] = replace(span, gone_at=gone_at, in_order=span.in_order or in_order)


def _settle(
    spans: dict[str, Span], there: Collection[str], past: Buckets, *, now: float
) -> Buckets:
    """Take out the pods that are long gone; return what all such pods have spent."""
    for key, span in list(spans.items()):
        if key in there or span.gone_at is None:
            continue
        if span.gone_at < now - KEPT_FOR:
            past = past.plus(buckets(span, now=now))
            del spans[key]
    return past


def _rates(
    view: JobView, before: Mapping[int, float], spans: Mapping[str, Span]
) -> Mapping[int, float]:
    """Return the samples per second at each size, with those of the present ring."""
    size = len(view.host_of)
    rate = _rate(spans, ranks=size * view.facts.slots)
    if not rate or before.get(size) == rate:
        return before
    rest = [(one, known) for one, known in before.items() if one != size]
    return {**dict(rest[1 - MOST_RATES :]), size: rate}


def _rate(spans: Mapping[str, Span], *, ranks: int) -> float:
    """Return the samples per second of a ring of so many ranks, once it is steady; else 0."""
    last: ProgressLine | None = None
    for span in spans.values():
        line = span.line
        if line is None or not _is_steady(span, line, ranks=ranks):
            continue
        if last is None or line.at > last.at:
            last = line
    if last is None:
        return 0.0
    return round(last.samples_per_second, 1)


def _is_steady(span: Span, line: ProgressLine, *, ranks: int) -> bool:
    if span.gone_at is not None or not line.alive:
        return False
    return line.ranks == ranks and line.at - line.since >= STEADY_AFTER
