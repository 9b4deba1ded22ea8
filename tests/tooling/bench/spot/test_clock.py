"""Time goes by itself, and further where it is told to; never back."""

from bench.spot.clock import Clock


def test_skips_add_to_real_time() -> None:
    real = 100.0
    clock = Clock(lambda: real)
    real += 5
    assert clock.now() == 5
    clock.skip_to(65)
    assert clock.now() == 65
    real += 1
    assert (clock.now(), clock.real) == (66, 6)


def test_it_never_goes_back() -> None:
    clock = Clock(lambda: 0.0)
    clock.skip_to(10)
    clock.skip_to(5)
    assert clock.now() == 10
