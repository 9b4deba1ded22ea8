"""Where the seconds of a worker went: the table of model/goodput, and that its buckets add up."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from mpijob_elastic.model.goodput import NAMES, Buckets, Ledger, Loss, Span, Spent, buckets
from mpijob_elastic.model.history import Change, read_change
from mpijob_elastic.model.memory import Memory, parse_memory, render_memory
from mpijob_elastic.model.progress import ProgressLine

NOW = 1000.0


def line(*, at: float, first: float, **facts: Any) -> ProgressLine:
    """A line of a rank that has trained without a break since its first step."""
    known = {"since": first, "kept": at - first, "repeated": 0.0, "again": 0, "open": 0.0}
    usual = {"alive": True, "process": 1, "step": 9, "samples": 8, "ranks": 2, "total": 0}
    times = {"asked_at": at, "step_ms": 500.0, "own_ms": 400.0}
    return ProgressLine(at=at, first=first, **{**usual, **times, **known, **facts})


def span(**facts: Any) -> Span:
    return Span(**{"weight": 1, "bound_at": 100.0, **facts})


def spent(**seconds: float) -> dict[str, float]:
    return {name: seconds.get(name, 0.0) for name in NAMES}


TRAINS = {"listed_at": 110.0, "line": line(at=900.0, first=130.0)}
CASES = {
    "it waits for its list": (span(), spent(starting=900)),
    "it is listed, and its rank imports": (
        span(listed_at=110.0),
        spent(starting=10, joining=890),
    ),
    "it trains": (span(**TRAINS), spent(starting=10, joining=20, kept=770)),
    "the last steps are not saved yet": (
        span(listed_at=110.0, line=line(at=900.0, first=130.0, kept=700.0, open=70.0)),
        spent(starting=10, joining=20, kept=770),
    ),
    "a ring had to form again": (
        span(listed_at=110.0, line=line(at=900.0, first=130.0, kept=700.0, repeated=40.0)),
        spent(starting=10, joining=20, kept=700, repeated=40, stalled=30),
    ),
    "it leaves, and trains until its last commit": (
        span(**TRAINS, unlisted_at=880.0),
        spent(starting=10, joining=20, kept=770, leaving=100),
    ),
    "it leaves after its last step": (
        span(**TRAINS, unlisted_at=950.0),
        spent(starting=10, joining=20, kept=770, stalled=50, leaving=50),
    ),
    "it has left": (
        span(**TRAINS, unlisted_at=910.0, gone_at=930.0),
        spent(starting=10, joining=20, kept=770, stalled=10, leaving=20),
    ),
    "it is gone before its steps were saved": (
        span(
            listed_at=110.0,
            gone_at=950.0,
            line=line(at=900.0, first=130.0, kept=700.0, open=70.0),
        ),
        spent(starting=10, joining=20, kept=700, repeated=70, stalled=50),
    ),
    "it leaves in order some time after the last look": (
        span(
            listed_at=110.0,
            unlisted_at=920.0,
            gone_at=930.0,
            in_order=True,
            line=line(at=900.0, first=130.0, kept=700.0, open=70.0),
        ),
        spent(starting=10, joining=20, kept=790, leaving=10),
    ),
    "it leaves in order, and no look has come for long": (
        span(**TRAINS, unlisted_at=980.0, gone_at=990.0, in_order=True),
        spent(starting=10, joining=20, kept=770, stalled=80, leaving=10),
    ),
    "it leaves in order without a rank": (
        span(
            listed_at=110.0,
            unlisted_at=920.0,
            gone_at=930.0,
            in_order=True,
            line=line(at=900.0, first=130.0, kept=700.0, open=70.0, alive=False),
        ),
        spent(starting=10, joining=20, kept=700, repeated=70, stalled=20, leaving=10),
    ),
    "the training has ended well": (
        span(listed_at=110.0, gone_at=920.0, in_order=True, line=line(at=900.0, first=130.0)),
        spent(starting=10, joining=20, kept=790),
    ),
    "it was never listed": (span(gone_at=400.0), spent(useless=300)),
    "it was listed in vain": (
        span(listed_at=110.0, unlisted_at=500.0, gone_at=600.0, idle_seen=True),
        spent(useless=500),
    ),
    "nobody could look into it": (
        span(listed_at=110.0, unlisted_at=500.0, gone_at=600.0),
        spent(starting=10, unknown=390, leaving=100),
    ),
    "it leaves, and never had a rank": (
        span(listed_at=110.0, unlisted_at=600.0),
        spent(starting=10, joining=490, leaving=400),
    ),
    "its rank tells nothing": (
        span(listed_at=110.0, rank_at=140.0),
        spent(starting=10, joining=30, unknown=860),
    ),
    "its rank told nothing, and it has left": (
        span(listed_at=110.0, rank_at=140.0, unlisted_at=500.0, gone_at=520.0),
        spent(starting=10, joining=30, unknown=360, leaving=20),
    ),
    "the memory has what it spent until it left the list": (
        span(listed_at=100.0, rank_at=100.0, unlisted_at=800.0, counted_from=810.0, gone_at=830.0),
        spent(leaving=20),
    ),
    "it is listed again, and the memory has what it did before": (
        span(
            listed_at=100.0,
            rank_at=100.0,
            counted_from=810.0,
            counted_steps=680.0,
            line=line(at=900.0, first=130.0),
        ),
        spent(kept=90),
    ),
    "its clock is behind: its first step began before it was listed": (
        span(listed_at=110.0, line=line(at=900.0, first=105.0)),
        spent(starting=10, kept=790),
    ),
    "its line says more than there was time for": (
        span(listed_at=110.0, line=line(at=900.0, first=130.0, kept=1e9, repeated=1e9)),
        spent(starting=10, joining=20, kept=770),
    ),
}


@pytest.mark.parametrize(("pod", "found"), CASES.values(), ids=CASES)
def test_a_second_is_in_the_bucket_of_the_table(pod: Span, found: dict[str, float]) -> None:
    assert asdict(buckets(pod, now=NOW)) == found


def test_each_gpu_counts() -> None:
    assert buckets(span(weight=8, **TRAINS), now=NOW).kept == 8 * 770


times = st.floats(min_value=1.0, max_value=2000.0)
seconds = st.floats(min_value=0.0, max_value=5000.0)


@st.composite
def lines(draw: st.DrawFn) -> ProgressLine:
    first, since, at = sorted(draw(st.lists(times, min_size=3, max_size=3)))
    sums = {name: draw(seconds) for name in ("kept", "repeated", "open")}
    return line(at=at, first=first, since=since, **sums)


@given(
    st.builds(
        Span,
        weight=st.integers(1, 16),
        bound_at=times,
        listed_at=st.none() | times,
        unlisted_at=st.none() | times,
        rank_at=st.none() | times,
        gone_at=st.none() | times,
        counted_from=st.just(0.0) | times,
        line=st.none() | lines(),
    )
)
def test_whatever_is_said_the_buckets_add_up_to_the_time_of_the_pod(pod: Span) -> None:
    found = buckets(pod, now=2000.0)
    assert all(one >= 0.0 for one in asdict(found).values())
    end = 2000.0 if pod.gone_at is None else pod.gone_at
    if pod.line and pod.gone_at is None and pod.unlisted_at is None:
        end = min(end, max(pod.line.asked_at, pod.line.at))
    expected = pod.weight * max(0.0, end - max(pod.bound_at, pod.counted_from))
    assert found.allocated == pytest.approx(expected, abs=1e-6)


@dataclass
class Job:
    """Two workers that train since second 0, and a change at second 100."""

    spans: dict[str, Span] = field(default_factory=dict)

    def pod(self, name: str, **facts: Any) -> None:
        self.spans[name] = Span(**{"weight": 2, "bound_at": 0.5, "listed_at": 0.6, **facts})

    @property
    def ledger(self) -> Ledger:
        return Ledger(uid="u", spans=self.spans)


def survivor(job: Job, name: str, *, again: int = 0, lost: float = 0.0) -> None:
    """A rank of the ring before, last looked at in second 90; the next ring forms in second 112."""
    kept = 103.0 - 1.0 - lost
    job.pod(
        name,
        earlier=(line(at=90.0, first=1.0),),
        line=line(at=130.0, first=1.0, since=112.0, kept=kept + 18.0, repeated=lost, again=again),
    )


def test_a_graceful_change_costs_the_time_without_steps() -> None:
    """The old ring trains on until second 103, and the newcomer's pod has its node in second 95."""
    job = Job()
    survivor(job, "a")
    survivor(job, "b")
    job.pod("c", bound_at=95.0, line=line(at=130.0, first=112.0))
    assert job.ledger.ring_since("abc", ranks=2, after=100.0) == 112.0
    assert job.ledger.loss(since=100.0, until=112.0) == Loss(seconds=60.0, steps=0)


