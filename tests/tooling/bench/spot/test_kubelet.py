"""When a launcher sees a change: at the next sync, or right after a touch."""

import math
from random import Random
from statistics import mean

from bench.spot.kubelet import AFTER_TOUCH, SYNC, Mount


def mount(seed: int = 1, *, now: float = 0.0) -> Mount:
    return Mount(now=now, content="old", touch="0", chance=Random(seed))


def seen_after(made: Mount, *, now: float, touch: str) -> float:
    made.tick(now, content="new", touch=touch)
    return made.next_change("new") - now


def test_a_touch_shows_a_change_at_once() -> None:
    made = mount()
    assert seen_after(made, now=10, touch="1") == AFTER_TOUCH
    made.tick(10 + AFTER_TOUCH, content="new", touch="1")
    assert made.content == "new"


def test_without_one_it_is_seen_by_the_periodic_sync() -> None:
    waits = []
    for seed in range(300):
        made = mount(seed)
        made.tick(1000, content="old", touch="0")
        waits.append(seen_after(made, now=1000, touch="0"))
    assert min(waits) >= 0
    assert max(waits) <= SYNC[1]
    assert 35 < mean(waits) < 41  # 38.7 s was measured


def test_what_is_seen_already_does_not_change() -> None:
    made = mount()
    made.tick(500, content="old", touch="1")
    assert made.next_change("old") == math.inf


def test_a_change_that_is_taken_back_before_the_sync_is_never_seen() -> None:
    made = mount()
    made.tick(10, content="new", touch="0")
    made.tick(100, content="old", touch="0")
    assert made.content == "old"
