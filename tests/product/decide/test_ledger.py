"""The ledger of a job from look to look: what it follows, and what a restart of the controller keeps."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from msgspec import structs

from mpijob_elastic.decide import decide, ledger
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.model import goodput
from mpijob_elastic.model.goodput import Buckets, Ledger, Spent
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.model.progress import ProgressLine
from mpijob_elastic.model.requests import UNIT
from tests.builders import NOW, but, config, job, pods, worker

# The pods got their node that long ago, were Ready and listed, and began to step.
BOUND, LISTED, FIRST = NOW - 1000, NOW - 980, NOW - 950


def told(at: float, **facts: Any) -> ProgressLine:
    """The line of a rank that has trained since FIRST without a break."""
    usual = {"alive": True, "process": 1, "step": 9, "samples": 8, "ranks": 2, "again": 0}
    sums = {"kept": at - FIRST, "repeated": 0.0, "open": 0.0, "total": 0}
    times = {"asked_at": at, "at": at, "first": FIRST, "since": FIRST}
    pace = {"step_ms": 500.0, "own_ms": 400.0}
    return ProgressLine(**{**usual, **sums, **times, **pace, **facts})


def key(index: int) -> str:
    return f"uid-of-{pods(index)[0]}"


@dataclass
class Life:
    """A job, and the ledger that follows it."""

    view: JobView = field(
        default_factory=lambda: job(
            2,
            workers=tuple(bound(index) for index in range(2)),
            config=config(pods(0, 1), memory=Memory(added_at=LISTED)),
        )
    )
    ledger: Ledger | None = None

    def look(self, at: float, **facts: Any) -> Ledger:
        """See the job with what is otherwise about it."""
        self.view = but(self.view, **facts)
        self.ledger = ledger.following(self.ledger, self.view, now=at)
        self.view = replace(self.view, ledger=self.ledger)
        return self.ledger

    def tell(self, moment: float, **facts: Any) -> Ledger:
        """Look into both workers, which train."""
        line = structs.replace(told(moment), **facts)
        probe = Probe(busy_seen=True, busy_at=moment, asked_at=moment, progress=line)
        return self.look(moment, workers=tuple(but(one, probe=probe) for one in self.view.workers))

    def leave(self, index: int, *, at: float) -> None:
        """The list loses a worker; the write has what the worker has spent."""
        stay = [pod for pod in self.view.host_of if pod != pods(index)[0]]
        left = Left(pod=pod_fingerprint(f"uid-of-{pods(index)[0]}"), at=at)
        memory = Memory(
            added_at=LISTED,
            removed_at=at,
            left={**self.view.memory.left, pods(index)[0]: left},
            spent=ledger.spent(self.view, stay, now=at),
        )
        self.look(at, config=config(stay, memory=memory))

    def restart(self, at: float) -> Ledger:
        """Another process leads, and its looks find what is there."""
        self.ledger = None
        return self.look(at, ledger=None)


def bound(index: int, **facts: Any) -> Any:
    return worker(index, **{"node": "n", "bound_at": BOUND, "ready_at": BOUND + 10, **facts})


def followed() -> Life:
    """A job whose pods the process has seen from the beginning."""
    life = Life()
    life.look(BOUND, workers=(), config=config(()))
    life.look(BOUND, workers=tuple(bound(index) for index in range(2)))
    life.look(LISTED, config=config(pods(0, 1), memory=Memory(added_at=LISTED)))
    return life


def total(found: Ledger, at: float) -> Buckets:
    seconds = structs.asdict(found.total(now=at))
    return Buckets(**{name: round(one, 6) for name, one in seconds.items()})


def test_a_job_that_trains() -> None:
    life = followed()
    assert total(life.look(LISTED + 5), LISTED + 5) == Buckets(starting=40.0, joining=10.0)
    found = life.tell(NOW)
    assert total(found, NOW) == Buckets(starting=40.0, joining=60.0, kept=1900.0)


def test_nothing_new_is_the_same_ledger() -> None:
    life = followed()
    before = life.tell(NOW)
    assert life.look(NOW + 5) is before


def test_a_worker_that_leaves_is_counted_until_its_pod_is_gone() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    life.look(NOW + 4)
    found = life.look(NOW + 9, workers=life.view.workers[:1])
    spent = total(found, NOW + 9)
    assert (spent.leaving, spent.stalled, spent.kept) == (8.0, 0.0, 1901.0)
    assert found.spans[key(1)].gone_at == NOW + 9


def test_a_pod_that_is_long_gone_stays_in_the_sum_and_not_in_the_ledger() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    before = total(life.look(NOW + 9, workers=life.view.workers[:1]), NOW + 9)
    later = NOW + 10 + ledger.KEPT_FOR
    found = life.look(later)
    assert key(1) not in found.spans
    assert total(found, NOW + 9) == before


def test_a_worker_that_is_wanted_back_in_its_drain_has_not_left() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    life.look(NOW + 3, config=config(pods(0, 1), memory=Memory(added_at=NOW + 3)))
    found = life.tell(NOW + 20)
    assert total(found, NOW + 20) == Buckets(starting=40.0, joining=60.0, kept=1940.0)


def test_after_a_restart_the_sums_in_the_lines_count_on() -> None:
    """When its pods were listed is not known any more: they were Ready 10 s before."""
    life = followed()
    before = total(life.tell(NOW), NOW)
    after = total(life.restart(NOW), NOW)
    assert after.allocated == before.allocated
    assert after == Buckets(starting=20.0, joining=80.0, kept=1900.0)


def test_after_a_restart_what_had_left_counts_once() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    before = total(life.look(NOW + 5), NOW + 5)
    after = total(life.restart(NOW + 5), NOW + 5)
    assert after.allocated == before.allocated
    assert after.leaving == before.leaving == 4.0
    gone = life.look(NOW + 8, workers=life.view.workers[:1])
    assert total(gone, NOW + 8).leaving == 7.0


def test_a_suspended_job_keeps_its_account_through_a_restart() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(0, at=NOW + 1)
    life.leave(1, at=NOW + 1)
    life.look(NOW + 5, workers=())
    after = total(life.restart(NOW + 500), NOW + 500)
    assert after == Buckets(starting=40.0, joining=60.0, kept=1902.0)


def test_a_job_that_has_ended_counts_no_more() -> None:
    life = followed()
    life.tell(NOW)
    facts = structs.replace(life.view.facts, finished=True, ended_at=NOW + 2)
    found = life.look(NOW + 60, facts=facts)
    assert found.total(now=NOW + 60).allocated == pytest.approx(2 * 1002.0)


@pytest.mark.parametrize(
    ("succeeded_at", "kept", "lost"),
    [
        pytest.param(NOW + 2, 1904.0, 0.0, id="well"),
        pytest.param(None, 1700.0, 200.0, id="as a failure"),
    ],
)
def test_steps_after_the_last_look_count_if_the_job_ends_well(
    succeeded_at: float | None, kept: float, lost: float
) -> None:
    life = followed()
    life.tell(NOW, kept=850.0, open=100.0)
    facts = structs.replace(
        life.view.facts, finished=True, ended_at=NOW + 2, succeeded_at=succeeded_at
    )
    spent = life.look(NOW + 3, facts=facts).total(now=NOW + 3)
    assert (spent.kept, spent.repeated) == (kept, lost)


def test_a_worker_whose_node_is_gone_did_not_leave_in_order() -> None:
    life = followed()
    life.tell(NOW)
    lost = but(life.view.workers[1], node_gone_at=NOW)
    life.look(NOW, workers=(life.view.workers[0], lost))
    life.leave(1, at=NOW + 1)
    assert not life.look(NOW + 1).spans[key(1)].in_order


def test_a_new_job_of_the_name_begins_at_nothing() -> None:
    life = followed()
    life.tell(NOW)
    metadata = structs.replace(life.view.facts.metadata, uid="another")
    facts = structs.replace(life.view.facts, metadata=metadata)
    found = life.look(NOW + 1, facts=facts, workers=(), config=None)
    assert found.total(now=NOW + 1) == Buckets()


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"first": BOUND - 100.0}, id="of a pod before"),
        pytest.param({"at": NOW + 60.0}, id="of a clock that is ahead"),
    ],
)
def test_a_line_that_cannot_be_of_the_pod_is_ignored(facts: dict[str, Any]) -> None:
    life = followed()
    found = life.tell(NOW, **facts)
    assert found.spans[key(0)].line is None


def test_the_samples_per_second_of_a_size_are_kept_once_its_ring_is_steady() -> None:
    life = followed()
    assert life.tell(FIRST + ledger.STEADY_AFTER - 1).rates == {}
    assert life.tell(FIRST + ledger.STEADY_AFTER).rates == {2: 16.0}
    assert life.tell(NOW, ranks=3).rates == {2: 16.0}
    kept = ledger.spent(life.view, (), now=NOW)
    assert kept is not None
    assert kept.rates == {"2": 16.0}


def test_hostile_rates_in_the_memory_are_no_rates() -> None:
    spent = Spent(rates={"x": 1.0, "": 1.0, "9" * 9: 1.0, "٣": 1.0, "3": 2.0})
    view = job(2, config=config(pods(0, 1), memory=Memory(spent=spent)))
    assert ledger.following(None, view, now=NOW).rates == {3: 2.0}


def test_the_gpus_of_a_worker_count() -> None:
    life = Life()
    counts = {"limits.nvidia.com/gpu": 4 * UNIT}
    life.view = but(life.view, facts=structs.replace(life.view.facts, worker_counts=counts))
    assert str(life.view.facts.devices) == "4"
    found = life.restart(NOW)
    assert found.in_gpus
    assert found.spans[key(0)].weight == 4


def test_a_drain_that_is_cancelled_after_a_restart_counts_once_whatever_follows() -> None:
    """The memory has what the worker did until it left; what it does afterwards is counted anew."""
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    life.restart(NOW + 5)
    memory = structs.replace(life.view.memory, left={}, added_at=NOW + 10)
    memory = structs.replace(memory, spent=ledger.spent(life.view, pods(0, 1), now=NOW + 10))
    life.look(NOW + 10, config=config(pods(0, 1), memory=memory))
    found = total(life.tell(NOW + 100), NOW + 100)
    assert found.allocated == pytest.approx(2 * 1100.0)
    assert found.kept == pytest.approx(2 * 1050.0, abs=10.0)
    life.restart(NOW + 100)
    found = total(life.tell(NOW + 200), NOW + 200)
    assert found.allocated == pytest.approx(2 * 1200.0)
    assert found.kept == pytest.approx(2 * 1150.0, abs=20.0)


def test_a_list_that_changes_in_a_drain_counts_its_seconds_once() -> None:
    life = followed()
    life.tell(NOW)
    life.leave(1, at=NOW + 1)
    life.leave(0, at=NOW + 201)
    before = total(life.look(NOW + 202), NOW + 202)
    after = total(life.restart(NOW + 202), NOW + 202)
    assert after.allocated == pytest.approx(before.allocated)


def test_a_worker_that_was_lost_has_not_trained_on() -> None:
    life = followed()
    life.tell(NOW, open=50.0, kept=900.0)
    life.look(NOW + 40, workers=tuple(but(one, ready_at=None) for one in life.view.workers))
    life.leave(1, at=NOW + 40)
    found = life.look(NOW + 45, workers=life.view.workers[:1]).spans[key(1)]
    assert not found.in_order
    lost = goodput.buckets(found, now=NOW + 45)
    assert (lost.kept, lost.repeated, lost.stalled) == (900.0, 50.0, 40.0)


@pytest.mark.parametrize("away", [1.0, ledger.KEPT_FOR - 1.0])
def test_a_pod_that_nobody_sees_for_a_moment_is_not_gone(away: float) -> None:
    life = followed()
    life.tell(NOW)
    workers = life.view.workers
    life.look(NOW + 1, workers=workers[:1])
    life.look(NOW + 1 + away, workers=workers)
    found = life.tell(NOW + 2000)
    assert total(found, NOW + 2000).allocated == 2 * 3000.0


def test_a_pod_that_cannot_be_read_is_not_gone() -> None:
    life = followed()
    life.tell(NOW)
    [stays, hidden] = life.view.workers
    found = life.look(NOW + 5000, workers=(stays,), hidden={hidden.name: hidden.facts})
    assert found.spans[key(1)].gone_at is None


def test_what_ran_before_a_restart_is_unknown_where_nobody_tells() -> None:
    life = Life()
    found = life.look(NOW)
    assert total(found, NOW) == Buckets(starting=20.0, unknown=2 * 990.0)


@pytest.mark.parametrize(
    ("probe", "spent"),
    [
        pytest.param(Probe(), Buckets(starting=20.0, unknown=1000.0), id="nobody could look"),
        pytest.param(Probe(idle_at=NOW, asked_at=NOW), Buckets(useless=1020.0), id="idle"),
    ],
)
def test_a_pod_is_useless_only_if_a_look_has_found_no_rank(probe: Probe, spent: Buckets) -> None:
    life = followed()
    one = but(life.view.workers[1], probe=probe)
    life.look(NOW, workers=(life.view.workers[0], one))
    found = life.look(NOW + 20, workers=life.view.workers[:1]).spans[key(1)]
    assert goodput.buckets(found, now=NOW + 20) == spent


def test_the_worker_of_several_shared_containers_is_unknown_from_its_list_on() -> None:
    life = followed()
    opaque = tuple(but(one, opaque=True) for one in life.view.workers)
    found = total(life.look(NOW, workers=opaque), NOW)
    assert found == Buckets(starting=40.0, unknown=2 * 980.0)


def ended(life: Life, at: float) -> None:
    """The job ends, and its pods are gone soon."""
    facts = structs.replace(life.view.facts, finished=True, ended_at=at)
    life.look(at + 1, facts=facts, launcher=None)
    life.look(at + 2, workers=())


def writes(life: Life, at: float) -> list[WriteConfig]:
    return [one for one in decide(life.view, now=at).actions if isinstance(one, WriteConfig)]


def test_what_a_job_has_spent_is_written_once_when_it_is_over() -> None:
    life = followed()
    life.tell(NOW)
    ended(life, NOW + 1)
    [write] = writes(life, NOW + 3)
    assert write.memory.spent is not None
    assert write.memory.spent.buckets.allocated == pytest.approx(2 * 1001.0)
    assert (write.added, write.removed, write.script) == ((), (), life.view.config.facts.script)
    life.look(NOW + 4, config=config(pods(0, 1), memory=write.memory))
    assert writes(life, NOW + 4) == []
    assert life.restart(NOW + 100).total(now=NOW + 100) == write.memory.spent.buckets


def test_a_job_that_had_ended_before_anybody_followed_it_gets_no_write() -> None:
    life = Life()
    ended(life, NOW)
    assert writes(life, NOW + 3) == []


def test_pods_that_stay_after_the_end_count_once() -> None:
    life = followed()
    life.tell(NOW)
    facts = structs.replace(life.view.facts, finished=True, ended_at=NOW + 1)
    life.look(NOW + 2, facts=facts, launcher=None)
    [write] = writes(life, NOW + 3)
    life.look(NOW + 4, config=config(pods(0, 1), memory=write.memory))
    assert life.restart(NOW + 100).total(now=NOW + 100).allocated == pytest.approx(2 * 1001.0)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"deleting": True}, id="deleting"),
        pytest.param({"terminated": True}, id="over"),
    ],
)
def test_a_pod_that_a_restart_finds_at_its_end_is_not_counted_as_new(facts: dict[str, Any]) -> None:
    life = followed()
    life.tell(NOW)
    going = bound(0, **facts)
    life.look(NOW + 1, workers=(going,), config=config(()))
    life.restart(NOW + 2)
    life.look(NOW + 3)
    assert total(life.look(NOW + 900), NOW + 900) == Buckets()