def test_steps_that_were_done_before_a_loss_and_are_done_again_are_in_its_cost() -> None:
    job = Job()
    survivor(job, "a", again=12, lost=6.0)
    cost = job.ledger.loss(since=103.0, until=112.0)
    assert cost == Loss(seconds=30.0, steps=12)


def test_a_worker_that_has_left_costs_until_it_is_gone() -> None:
    job = Job()
    survivor(job, "a")
    job.pod("b", unlisted_at=101.0, gone_at=106.0, line=line(at=103.0, first=1.0))
    cost = job.ledger.loss(since=100.0, until=112.0)
    assert cost is not None
    assert cost.seconds == pytest.approx(2 * (9.0 + 3.0))


def test_where_nobody_looked_before_the_change_nobody_knows_its_cost() -> None:
    job = Job()
    job.pod("a", line=line(at=130.0, first=1.0, since=112.0))
    assert job.ledger.loss(since=100.0, until=112.0) is None
    job.pod("a", rank_at=10.0)
    assert job.ledger.loss(since=100.0, until=112.0) is None


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"line": None}, id="one has not told"),
        pytest.param({"line": line(at=130.0, first=1.0, since=112.0, ranks=3)}, id="other ranks"),
        pytest.param({"line": line(at=130.0, first=1.0, since=99.0)}, id="the ring before"),
        pytest.param({"line": line(at=130.0, first=1.0, since=112.0, alive=False)}, id="ended"),
    ],
)
def test_a_ring_is_there_once_each_of_its_ranks_has_told_of_it(facts: dict[str, Any]) -> None:
    job = Job()
    survivor(job, "a")
    job.pod("b", **facts)
    assert job.ledger.ring_since("ab", ranks=2, after=100.0) is None
    assert job.ledger.ring_since("abc", ranks=2, after=100.0) is None


