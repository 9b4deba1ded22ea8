"""Goodput: where the GPU-seconds of a job went, by times alone; pure.

Allocated is the time from the node of a worker to its end, for each of its GPUs; waiting for a node
or for quota is not in it. Each second is in exactly one bucket, by this table; the first row that
holds counts:

| from                      | to                            | bucket                          |
|---------------------------|-------------------------------|---------------------------------|
| the pod got its node      | its end, no rank seen by then | useless                         |
| the pod got its node      | it is listed                  | starting                        |
| it is listed              | its first step                | joining                         |
| its first step            | its last step, or it leaves   | kept: steps that count          |
|                           | the list, whichever is later  | repeated: steps that are done   |
|                           |                               | again because they were lost    |
|                           |                               | stalled: the rest               |
| that time                 | its end                       | leaving                         |

A rank that leaves as planned, or whose job ends well, has stepped since its last look and has saved
its steps: nobody can look into its pod any more.

Without the line of progress (model/progress) a rank that runs is all that is known: then joining
ends when a look first sees the rank, and what follows until the worker leaves the list is unknown.

The definitions follow Google's elastic goodput and NVIDIA's GoodputMeasurement, with GPU-seconds in
place of wall-clock time because the size moves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from mpijob_elastic.model.bounds import LATEST, MOST_INT32
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.model.slowness import NOT_COMPARED, Slowness

_Time = Annotated[float, msgspec.Meta(ge=0.0, le=LATEST)]
# GPU-seconds of a thousand years of 10,000 workers with 16 GPUs: more is not ours.
MOST_SECONDS = 1e16
_Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=MOST_SECONDS)]


class Buckets(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """GPU-seconds; a worker without a GPU counts as one."""

    #: The worker got its node, and is not listed yet.
    starting: _Seconds = 0.0
    #: It is listed, and has done no step yet.
    joining: _Seconds = 0.0
    #: It belongs to a ring that does no step: the ring forms, or waits for a lost rank.
    stalled: _Seconds = 0.0
    #: Steps that were lost before they were saved.
    repeated: _Seconds = 0.0
    #: It is off the list, and its pod is not gone.
    leaving: _Seconds = 0.0
    #: It never had a rank.
    useless: _Seconds = 0.0
    #: Steps that count.
    kept: _Seconds = 0.0
    #: A rank ran, and wrote no line of progress.
    unknown: _Seconds = 0.0

    @property
    def allocated(self) -> float:
        """All GPU-seconds."""
        return float(sum(msgspec.structs.astuple(self)))

    def plus(self, other: "Buckets") -> "Buckets":
        """Return the sum."""
        return _sum(self, [other])


NAMES = Buckets.__struct_fields__
# Seconds from the sight of a rank within which it writes its first line, if it writes any.
TELLS_WITHIN = 900.0
# Seconds after its last look in which a rank that leaves in order has trained on. A look that was
# due by then has failed.
TRUSTED_FOR = 45.0
# Seconds by which a line must be of a later step to show that a step was done since the line before
# was read: a rank may keep to itself what it does within a fraction of that (`Progress.PAUSE`).
SURELY_LATER = 1.0
# Earlier rings of which the last line is kept: a loss and the way back may take several.
MOST_RINGS = 4


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the memory has of the pods that had left the list when it was written."""

    #: The GPU-seconds of these pods, until that time.
    buckets: Buckets = msgspec.field(default_factory=Buckets)
    #: When they were counted.
    at: _Time = 0.0
    #: Pods that are listed again, by name, with the time until which they are in the buckets.
    again: Mapping[str, _Time] = msgspec.field(default_factory=dict)
    #: Samples per second at each size so far, by the number of workers.
    rates: Mapping[str, float] = msgspec.field(default_factory=dict)
    #: The job is over: all its pods are in the buckets.
    is_final: bool = False


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The times of one worker pod; seconds since the epoch, None until it comes to that."""

    #: Its GPUs, or 1 without any.
    weight: int
    #: When it got its node.
    bound_at: float
    #: When the list had it first.
    listed_at: float | None = None
    #: When it left the list for good.
    unlisted_at: float | None = None
    #: When a look first saw a rank.
    rank_at: float | None = None
    #: When it ended.
    gone_at: float | None = None
    #: From when its seconds count: the memory has those before. 0 if all count.
    counted_from: float = 0.0
    #: The seconds of its steps that the memory has.
    counted_steps: float = 0.0
    #: The process that follows it has not seen its beginning.
    is_old: bool = False
    #: When a look into it was first answered.
    looked_at: float | None = None
    #: A look has found it without a rank.
    idle_seen: bool = False
    #: Its last line of progress.
    line: ProgressLine | None = None
    #: The last lines of its earlier rings, at most MOST_RINGS, the newest last.
    earlier: tuple[ProgressLine, ...] = ()
    #: It left the list, or its job ended, as planned: its rank trained on until then, and saved its
    #: steps.
    in_order: bool = False
    #: When a look first saw its last step, by our clock; 0 without a line.
    stepped_at: float = 0.0
    #: A time after which its rank has surely done a step, by our clock: a look began then that read
    #: an earlier step, and a later look has read another one. 0 if no two looks show that.
    done_after: float = 0.0
    #: What looks have shown of its rank beside the others, in the ring of its last line.
    slow: Slowness = NOT_COMPARED

    @property
    def first_at(self) -> float | None:
        """When its first step began; without a line, when a rank was seen."""
        return self.line.first if self.line else self.rank_at

    def is_settled(self, *, now: float) -> bool:
        """Tell whether the time until now is in its last bucket.

        Before its first step a pod may prove useless, and a rank may yet tell what it does.
        """
        if self.gone_at is not None or self.line is not None:
            return True
        if self.rank_at is None or self.looked_at is None:
            return False
        return now >= self.looked_at + TELLS_WITHIN

    def line_at(self, at: float) -> ProgressLine | None:
        """Return the last line of the ring that had formed at a time; None if nobody knows it."""
        lines = (*self.earlier, self.line) if self.line else ()
        return next((line for line in reversed(lines) if line.since <= at), None)

    @property
    def listed_line(self) -> ProgressLine | None:
        """Its last line while it is listed; None once it has left or ended."""
        if self.gone_at is not None or self.unlisted_at is not None:
            return None
        return self.line

    def has_stepped(self, *, ranks: int, since: float, skew: float) -> bool:
        """Tell whether its rank has surely done a step since, the last one in a ring of this size.

        skew: seconds by which clocks may differ.
        """
        line = self.listed_line
        if line is None or not line.alive or line.ranks != ranks:
            return False
        return self.done_after >= since and line.at >= since + skew

    def step_seen_at(self, line: ProgressLine) -> float:
        """Return when a look first saw the last step of a line that is read now."""
        if self.line is not None and self.line.at == line.at:
            return self.stepped_at
        return line.asked_at


def buckets(span: Span, *, now: float) -> Buckets:
    """Return where the seconds of a pod went, by the table above."""
    begin, end = max(span.bound_at, span.counted_from), _end(span, now=now)
    if end <= begin:
        return Buckets()
    first = span.first_at
    if first is None:
        return _without_rank(span, begin, end)
    listed = _within(_listed_at(span, first), begin, end)
    first = _within(first, listed, end)
    left = _within(_left_at(span, end), first, end)
    early = {"starting": listed - begin, "joining": first - listed, "leaving": end - left}
    if span.line is None:
        return _weighed(span, **early, unknown=left - first)
    return _weighed(span, **early, **_training(span, span.line, first, left))


def _listed_at(span: Span, first: float) -> float:
    """Return when the list had a pod first; nobody has seen when it had an old one."""
    if span.listed_at is None:
        return first
    return min(span.listed_at, first) if span.is_old else span.listed_at


def _end(span: Span, *, now: float) -> float:
    """Return the time to which a pod is counted: its end, or the last look into it."""
    if span.gone_at is not None:
        return span.gone_at
    if span.line is not None and span.unlisted_at is None:
        return min(now, max(span.line.asked_at, span.line.at))
    return now


def _left_at(span: Span, end: float) -> float:
    """Return the time at which the worker has left the ring; `end` if it has not."""
    if span.unlisted_at is None:
        return end
    if span.line is None:
        return span.unlisted_at
    return max(span.unlisted_at, span.line.at)


def _without_rank(span: Span, begin: float, end: float) -> Buckets:
    is_useless = span.listed_at is None or span.idle_seen
    if span.gone_at is not None and is_useless:
        return _weighed(span, useless=end - begin)
    if span.listed_at is None:
        return _weighed(span, starting=end - begin)
    listed = _within(span.listed_at, begin, end)
    left = _within(_left_at(span, end), listed, end)
    early = {"starting": listed - begin, "leaving": end - left}
    if span.gone_at is not None:  # nobody could look into it
        return _weighed(span, **early, unknown=left - listed)
    return _weighed(span, **early, joining=left - listed)


def _training(span: Span, line: ProgressLine, first: float, left: float) -> dict[str, float]:
    """Return the buckets of the time in a ring; whatever a line says, they add up."""
    seconds, lost = left - first, line.repeated
    if span.gone_at is not None and not _trains_on(span, line):
        lost += line.open
    kept = _within(_saved(span, line, left) - span.counted_steps, 0.0, seconds)
    repeated = min(lost, seconds - kept)
    return {"kept": kept, "repeated": repeated, "stalled": seconds - kept - repeated}


def _saved(span: Span, line: ProgressLine, left_at: float) -> float:
    """Return the seconds of steps that count, of a rank that has left the ring at that time."""
    if _trains_on(span, line):
        return line.done + _since_the_look(line, left_at)
    if span.gone_at is not None:  # nobody will save its last steps
        return line.kept
    return line.done


def _trains_on(span: Span, line: ProgressLine) -> bool:
    """Tell whether a rank leaves in order, so that it has saved what it has done."""
    return span.in_order and line.alive


def _since_the_look(line: ProgressLine, until: float) -> float:
    """Return the seconds from the last look until the rank left, if a look was not due yet."""
    seconds = max(0.0, until - line.at)
    return seconds if seconds <= TRUSTED_FOR else 0.0


def _weighed(span: Span, **seconds: float) -> Buckets:
    return Buckets(**{name: span.weight * one for name, one in seconds.items()})


def _within(at: float, low: float, high: float) -> float:
    return min(max(at, low), high)


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a change cost, from the signal to the first step of all ranks."""

    #: GPU-seconds allocated and not kept.
    seconds: float
    #: Steps that were done again.
    steps: int


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """The times of all worker pods of a job, as far as this process knows them."""

    #: The uid of the MPIJob.
    uid: str
    #: What earlier pods have spent.
    past: Buckets = field(default_factory=Buckets)
    #: The pods, also those that are gone since a short while, by uid.
    spans: Mapping[str, Span] = field(default_factory=dict)
    #: Samples per second at each size, by the number of workers.
    rates: Mapping[int, float] = field(default_factory=dict)
    #: The workers count their GPUs; False if each counts as one because it has none.
    in_gpus: bool = True

    @property
    def has_lines(self) -> bool:
        """True if a pod of the job has written a line of progress."""
        return any(span.line for span in self.spans.values())

    @property
    def is_followed(self) -> bool:
        """True if this process has seen a pod of the job begin, or has looked into one."""
        return any(not span.is_old or span.looked_at for span in self.spans.values())

    def began_before(self, pod: str, at: float) -> bool:
        """Tell whether the last line of a pod (its uid) is of a ring that began before."""
        span = self.spans.get(pod)
        return span is not None and span.line is not None and span.line.since < at

    def total(self, *, now: float) -> Buckets:
        """Return where all GPU-seconds went until now."""
        return _sum(self.past, (buckets(span, now=now) for span in self.spans.values()))

    def settled(self, *, now: float) -> Buckets:
        """Return the same of the pods whose seconds are in their last bucket."""
        spans = (span for span in self.spans.values() if span.is_settled(now=now))
        return _sum(self.past, (buckets(span, now=now) for span in spans))

    def ring_since(self, pods: Iterable[str], *, ranks: int, after: float) -> float | None:
        """Return when the first step of a ring began that has these pods (its uid).

        None unless each of them has told of a ring of so many ranks that formed after that time.
        """
        began = 0.0
        for pod in pods:
            span = self.spans.get(pod)
            line = span.line if span else None
            if line is None or not line.alive:
                return None
            if line.ranks != ranks or line.since <= after:
                return None
            began = max(began, line.since)
        return began or None

    def have_stepped(self, pods: Iterable[str], *, ranks: int, since: float, skew: float) -> bool:
        """Tell the same as `Span.has_stepped` of each of these pods (its uid)."""
        spans = [self.spans.get(pod) for pod in pods]
        return all(
            span is not None and span.has_stepped(ranks=ranks, since=since, skew=skew)
            for span in spans
        )

    def last_told(self, *, ranks: int) -> float | None:
        """Return when a rank last told of an earlier ring of so many ranks or more."""
        found: float | None = None
        for span in self.spans.values():
            for line in span.earlier:
                if line.ranks >= ranks and line.at > (found or 0.0):
                    found = line.at
        return found

    def loss(self, *, since: float, until: float) -> Loss | None:
        """Return what was lost between two times; None if nobody knows.

        since: the signal of a change. until: the first step in which all ranks took part. Between
        the last look before the signal and the signal, training counts as usual, so steps that were
        lost then are in the loss.
        """
        seconds, steps = 0.0, 0
        for span in self.spans.values():
            held = _held_between(span, since, until)
            if not held:
                continue
            done = _done_between(span, since, until)
            if done is None:
                return None
            # Whatever the lines say, no more is lost than was held since the last look before.
            most = _held_between(span, _looked_before(span, since), until)
            seconds += span.weight * _within(held - done, 0.0, most)
            steps = max(steps, _repeated_since(span, since))
        return Loss(seconds=seconds, steps=min(steps, MOST_INT32))


