"""A training of many ranks, step by step, and what looks into its workers find.

As the writer does (docs/examples/progress.py), a rank says the median of its last 32 own times.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from random import Random
from statistics import median
from typing import Any

from mpijob_elastic import capabilities
from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Note, TellUser
from mpijob_elastic.decide.ledger import following
from mpijob_elastic.model.goodput import Ledger
from mpijob_elastic.model.memory import Memory
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.progress import ProgressLine
from tests.builders import LONG_AGO, NOW, Story, config, job, pods, role, worker

# Seconds between two looks into a worker, and of the steps of a usual rank.
LOOK, STEP = 30.0, 1.0
USUAL = 32
# Own milliseconds of a rank in a step that begins so many seconds after NOW.
Own = Callable[[int, float], float]


def usual(_rank: int, _at: float) -> float:
    return 1000 * STEP


def times(factor: float, *ranks: int, since: float = 0.0) -> Own:
    """These ranks take so many times as long as the others, from then on."""
    return lambda rank, at: usual(rank, at) * (factor if rank in ranks and at >= since else 1.0)


def noise(part: float, seed: int) -> Own:
    random = Random(seed)
    return lambda rank, at: usual(rank, at) * random.uniform(1 - part, 1 + part)


@dataclass(eq=False)
class Training:
    """A job whose ranks step together; seconds after NOW."""

    own: Own
    size: int = 4
    #: When nobody does a step: an evaluation, a checkpoint, or a rank that is stopped.
    pauses: Collection[tuple[float, float]] = ()
    #: When the ring forms again, after a change of the list.
    changes: Collection[float] = ()
    #: When another process begins to lead.
    restarts: Collection[float] = ()
    #: When looks get no answer.
    deaf: tuple[float, float] = (0.0, 0.0)
    #: The workers write lines.
    tells: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
    #: Writes of the notices.
    writes: int = 0
    notices: str = ""
    _own: list[deque[float]] = field(default_factory=list)
    _since: float = LONG_AGO
    _changed: float = LONG_AGO
    _step: int = 0
    _at: float = -1.0

    def runs(self, seconds: float) -> Iterator[tuple[float, list[Note]]]:
        """Yield the times of looks, each with the notices that hold after the look."""
        self._own = [deque((self.own(rank, -1.0),), USUAL) for rank in range(self.size)]
        ledger: Ledger | None = None
        now, last = 0.0, -LOOK
        probes = [Probe(busy_seen=True, busy_at=LONG_AGO) for _ in range(self.size)]
        while now < seconds:
            self._train(now)
            if any(last < at <= now for at in self.restarts):
                ledger, probes = None, [Probe() for _ in range(self.size)]
            if not self.deaf[0] <= now < self.deaf[1]:
                probes = [self._answer(rank, now) for rank in range(self.size)]
            else:
                probes = [self._silent(probe, now) for probe in probes]
            view = self._view(probes)
            ledger = following(ledger, view, now=NOW + now)
            # Nothing changes without a look.
            assert following(ledger, view, now=NOW + now) is ledger
            view = view.but(ledger=ledger)
            yield now, self._told(view, now)
            last, now = now, now + LOOK

    def _train(self, until: float) -> None:
        """Do steps until then; each takes as long as its slowest rank."""
        while self._at < until:
            if pause := next((end for begin, end in self.pauses if begin <= self._at < end), None):
                self._at = pause
                continue
            for at in self.changes:
                if self._changed < NOW + at <= NOW + self._at:
                    self._changed = NOW + at
                    self._since = NOW + self._at
                    self._own = [deque(maxlen=USUAL) for _ in range(self.size)]
            owns = [self.own(rank, self._at) for rank in range(self.size)]
            for known, one in zip(self._own, owns, strict=True):
                known.append(one)
            self._at += max(*owns, 100.0) / 1000
            self._step += 1

    def _answer(self, rank: int, now: float) -> Probe:
        line = ProgressLine(
            asked_at=NOW + now,
            alive=True,
            process=1,
            step=self._step,
            samples=32,
            ranks=self.size,
            at=NOW + min(self._at, now) if not self._is_paused(now) else NOW + self._paused(now),
            step_ms=1000 * STEP,
            own_ms=median(self._own[rank]) if self._own[rank] else 0.0,
            first=LONG_AGO,
            since=min(self._since, NOW + now),
            kept=0.0,
            repeated=0.0,
            again=0,
            open=0.0,
            total=0,
        )
        told = line if self.tells else None
        return Probe(busy_seen=True, busy_at=NOW + now, asked_at=NOW + now, progress=told)

    def _is_paused(self, now: float) -> bool:
        return any(begin <= now < end for begin, end in self.pauses)

    def _paused(self, now: float) -> float:
        return next(begin for begin, end in self.pauses if begin <= now < end)

    def _silent(self, probe: Probe, now: float) -> Probe:
        return Probe(
            busy_seen=True,
            busy_at=probe.busy_at,
            asked_at=NOW + now,
            failed=probe.failed + 1,
            progress=probe.progress,
        )

    def _view(self, probes: list[Probe]) -> Story:
        workers = tuple(
            worker(rank, node=f"node-{rank}", bound_at=LONG_AGO, probe=probe)
            for rank, probe in enumerate(probes)
        )
        listed = config(pods(*range(self.size)), memory=Memory(added_at=self._changed))
        known: dict[str, Any] = {
            "config": listed,
            "role": role(*range(self.size)),
            "workers": workers,
        }
        view = job(self.size, **known, **self.facts).but(notices=self.notices)
        return view.but(capabilities=capabilities.told(view).capabilities)

    def _told(self, view: Story, now: float) -> list[Note]:
        """Write the notices that are due, and return those that hold."""
        for action in decide(view, now=NOW + now).actions:
            if isinstance(action, TellUser):
                self.writes += 1
                self.notices = action.text
        state = derive(view, now=NOW + now)
        return [one for each in capabilities_of(view) for one in each.notes(state)]


def capabilities_of(view: Story) -> tuple[Any, ...]:
    return tuple(one for one in view.capabilities if getattr(one, "name", "") == "stragglers")


def named(training: Training, seconds: float) -> dict[str, float]:
    """All notices, each with the seconds at which it first held."""
    found: dict[str, float] = {}
    for at, told in training.runs(seconds):
        for note in told:
            found.setdefault(note.line, at)
    return found
