from lab.operator.limits import Backoff, TokenBucket


def test_a_bucket_lets_its_burst_pass_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=5, burst=3)
    assert [bucket.reserve(100.0) for _ in range(5)] == [0, 0, 0, 0.2, 0.4]


def test_a_bucket_fills_again_up_to_its_burst() -> None:
    bucket = TokenBucket(rate=5, burst=2)
    for _ in range(4):
        bucket.reserve(100.0)
    assert [bucket.reserve(200.0) for _ in range(3)] == [0, 0, 0.2]


def test_a_rate_of_zero_is_no_limit() -> None:
    bucket = TokenBucket(rate=0, burst=1)
    assert [bucket.reserve(0.0) for _ in range(100)] == [0] * 100


def test_taking_needs_a_whole_token() -> None:
    bucket = TokenBucket(rate=0.5, burst=1)
    assert [bucket.take(now) for now in (10.0, 11.0, 12.0)] == [True, False, True]


def test_a_key_waits_twice_as_long_each_time_until_it_is_forgotten() -> None:
    backoff = Backoff()
    key = "ns", "j"
    assert [backoff.next(key) for _ in range(3)] == [0.005, 0.01, 0.02]
    assert backoff.next(("ns", "other")) == 0.005
    backoff.forget(key)
    assert backoff.next(key) == 0.005


def test_no_key_waits_longer_than_a_thousand_seconds() -> None:
    backoff = Backoff()
    assert max(backoff.next(("ns", "j")) for _ in range(2000)) == 1000.0
