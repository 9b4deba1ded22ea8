"""An event loop whose clock jumps to the next timer, so that minutes of waiting pass at once and in a fixed order.

Only for code that waits on timers and on other coroutines; there is nothing in it that reads
sockets.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, jump: Callable[[float], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits for something that no timer brings"
        self._jump(timeout)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self._advance))

    def _advance(self, seconds: float) -> None:
        self._now += max(0.0, seconds)

    def time(self) -> float:
        return self._now


def run(main: Coroutine[Any, Any, T]) -> T:
    """Do what `asyncio.run` does, in no time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main)


def in_no_time(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test in virtual time."""

    def wrapper() -> None:
        run(test())

    wrapper.__name__ = test.__name__
    return wrapper