def test_the_sum_of_two_is_the_sum_of_each_bucket() -> None:
    one, two = Buckets(kept=1.0, leaving=2.0), Buckets(kept=10.0, useless=3.0)
    assert one.plus(two) == Buckets(kept=11.0, leaving=2.0, useless=3.0)
    assert one.plus(two).allocated == 16.0


anything = st.floats(min_value=0.0, max_value=1e12)


@st.composite
def hostile(draw: st.DrawFn) -> ProgressLine:
    """A line with any numbers that can be read, at times that are believed."""
    counts = {name: draw(st.integers(0, 10**15 - 1)) for name in ("again", "samples", "ranks")}
    sums = {name: draw(anything) for name in ("kept", "repeated", "open", "step_ms", "own_ms")}
    return msgspec.structs.replace(draw(lines()), **sums, **counts)


@given(
    spans=st.lists(
        st.builds(
            Span,
            weight=st.integers(1, 16),
            bound_at=times,
            gone_at=st.none() | times,
            line=st.none() | hostile(),
            earlier=st.lists(hostile(), max_size=4).map(tuple),
        ),
        max_size=4,
    ),
    since=times,
    took=st.floats(min_value=0.0, max_value=1000.0),
)
def test_whatever_lines_say_a_cost_can_be_written_and_read_again(
    spans: list[Span], since: float, took: float
) -> None:
    """No more is lost than the pods held."""
    known = {f"{index}": one for index, one in enumerate(spans)}
    cost = Ledger(uid="u", spans=known).loss(since=since, until=since + took)
    if cost is None:
        return
    change = Change(
        at=since, cause="user", before=1, after=2, lost=cost.seconds, repeated=cost.steps
    )
    assert read_change(msgspec.json.encode(change).decode()) == change
    assert cost.seconds <= sum(one.weight for one in spans) * 3000.0


@given(hostile())
def test_whatever_lines_say_the_memory_can_be_written_and_read_again(found: ProgressLine) -> None:
    rates = {"2": round(found.samples_per_second, 1)}
    spent = Spent(buckets=buckets(span(line=found), now=NOW), rates=rates)
    memory = Memory(spent=spent)
    assert parse_memory(render_memory(memory)) == memory


def test_a_loss_whose_way_back_took_two_rings_costs_all_of_it() -> None:
    """A node is lost in second 100; a ring of one forms in 140, and the whole ring in 225."""
    job = Job()
    rings = line(at=95.0, first=1.0), line(at=150.0, first=1.0, since=140.0, again=20)
    small = msgspec.structs.replace(rings[1], kept=94.0 - 10.0 + 10.0, repeated=10.0, ranks=1)
    last = line(at=240.0, first=1.0, since=225.0, again=20)
    last = msgspec.structs.replace(last, kept=94.0 - 10.0 + 75.0 + 15.0, repeated=10.0)
    job.pod("a", earlier=(rings[0], small), line=last)
    cost = job.ledger.loss(since=100.0, until=225.0)
    # 40 s of stall, 15 s that were done before the loss and are lost, and 10 s between the rings.
    assert cost is not None
    assert cost.seconds == pytest.approx(2 * (40.0 + 15.0 + 10.0))
    assert cost.steps == 20
    assert job.ledger.last_told(ranks=2) == 95.0
    assert job.ledger.last_told(ranks=3) is None


def test_a_pod_that_had_gone_before_a_change_has_no_part_in_its_cost() -> None:
    job = Job()
    survivor(job, "a")
    job.pod("b", rank_at=10.0, gone_at=90.0)
    assert job.ledger.loss(since=100.0, until=112.0) is not None
    job.pod("b", rank_at=10.0, gone_at=101.0)
    assert job.ledger.loss(since=100.0, until=112.0) is None
