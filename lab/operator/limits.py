"""The rate limits of client-go 0.15; times are seconds on any clock that only goes forward."""

from collections import defaultdict

from lab.operator.wire import Key

BASE_DELAY = 0.005
LONGEST_DELAY = 1000.0


class TokenBucket:
    """`burst` at once, then `rate` a second (golang.org/x/time/rate); a rate of 0 means no limit."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._last = 0.0

    def reserve(self, now: float) -> float:
        """Take a token, even one of the future, and return how long to wait for it."""
        if not self._rate:
            return 0.0
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _refill(self, now: float) -> None:
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now


class Backoff:
    """Each time a key comes again before it is forgotten, it waits twice as long, from 5 ms to 1000 s."""

    def __init__(self) -> None:
        self._times: defaultdict[Key, int] = defaultdict(int)

    def next(self, key: Key) -> float:
        """Return how long the key waits this time."""
        exponent = min(self._times[key], 30)
        self._times[key] += 1
        return min(BASE_DELAY * 2.0**exponent, LONGEST_DELAY)

    def forget(self, key: Key) -> None:
        """Begin again with the shortest wait."""
        self._times.pop(key, None)
