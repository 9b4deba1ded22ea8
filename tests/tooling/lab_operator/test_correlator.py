from dataclasses import replace

from lab.operator.correlator import BURST, Correlator, Occurrence
from lab.operator.status import Event

EVENT = Event(type="Normal", reason="MPIJobRunning", message="MPIJob ns/j is running")
FIRST = Occurrence(name="j.1", first="2026-01-02T03:04:05Z", count=1)
SECOND = Occurrence(name="j.2", first="2026-01-02T03:05:00Z", count=1)


def test_the_same_event_raises_the_count_of_the_first() -> None:
    correlator = Correlator()
    assert correlator.observe(EVENT, uid="u", new=FIRST, now=0.0) == FIRST
    assert correlator.observe(EVENT, uid="u", new=SECOND, now=1.0) == replace(FIRST, count=2)


def test_another_job_or_message_is_another_event() -> None:
    correlator = Correlator()
    correlator.observe(EVENT, uid="u", new=FIRST, now=0.0)
    assert correlator.observe(EVENT, uid="other", new=SECOND, now=0.0) == SECOND
    assert correlator.observe(replace(EVENT, message="m"), uid="u", new=SECOND, now=0.0) == SECOND


def test_a_job_that_sends_too_much_is_silenced_for_five_minutes_at_a_time() -> None:
    correlator = Correlator()
    seen = [correlator.observe(EVENT, uid="u", new=FIRST, now=1000.0) for _ in range(BURST + 2)]
    assert [occurrence is None for occurrence in seen] == [False] * BURST + [True, True]
    assert correlator.observe(EVENT, uid="other", new=SECOND, now=1000.0) == SECOND
    later = correlator.observe(EVENT, uid="u", new=SECOND, now=1301.0)
    assert later == replace(FIRST, count=BURST + 3)
