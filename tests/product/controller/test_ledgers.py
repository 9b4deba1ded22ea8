"""The counters of GPU-seconds: they follow the ledger, never go back, and count nothing twice."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from mpijob_elastic.controller.ledgers import COUNTED_EVERY, Ledgers
from mpijob_elastic.model.devices import MOST_WEIGHT
from mpijob_elastic.model.goodput import NAMES
from mpijob_elastic.model.pod import Probe
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, Story, config, job, pods, worker
from tests.product.decide.test_ledger import told

KEY = JobKey("default", "j")


@dataclass
class Counters:
    """A process that leads, and what its counters say."""

    now: float = NOW
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.ledgers = Ledgers(Metrics(self.registry), now=lambda: self.now)

    def look(self, view: Story, *, after: float = COUNTED_EVERY) -> None:
        self.now += after
        self.ledgers.followed(view)

    def see(self, view: Story, *, at: float) -> None:
        self.look(view, after=at - self.now)

    def of(self, bucket: str, what: str = "worker") -> float:
        name = f"mpijob_elastic_{what}_seconds_total"
        return self.registry.get_sample_value(name, {"bucket": bucket}) or 0.0


def trains(at: float, **facts: Any) -> Story:
    probe = Probe(busy_seen=True, busy_at=at, asked_at=at, progress=told(at, **facts))
    one = worker(0, node="n", bound_at=NOW - 1000, probe=probe)
    return job(1, workers=(one,), config=config(pods(0)))


def test_a_process_counts_from_its_first_look_on() -> None:
    counters = Counters()
    counters.look(trains(NOW))
    assert counters.of("kept") == 0.0
    counters.look(trains(NOW + 30))
    assert counters.of("kept") == 30.0
    assert counters.of("kept", "gpu") == 0.0


def test_steps_that_are_lost_later_do_not_turn_the_counter_back() -> None:
    counters = Counters()
    counters.look(trains(NOW))
    counters.look(trains(NOW + 30))
    kept = told(NOW + 30).kept
    counters.look(trains(NOW + 40, kept=kept - 10, repeated=20.0))
    assert (counters.of("kept"), counters.of("repeated")) == (30.0, 20.0)
    counters.look(trains(NOW + 50, kept=kept, repeated=20.0))
    assert counters.of("kept") == 30.0
    counters.look(trains(NOW + 60, kept=kept + 10, repeated=20.0))
    assert counters.of("kept") == 40.0


def test_a_rank_that_may_yet_write_its_first_line_is_not_counted_as_one_that_tells_nothing() -> (
    None
):
    counters = Counters()
    seen = Probe(busy_seen=True, busy_at=NOW + 10, asked_at=NOW + 10)
    view = job(1, workers=(worker(0, node="n", bound_at=NOW, probe=seen),), config=config(pods(0)))
    counters.look(view.without(0), after=0.0)
    counters.look(view)
    counters.look(view, after=600.0)
    assert counters.of("unknown") == 0.0
    counters.look(view, after=600.0)
    assert counters.of("unknown") == NOW + 2 * 600.0 + COUNTED_EVERY - (NOW + 10)


def test_the_last_seconds_of_a_job_that_is_gone_count_too() -> None:
    counters = Counters()
    counters.look(trains(NOW))
    counters.look(trains(NOW + 5), after=1.0)
    assert counters.of("kept") == 0.0
    counters.ledgers.forget(KEY)
    assert counters.of("kept") == 5.0
    counters.ledgers.forget(KEY)


def test_a_job_that_is_not_elastic_is_not_followed() -> None:
    counters = Counters()
    view = job(1, elastic=False)
    assert counters.ledgers.followed(view) is view


def test_after_a_restart_nothing_counts_twice() -> None:
    """The new process has not looked yet when it sees the job first."""
    counters = Counters()
    counters.see(trains(NOW).pod(0, probe=Probe()), at=NOW)
    for seconds in (20, 40, 140):
        counters.see(trains(NOW + seconds), at=NOW + seconds)
    assert counters.of("kept") == 120.0
    assert counters.of("joining") == counters.of("starting") == counters.of("unknown") == 0.0


def test_a_job_that_is_not_there_for_a_moment_counts_once() -> None:
    counters = Counters()
    counters.see(trains(NOW), at=NOW)
    counters.see(trains(NOW + 30), at=NOW + 30)
    counters.ledgers.forget(KEY)
    counters.see(trains(NOW + 31), at=NOW + 31)
    counters.see(trains(NOW + 61), at=NOW + 61)
    assert counters.of("kept") == 60.0


def test_a_job_that_is_made_again_under_its_name_counts_from_its_beginning() -> None:
    counters = Counters()
    counters.see(trains(NOW), at=NOW)
    counters.see(trains(NOW + 1000), at=NOW + 1000)
    again = trains(NOW + 1040, kept=20.0, first=NOW + 1020, since=NOW + 1020)
    other = msgspec.structs.replace(again.facts.metadata, uid="another")
    again = again.but(facts=msgspec.structs.replace(again.facts, metadata=other))
    pod = msgspec.structs.replace(again.workers[0].ref, uid="another pod")
    counters.see(again.without(0), at=NOW + 1005)
    again = again.pod(0, ref=pod, bound_at=NOW + 1010)
    counters.see(again, at=NOW + 1040)
    assert counters.of("kept") == 1020.0


def test_no_number_of_gpus_spoils_the_counter() -> None:
    counters = Counters()
    view = trains(NOW)
    facts = msgspec.structs.replace(view.facts, worker_counts={"limits.nvidia.com/gpu": 10**30})
    view = view.but(facts=facts)
    counters.look(view.without(0), after=0.0)
    counters.look(view)
    counters.look(view.without(0))
    assert counters.of("kept", "gpu") <= MOST_WEIGHT * 1000.0


def test_each_series_begins_with_0() -> None:
    """Prometheus sees no increase in a series that begins with another number."""
    registry = Counters().registry
    for what in ("gpu", "worker"):
        name = f"mpijob_elastic_{what}_seconds_total"
        assert [registry.get_sample_value(name, {"bucket": one}) for one in NAMES] == [0.0] * 8
