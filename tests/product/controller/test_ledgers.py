"""The counters of GPU-seconds: they follow the ledger, never go back, and count nothing twice."""

from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from mpijob_elastic.controller.ledgers import COUNTED_EVERY, Ledgers
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
