"""The synthetic trace follows its rules, and its seed alone."""

import pytest

from bench.spot.synthetic_trace import DAY, HOUR, MIN_LIFE, Rules, generate

MANY = 400


def test_the_seed_alone_decides() -> None:
    first, again, other = (generate(seed, size=8, horizon=DAY, rules=Rules()) for seed in (1, 1, 2))
    assert first == again
    assert first.instances != other.instances


def test_lives_have_the_mean_that_is_asked_for() -> None:
    rules = Rules(daily_swing=0, reclaims_a_day=0, mean_life=HOUR)
    lives = [one.gone - one.up for one in generate(3, size=40, horizon=20 * DAY, rules=rules).instances if one.gone]
    assert sum(lives) / len(lives) == pytest.approx(HOUR + MIN_LIFE, rel=0.05)


def test_the_day_swings() -> None:
    rules = Rules(daily_swing=0.9, reclaims_a_day=0, mean_life=4 * HOUR, shortage_share=0)
    ends = [one.gone % DAY for one in generate(4, size=40, horizon=10 * DAY, rules=rules).instances if one.gone]
    assert sum(end < DAY / 2 for end in ends) > 2 * sum(end >= DAY / 2 for end in ends)


def test_some_are_reclaimed_together() -> None:
    rules = Rules(mean_life=1e9, reclaims_a_day=4, reclaim_share=0.5)
    ends = [one.gone for one in generate(5, size=MANY, horizon=DAY, rules=rules).instances if one.gone]
    assert len(set(ends)) < 12
    assert max(ends.count(end) for end in set(ends)) == pytest.approx(MANY / 2, rel=0.2)


def test_most_are_told_in_time() -> None:
    found = [one for one in generate(6, size=MANY, horizon=DAY, rules=Rules()).instances if one.gone is not None]
    told = [one for one in found if one.noticed is not None]
    assert 1 - len(told) / len(found) == pytest.approx(Rules().unannounced, abs=0.04)
    assert {round(one.gone - one.noticed) for one in told if one.gone and one.noticed} == {120}


def test_places_are_filled_again_at_once_or_after_a_shortage() -> None:
    rules = Rules(shortage_share=0.5, mean_life=HOUR)
    found = generate(7, size=20, horizon=4 * DAY, rules=rules).instances
    by_name = {one.name: one for one in found}
    gaps = []
    for one in found:
        place, number = one.name.split("-")
        before = by_name.get(f"{place}-{int(number) - 1}")
        if before and before.gone is not None:
            gaps.append(one.up - before.gone)
    assert min(gaps) == pytest.approx(rules.joining)
    assert sum(gap > rules.joining + 1 for gap in gaps) / len(gaps) == pytest.approx(0.5, abs=0.1)
