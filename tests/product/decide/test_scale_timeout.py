"""Sizes that cannot be reached, and what is remembered of sizes."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.decide import derive, scale_timeout
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Growth, Memory, Scale
from mpijob_elastic.model.policy import Policy
from mpijob_elastic.model.queue import Queue, Workload
from mpijob_elastic.model.wire import Owned
from tests.builders import NOW, config, job, launcher, pending, pods, worker

TIMED = Policy(scale_timeout=60.0)
BEFORE = Growth(worked=2, asked=4, at=NOW - 60)


def grown(*running: int, growth: Growth | None = BEFORE, **facts: Any) -> JobView:
    """A job that trained on two workers and was asked for four a minute ago, of which these are Ready."""
    facts = {
        "workers": tuple(worker(index) if index in running else pending(index) for index in range(4)),
        "config": config(pods(0, 1), memory=Memory(growth=growth)),
        "policy": TIMED,
        **facts,
    }
    return job(4, **facts)


def size(view: JobView, *, now: float = NOW) -> tuple[int | None, float | None]:
    action, wake_at = scale_timeout.roll_back(derive(view, now=now))
    return (action.after if action else None), wake_at


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (grown(0, 1), (2, None)),
        (grown(0, 1, 2), (3, None)),
        # Size is all that the operator knows: worker-3 cannot stay without worker-2.
        (grown(0, 1, 3), (2, None)),
        # A size that worked once is desired again, whichever workers are missing now.
        (grown(1), (2, None)),
        (grown(0, 1, policy=Policy(scale_timeout=60.0, min_replicas=3)), (3, None)),
        (grown(0, 1, policy=Policy(scale_timeout=60.0, min_replicas=4)), (None, None)),
        (grown(0, 1, policy=Policy(scale_timeout=61.0)), (None, NOW + 1)),
        (grown(0, 1, 2, 3), (None, None)),
        (grown(0, 1, policy=Policy()), (None, None)),
        (grown(0, 1, elastic=False), (None, None)),
        (grown(0, 1, launcher=launcher(LauncherPhase.DELIVERING)), (None, None)),
        # Nothing worked yet: the first size is what its author asked for.
        (grown(0, 1, growth=Growth(worked=0, asked=4, at=NOW - 60)), (None, None)),
        (grown(0, 1, growth=Growth(worked=4, asked=4, at=NOW - 60)), (None, None)),
        # Another size, not yet written down.
        (grown(0, 1, growth=Growth(worked=2, asked=3, at=NOW - 60)), (None, None)),
        (grown(0, 1, growth=Growth(worked=2, asked=4, at=NOW + 3600)), (None, None)),
        (grown(0, 1, growth=None), (None, None)),
    ],
)
def test_when_a_size_is_taken_back(view: JobView, expected: tuple[int | None, float | None]) -> None:
    assert size(view) == expected


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ((worker(0), worker(1)), "j-worker-2 was not created"),
        ((worker(0), worker(1), pending(2, obstacle="0/3 nodes are available")), "0/3 nodes are available"),
        ((worker(0), worker(1), pending(2, last_state="Pending on node n")), "Pending on node n"),
        ((worker(0), worker(1), pending(2)), "kubectl describe pod j-worker-2"),
    ],
)
def test_the_event_says_which_workers_are_missing_and_why(workers: Any, words: str) -> None:
    action, _ = scale_timeout.roll_back(derive(grown(workers=workers), now=NOW))
    assert action is not None
    assert (action.before, action.note.reason, action.note.warning) == (4, "ScaleTimeout", True)
    assert words in action.note.message
    assert "j-worker-2, j-worker-3 not Ready 1m after the scale-out to 4 workers" in action.note.message


def test_the_event_says_what_kueue_says_of_a_worker_that_waits_for_quota() -> None:
    held = [pending(index, gates=(names.GATE_QUEUED,), obstacle="SchedulingGated: blocked") for index in (2, 3)]
    found = {name: Owned(name=name, namespace="default", uid=name, job="j") for name in ("j-launcher", "j-worker-2")}
    base = Workload(metadata=found["j-launcher"], queue="team", workers=2, reserved=True, admitted=True)
    extra = Workload(metadata=found["j-worker-2"], queue="team", workers=1, said="no\nquota")
    queue = Queue(name="team", workloads={"j-launcher": base, "j-worker-2": extra})
    action, _ = scale_timeout.roll_back(derive(grown(workers=(worker(0), worker(1), *held), queue=queue), now=NOW))
    assert action is not None
    assert "(it waits in queue team: no quota); Worker.replicas returns to 2" in action.note.message


@pytest.mark.parametrize(
    ("old", "published", "remembered"),
    [
        # A scale-out begins, goes on, is complete.
        (Memory(growth=Growth(worked=2, asked=2, at=5.0)), (0, 1), Growth(worked=2, asked=4, at=NOW)),
        (Memory(growth=BEFORE), (0, 1, 2), BEFORE),
        (Memory(growth=BEFORE), (0, 1, 2, 3), Growth(worked=4, asked=4, at=NOW - 60)),
        # A scale-in; another size while a size is waited for.
        (Memory(growth=Growth(worked=6, asked=6, at=5.0)), (0,), Growth(worked=4, asked=4, at=NOW)),
        (Memory(growth=Growth(worked=2, asked=3, at=5.0)), (0, 1), Growth(worked=2, asked=4, at=NOW)),
        # The timeout is set together with the first size, or later, or with the scale-out.
        (Memory(), (), Growth(worked=0, asked=4, at=NOW)),
        (Memory(), (0, 1, 2, 3), Growth(worked=4, asked=4, at=NOW)),
        (Memory(scale=Scale(before=0, after=2, at=5.0)), (0, 1), Growth(worked=2, asked=4, at=NOW)),
        # A clock that was ahead.
        (Memory(growth=Growth(worked=2, asked=4, at=NOW + 60)), (0, 1), Growth(worked=2, asked=4, at=NOW)),
    ],
)
def test_what_is_remembered_of_the_size(old: Memory, published: tuple[int, ...], remembered: Growth) -> None:
    state = derive(grown(0, 1, config=config(pods(0, 1), memory=old)), now=NOW)
    assert scale_timeout.growth(state, pods(*published)) == remembered


@pytest.mark.parametrize("facts", [{"policy": Policy()}, {"elastic": False}])
def test_without_a_timeout_nothing_is_remembered(facts: dict[str, Any]) -> None:
    assert scale_timeout.growth(derive(grown(0, 1, **facts), now=NOW), pods(0, 1)) is None
