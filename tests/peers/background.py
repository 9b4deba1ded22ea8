"""Work that goes on beside a test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(work: Callable[[], None], *, every: float) -> Iterator[None]:
    """Do something again and again, with pauses in seconds, as long as the block lasts."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(every):
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
