"""The history of a worker that is not in the list."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import derive, drain
from mpijob_elastic.model.job import Config
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from tests.builders import LONG_AGO, NOW, config, job, pods, shown, worker

SHOWN_AT = NOW - 60
OURS = config(pods(0, 1))


@pytest.mark.parametrize(
    ("seen", "known"),
    [
        (OURS, True),
        (config([]), True),
        (None, False),
        (replace(OURS, memory=None), False),
        (replace(OURS, published=None), False),
        (replace(OURS, memory=Memory()), False),
        (replace(OURS, script=config(pods(0)).script), False),
    ],
    ids=["ours", "ours-empty", "no-config-map", "no-memory", "unreadable", "unsigned", "edited-by-hand"],
)
def test_the_memory_is_believed_for_the_script_it_was_written_with(seen: Config | None, known: bool) -> None:
    assert derive(job(config=seen), now=NOW).memory_known is known


@pytest.mark.parametrize(
    ("uid", "created_at", "found"),
    [
        ("uid-of-j-worker-2", LONG_AGO, True),
        ("uid-of-j-worker-2", NOW, True),
        ("an earlier pod", LONG_AGO, True),
        # Three seconds until the driver has surely read the list, five between two clocks.
        ("an earlier pod", SHOWN_AT + 8, True),
        ("an earlier pod", SHOWN_AT + 9, False),
        ("", SHOWN_AT + 8, True),
        ("", SHOWN_AT + 9, False),
    ],
)
def test_a_pod_may_be_taken_for_the_one_before_it_until_the_driver_has_read_the_list(
    uid: str, created_at: float, found: bool
) -> None:
    left = Left(pod=pod_fingerprint(uid), at=SHOWN_AT - 1)
    view = job(3, config=config(pods(0, 1), memory=Memory(left={"j-worker-2": left})))
    seen = drain.left(derive(shown(view, at=SHOWN_AT), now=NOW), worker(2, created_at=created_at))
    assert seen == (left if found else None)


def test_before_the_launcher_was_shown_that_one_left_it_may_take_any_for_it() -> None:
    left = Left(pod=pod_fingerprint("an earlier pod"), at=LONG_AGO)
    view = job(3, known=False, config=config(pods(0, 1), memory=Memory(left={"j-worker-2": left})))
    assert drain.left(derive(view, now=NOW), worker(2, created_at=NOW)) == left


def test_what_never_was_in_the_list_has_not_left() -> None:
    assert drain.left(derive(job(3), now=NOW), worker(1)) is None