def _sum(first: Buckets, more: Iterable[Buckets]) -> Buckets:
    totals = list(msgspec.structs.astuple(first))
    for one in more:
        for place, seconds in enumerate(msgspec.structs.astuple(one)):
            totals[place] = min(totals[place] + seconds, MOST_SECONDS)
    return Buckets(**dict(zip(NAMES, totals, strict=True)))


def _held_between(span: Span, since: float, until: float) -> float:
    end = until if span.gone_at is None else min(until, span.gone_at)
    return max(0.0, end - max(since, span.bound_at))


def _looked_before(span: Span, since: float) -> float:
    """Return when the last line before a time was written, or that time."""
    line = span.line_at(since)
    return min(since, line.at) if line else since


def _done_between(span: Span, since: float, until: float) -> float | None:
    """Return the seconds of steps that count, between two times; None if nobody knows."""
    if span.line is None:
        trained = span.rank_at is not None and span.rank_at < since
        return None if trained else 0.0
    before = _done_at(span, span.line, since)
    if before is None:
        return None
    return _done_until(span, span.line, until) - before


def _done_at(span: Span, line: ProgressLine, at: float) -> float | None:
    """Return the seconds of steps until a time, as if no step before it were lost.

    None if the ring has formed since, and nobody looked into the ring before.
    """
    if at <= line.first:
        return 0.0
    known = span.line_at(at)
    return max(0.0, known.done + at - known.at) if known else None


def _done_until(span: Span, line: ProgressLine, at: float) -> float:
    """Return the seconds of steps that count until a time in the ring of the last line."""
    left_at = at if span.unlisted_at is None else min(at, span.unlisted_at)
    return _saved(span, line, left_at) - max(0.0, line.at - at)


def _repeated_since(span: Span, at: float) -> int:
    """Return the steps that were done again since a time."""
    known = span.line_at(at)
    return span.line.again - known.again if span.line and known else 0
