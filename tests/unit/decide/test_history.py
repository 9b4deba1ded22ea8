"""What is known of a worker that the list does not name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpijob_elastic.decide import history
from mpijob_elastic.model.job import Config
from mpijob_elastic.model.memory import Left, Memory
from tests.builders import config, job, pods, worker

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
    assert history.is_known(seen) is known


@pytest.mark.parametrize(("uid", "known"), [("uid-of-j-worker-2", True), ("an-earlier-pod", False)])
def test_only_the_same_incarnation_of_a_pod_has_left(uid: str, known: bool) -> None:
    left = Left(uid=uid, at=5.0)
    view = job(3, config=config(pods(0, 1), memory=Memory(left={"j-worker-2": left})))
    assert history.left(view, worker(2)) == (left if known else None)
    assert history.left(view, worker(1)) is None
