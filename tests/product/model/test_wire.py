"""Texts that many objects share."""

import tracemalloc

from mpijob_elastic.model.wire import shared


def test_equal_texts_are_one() -> None:
    first, second = b"node-1".decode(), b"node-1".decode()
    assert first is not second
    assert shared(first) is shared(second)


def test_texts_that_are_gone_do_not_stay() -> None:
    """Of 100,000 long names at most a third stays, and nothing of a text longer than any name."""
    tracemalloc.start()
    try:
        for index in range(100_000):
            shared(f"{index:0200}")
        shared("x" * 2**25)
        assert tracemalloc.get_traced_memory()[0] < 2**24
    finally:
        tracemalloc.stop()
