"""The time that admission adds."""

import pytest

from bench.admission_overhead import PATTERNS, Added, Pattern, added


def test_it_is_the_difference_of_the_percentiles() -> None:
    found = added(with_webhook=[0.006, 0.005, 0.030], without=[0.004, 0.003, 0.010])
    values = (found.p50, found.p99, found.p50_without, found.p99_without)
    assert values == pytest.approx((2, 20, 4, 10))
    assert isinstance(found, Added)


def test_patterns_say_what_they_do() -> None:
    assert str(Pattern(callers=16, interval=0.32, creations=400)) == "launcher creation, 16 callers, 50 a second"
    assert str(Pattern(callers=1, interval=0, creations=200)) == "launcher creation, 1 caller, without a pause"
    evictions = Pattern(callers=1, interval=0.5, creations=200, role="worker", evicts=True)
    assert str(evictions) == "worker eviction, 1 caller, 2 a second"


def test_each_caller_has_as_many_creations() -> None:
    assert all(pattern.creations % pattern.callers == 0 for pattern in PATTERNS)
