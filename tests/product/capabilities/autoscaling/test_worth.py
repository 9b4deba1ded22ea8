"""A job that fills idle nodes stops where another worker does not pay, and does not waver."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import capabilities
from mpijob_elastic.capabilities.autoscaling import size, worth
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, Autoscale, Scaling, parse
from mpijob_elastic.capabilities.autoscaling.growth import Ceiling, Growth, remembered
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE
from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import TellUser, WriteConfig
from mpijob_elastic.decide.ledger import following
from mpijob_elastic.model.goodput import Ledger, Span
from mpijob_elastic.model.memory import Memory, pod_fingerprint
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.names import MAX_REPLICAS, MIN_REPLICAS
from tests.builders import LONG_AGO, NOW, Story, config, job, pods, role, worker
from tests.product.decide.plans import does, notes
from tests.rooms.autoscaling import grown

HOUR = 3600.0
MOST = 12
LAUNCHER = pod_fingerprint("uid-of-j-launcher")
BESIDE = "say wake publish hostfile touch delete ask start make"


def fills(asked: float = 0.5, *, ours: bool = True) -> Scaling:
    return Scaling(autoscale=Autoscale(fill=True, worth=asked), sized_by_us=ours)


def line(ranks: int, *, since: float, at: float, rate: float = 100.0) -> ProgressLine:
    """A line of a ring that does so many samples per second."""
    return ProgressLine(
        asked_at=at,
        alive=True,
        process=1,
        step=1,
        samples=1000,
        ranks=ranks,
        at=at,
        step_ms=1e6 / rate,
        own_ms=0.0,
        first=min(LONG_AGO, since),
        since=since,
        kept=0.0,
        repeated=0.0,
        again=0,
        open=0.0,
        total=0,
    )


def ledger(rates: Mapping[int, float], ranks: int, *, trained: float) -> Ledger:
    """The ledger of a job whose ring has trained for so many seconds."""
    last = line(ranks, since=NOW - trained, at=NOW)
    span = Span(weight=1, bound_at=LONG_AGO, listed_at=LONG_AGO, line=last)
    return Ledger(uid="uid-of-j", spans={"a": span}, rates=rates)


def filling(
    workers: int, known: Ledger | None, scaling: Scaling | None = None, **more: Any
) -> Story:
    """A job that `fill` has made so large five minutes ago."""
    remembers = {"at": NOW - 300, **more}
    at = remembers.pop("at")
    memory = Memory(own=grown(workers, asked=workers, at=at, **remembers), added_at=NOW - 290)
    return job(
        workers,
        ledger=known,
        config=config(pods(*range(workers)), memory=memory),
        scaling=scaling or fills(),
        policy=Policy(min_replicas=2, max_replicas=MOST),
        queue=NO_QUEUE,
        others_wait=(),
        role=role(*range(MOST)),
    )


def grew(before: float, after: float, *, trained: float = 200.0) -> Ledger:
    return ledger({6: before, 7: after}, 7, trained=trained)


def found(gain: float, **facts: Any) -> Ceiling:
    known = {"size": 6, "tried": 7, "at": NOW - 60, "most": MOST, "launcher": LAUNCHER}
    return Ceiling(gain=gain, **{**known, **facts})


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        pytest.param(filling(7, None, grown_from=6, typed=2), "fill 7 to 8", id="no ledger"),
        pytest.param(
            filling(7, Ledger(uid="uid-of-j"), grown_from=6, typed=2), "fill 7 to 8", id="no lines"
        ),
        pytest.param(
            filling(7, grew(600, 700, trained=100), grown_from=6, typed=2),
            "nothing",
            id="not measured yet",
        ),
        pytest.param(
            filling(
                7, grew(600, 700, trained=100), grown_from=6, typed=2, at=NOW - 700
            ).remembering(added_at=NOW - 600),
            "fill 7 to 8",
            id="not measured in ten minutes",
        ),
        pytest.param(
            filling(7, grew(600, 700, trained=400), grown_from=6, typed=2),
            "nothing",
            id="the ring is older than the growth",
        ),
        pytest.param(
            filling(7, ledger({6: 600, 7: 700}, 6, trained=200), grown_from=6, typed=2),
            "nothing",
            id="the ring has its old size",
        ),
        pytest.param(
            filling(7, grew(600, 700), grown_from=6, typed=2), "remember own", id="worth it"
        ),
        pytest.param(filling(7, grew(600, 700), typed=2), "fill 7 to 8", id="known to be worth it"),
        pytest.param(
            filling(7, grew(600, 620), grown_from=6, typed=2), "remember own", id="not worth it"
        ),
        pytest.param(
            filling(7, grew(600, 620), ceiling=found(0.03), typed=2), "fill 7 to 6", id="given back"
        ),
        pytest.param(
            filling(7, None, ceiling=found(0.03), typed=2), "fill 7 to 6", id="after a restart"
        ),
        pytest.param(
            filling(7, grew(600, 620), fills(ours=False), ceiling=found(0.03), typed=2),
            "nothing",
            id="somebody else set the size",
        ),
        pytest.param(
            filling(7, grew(600, 620), fills(0.1), ceiling=found(0.03), typed=2),
            "fill 7 to 8",
            id="now less is asked for",
        ),
        pytest.param(
            filling(7, grew(600, 620), ceiling=found(0.03), typed=7), "fill 7 to 8", id="typed"
        ),
        pytest.param(filling(6, None, ceiling=found(0.03), typed=2), "nothing", id="it stays"),
        pytest.param(
            filling(6, None, ceiling=found(0.03, at=NOW - 6 * HOUR), typed=2),
            "fill 6 to 7",
            id="six hours later",
        ),
        pytest.param(
            filling(6, None, ceiling=found(0.03, at=NOW + HOUR), typed=2),
            "fill 6 to 7",
            id="a time of another clock",
        ),
        pytest.param(
            filling(6, None, ceiling=found(0.03, most=8), typed=2),
            "fill 6 to 7",
            id="more are allowed now",
        ),
        pytest.param(
            filling(6, None, ceiling=found(0.03, launcher="12345678"), typed=2),
            "fill 6 to 7",
            id="another launcher",
        ),
        pytest.param(
            filling(6, None, ceiling=found(0.03, size=1, tried=6), typed=2),
            "fill 6 to 7",
            id="below its least size",
        ),
        pytest.param(
            filling(5, None, ceiling=found(0.03), typed=2), "fill 5 to 6", id="below the ceiling"
        ),
        pytest.param(
            filling(7, grew(600, 620), ceiling=found(0.03), typed=2).but(
                others_wait=(NOW - 30, NOW - 30, NOW - 30)
            ),
            "fill 7 to 4",
            id="others wait",
        ),
    ],
)
def test_what_is_done(view: Story, plan: str) -> None:
    assert does(view, but=BESIDE) == plan


def kept(view: Story) -> Growth:
    """What the memory says after a decision."""
    raw = size.entry(derive(view, now=NOW), frozenset(view.host_of))
    after = remembered(view.remembering(own={"growth": raw}))
    assert after is not None
    return after


def resized(to: int, *, ours: bool, **before: Any) -> Growth:
    """What is remembered once somebody has set another size."""
    view = filling(before.pop("asked", 6), None, fills(ours=ours), **before)
    return kept(view.but(replicas=to))


@pytest.mark.parametrize(
    ("after", "grown_from", "typed", "is_stopped"),
    [
        pytest.param(resized(7, ours=True), 6, 6, False, id="the first growth"),
        pytest.param(resized(7, ours=True, typed=4), 6, 4, False, id="a later growth"),
        pytest.param(resized(7, ours=True, typed=8), 0, 8, False, id="below the user's size"),
        pytest.param(resized(7, ours=False, typed=4), 0, 0, False, id="the user's size"),
        pytest.param(resized(5, ours=True, typed=4), 0, 4, False, id="given back"),
        pytest.param(
            resized(5, ours=True, typed=4, ceiling=found(0.0)), 0, 4, True, id="below the ceiling"
        ),
        pytest.param(
            resized(7, ours=True, typed=4, ceiling=found(0.0)), 6, 4, False, id="tried again"
        ),
        pytest.param(
            resized(7, ours=False, typed=4, ceiling=found(0.0)), 0, 0, False, id="the user wants it"
        ),
    ],
)
def test_what_is_remembered(after: Growth, grown_from: int, typed: int, is_stopped: bool) -> None:
    assert (after.grown_from, after.typed) == (grown_from, typed)
    assert (after.ceiling is not None) is is_stopped


@pytest.mark.parametrize(
    ("rates", "gain"),
    [
        ({6: 600.0, 7: 624.0}, 0.04),
        ({6: 600.0, 7: 300.0}, -0.5),
        ({6: 600.0, 7: 660.0}, None),
        ({6: 600.0, 7: 1e9}, None),
        ({7: 700.0}, None),
        ({6: 0.0, 7: 700.0}, None),
    ],
)
def test_a_growth_is_measured_once(rates: Mapping[int, float], gain: float | None) -> None:
    after = kept(filling(7, ledger(rates, 7, trained=200), grown_from=6, typed=2))
    assert after.grown_from == 0
    assert (after.ceiling.gain if after.ceiling else None) == gain


def test_the_user_reads_why() -> None:
    [note] = notes(filling(6, None, ceiling=found(0.04), typed=2))
    assert note.line == (
        "NotWorthIt: 6 → 7 workers gave 4 % more samples/s (a worth of 0.24; 0.5 is asked for); "
        "the job keeps 6 and tries again at 1970-01-12T19:45:40Z. mpijob-elastic/autoscale: "
        "fill,worth=0 lets it grow anyway"
    )
    [back] = notes(filling(7, None, ceiling=found(-0.04), typed=2))
    assert back.message == (
        "Worker.replicas 7 → 6: 6 → 7 workers gave 4 % less samples/s (a worth of -0.24; 0.5 is "
        "asked for)"
    )


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("fill", 0.5),
        ("fill,worth=0.3", 0.3),
        ("fill,worth=0", 0.0),
        ("fill,worth=1", 1.0),
        ("fill,worth=1.5", None),
        ("fill,worth=-1", None),
        ("fill,worth=", None),
        ("fill,worth=half", None),
        ("fill,", None),
        ("fill, worth=0.3", None),
        ("fill,worth=\u0661", None),
    ],
)
def test_the_annotation(text: str, asked: float | None) -> None:
    found = parse(text)
    assert (found.worth if found else None) == asked
    assert found is None or found.fill


@pytest.mark.parametrize(
    "text",
    [
        b'{"worked":6,"asked":6,"at":1,"ceiling":7}',
        b'{"worked":6,"asked":6,"at":1,"ceiling":{"size":6}}',
        b'{"worked":6,"asked":6,"at":1,"grown_from":-1}',
        b'{"worked":6,"asked":6,"at":1,"ceiling":{"size":6,"tried":7,"gain":1e99,"at":1,"most":9,"launcher":""}}',
    ],
)
def test_a_record_that_cannot_be_read_is_none(text: bytes) -> None:
    assert remembered(filling(6, None).remembering(own={"growth": text})) is None


def sized(manager: str) -> bytes:
    """An MPIJob that fills, whose size that manager has set last."""
    path: dict[str, Any] = {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {"f:replicas": {}}}}}
    entries = [
        {"manager": who, "time": f"2026-01-01T00:00:0{index}Z", "fieldsV1": path}
        for index, who in enumerate(("kubectl-scale", manager))
    ]
    annotations = {AUTOSCALE: "fill", MIN_REPLICAS: "2", MAX_REPLICAS: "8"}
    metadata = {"annotations": annotations, "managedFields": entries}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "MPIJob", "metadata": metadata}
    return msgspec.json.encode(job)


@pytest.mark.parametrize(
    ("manager", "ours"),
    [("mpijob-elastic", True), ("kubectl-edit", False), ("mpijob-elastic-cli", False)],
)
def test_who_has_set_the_size(manager: str, ours: bool) -> None:
    asked = capabilities.read(sized(manager)).of(Scaling)
    assert asked is not None
    assert asked.sized_by_us is ours


Speed = Callable[[int], float]


def amdahl(serial: float) -> Speed:
    """Samples per second of so many workers, if that part of the work does not spread."""
    return lambda workers: 100.0 / (serial + (1 - serial) / workers)


@dataclass(eq=False)
class Filled:
    """A job that fills, over hours; each change of its size forms a ring 20 s later."""

    speed: Speed
    size: int = 2
    own: Mapping[str, bytes] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)
    writes: int = 0
    notices: str = ""
    _now: float = NOW
    _at: float = LONG_AGO
    _ledger: Ledger | None = None
    _is_ours: bool = False

    def runs(self, hours: float) -> None:
        end = self._now + hours * HOUR
        while self._now < end:
            self._look(self._now)
            self._now += 15.0

    def _look(self, now: float) -> None:
        view = self._view(now)
        self._ledger = following(self._ledger, view, now=now)
        for action in decide(view.but(ledger=self._ledger), now=now).actions:
            if isinstance(action, size.Fill):
                self.size, self._at, self._is_ours = action.after, now, True
                self.sizes.append(action.after)
            if isinstance(action, WriteConfig):
                self.own, self.writes = action.memory.own, self.writes + 1
            if isinstance(action, TellUser):
                self.notices, self.writes = action.text, self.writes + 1

    def _view(self, now: float) -> Story:
        since = self._at + 20
        probe = Probe(busy_seen=True, busy_at=now, asked_at=now)
        if since < now:
            told = line(self.size, since=since, at=now, rate=self.speed(self.size))
            probe = Probe(busy_seen=True, busy_at=now, asked_at=now, progress=told)
        workers = tuple(
            worker(index, node="n", bound_at=LONG_AGO, probe=probe) for index in range(self.size)
        )
        memory = Memory(own=self.own, added_at=self._at)
        return job(
            self.size,
            workers=workers,
            config=config(pods(*range(self.size)), memory=memory),
            scaling=fills(ours=self._is_ours),
            policy=Policy(min_replicas=2, max_replicas=MOST),
            queue=NO_QUEUE,
            others_wait=(),
            role=role(*range(MOST)),
            notices=self.notices,
        )


@pytest.mark.parametrize(
    ("serial", "end"), [(0.0, MOST), (0.05, MOST), (0.12, 7), (0.15, 5), (0.5, 2)]
)
def test_it_stops_where_another_worker_does_not_pay(serial: float, end: int) -> None:
    one = Filled(amdahl(serial))
    one.runs(5)
    assert one.size == end
    # Each size once, and one more that is given back.
    tried = [] if end == MOST else [end + 1, end]
    assert one.sizes == [*range(3, end + 1), *tried]


def test_it_tries_again_after_hours_and_does_not_waver() -> None:
    one = Filled(amdahl(0.15))
    one.runs(2)
    sizes, writes = list(one.sizes), one.writes
    assert sizes == [3, 4, 5, 6, 5]
    one.runs(3)
    assert (one.sizes, one.writes) == (sizes, writes), "a job at rest writes nothing"
    assert "NotWorthIt: 5 → 6 workers" in one.notices
    one.runs(7)
    assert one.sizes == [*sizes, 6, 5], "once in six hours"


@given(serial=st.floats(0, 1), start=st.integers(2, MOST))
def test_never_below_what_the_user_typed(serial: float, start: int) -> None:
    one = Filled(amdahl(serial), size=start)
    one.runs(1)
    assert all(size >= start for size in one.sizes)


def test_the_least_time_of_a_ring_is_longer_than_its_first_steps() -> None:
    assert worth.MEASURED_AFTER < worth.AWAITED_FOR < worth.AGAIN_AFTER
