"""Jobs that end: launchers that fail too often, jobs deleted after a while, ends just after a change of the list."""

from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import Queue
from mpijob_elastic.decide import notices
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, SizeChange
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import LONG_AGO, NOW, Story, config, job, launcher, pending, pods, worker
from tests.product.decide.plans import does, note

TTL = 600
ENDED = NOW - 30.0
FINISHED = launcher(LauncherPhase.FINISHED)
SURPLUS: dict[str, Any] = {"clean_pod_policy": "Running", "replicas": 1}


def failing(
    failures: int = 3, *, limit: int | None = 2, phase: Any = LauncherPhase.STARTED, **facts: Any
) -> JobView:
    """A job whose launcher has failed so often, and waits to be restarted."""
    about = {name: facts.pop(name) for name in ("deadline", "deleting") if name in facts}
    return job(
        2, backoff_limit=limit, launcher=launcher(phase, failures=failures, **about), **facts
    )


def over(*, ago: float = TTL, **facts: Any) -> Story:
    """A job of two that ended `ago` and is to be deleted ten minutes after its end."""
    return job(
        2, **{"finished": True, "ended_at": NOW - ago, "ttl": TTL, "launcher": None, **facts}
    )


def succeeded(*, changed: float = 5.0, memory: dict[str, Any] | None = None, **facts: Any) -> Story:
    """A job of two that succeeded at `ENDED`, so many seconds after it had been made smaller."""
    remembered = Memory(**(memory or {"removed_at": ENDED - changed, "added_at": LONG_AGO}))
    facts = {"finished": True, "succeeded_at": ENDED, **facts}
    return job(2, config=config(pods(0, 1), memory=remembered), **facts)


def grew(before: int) -> dict[str, Any]:
    return {"added_at": ENDED - 5.0, "scale": SizeChange(before=before, after=2, at=ENDED - 5.0)}


def test_nobody_is_freed_once_the_launcher_has_ended() -> None:
    """What the operator says of that comes in a moment, and may be that the pods go."""
    held = pending(1, gates=(names.GATE_SUSPENDED,))
    ended = launcher(LauncherPhase.FINISHED, ended_at=NOW - 60)
    view = job(2, workers=(worker(0), held), launcher=ended, clean_pod_policy="Running")
    assert does(view) == "delete 1:finished 0:finished"


@pytest.mark.parametrize(
    ("view", "plan"),
    [
        (failing(), "end launcher"),
        (failing(9), "end launcher"),
        (failing(elastic=False), "end launcher"),
        (failing(config=None, role=None), "end launcher"),
        (failing(deadline=3600), "end launcher"),
        (failing(deadline=1), "nothing"),
        (failing(2), "nothing"),
        (failing(0), "nothing"),
        (failing(limit=None), "nothing"),
        (failing(limit=0), "nothing"),
        (failing(phase=LauncherPhase.FINISHED), "nothing"),
        (failing(deleting=True), "nothing"),
        (failing(finished=True), "nothing"),
        (failing(foreign="another's", notices="HandedOver: told"), "nothing"),
        (over(), "delete job"),
        (over(ago=TTL + 1e6), "delete job"),
        (over(ago=0, ttl=0), "delete job"),
        (over(ago=TTL - 0.1), "wake 0.1"),
        (over(ago=300), "wake 300"),
        (over(ago=-60), "wake 660"),
        (over(ago=-60, ttl=0), "wake 60"),  # the operator's clock is ahead
        (over(elastic=False), "delete job"),
        (over(launcher=FINISHED), "delete job"),
        (over(launcher=launcher()), "nothing"),
        (over(config=None, role=None, workers=()), "delete job"),
        (over(**SURPLUS), "delete job"),
        (over(ago=60, **SURPLUS), "delete 1:finished 0:finished; wake 540"),
        (over(ttl=None), "nothing"),
        (over(ended_at=None), "nothing"),
        (over(finished=False, ended_at=None), "nothing"),
        (over(deleting=True), "nothing"),
        (over(foreign="another's"), "nothing"),
        (over(queue=Queue(name="team")), "delete job"),
        # MultiKueue deletes its copy once it knows the end; of one that is gone before it would
        # make another.
        (over(queue=Queue(name="team", prebuilt=True)), "nothing"),
        # A notice of its end is written first.
        (succeeded(ended_at=NOW - TTL, ttl=TTL, launcher=None), "say EndedAfterResize"),
        (succeeded(), "say EndedAfterResize"),
        (succeeded(changed=60.0), "say EndedAfterResize"),
        (succeeded(changed=61.0), "nothing"),
        (succeeded(changed=-4.0), "say EndedAfterResize"),  # another clock
        (succeeded(changed=-6.0), "nothing"),
        (succeeded(memory=grew(1)), "say EndedAfterResize"),
        (succeeded(memory=grew(0)), "nothing"),
        (succeeded(succeeded_at=None), "nothing"),
        (succeeded(elastic=False), "nothing"),
        (succeeded(deleting=True), "nothing"),
        (succeeded(foreign="another's", notices="HandedOver: told"), "nothing"),
        (succeeded(replicas=1, clean_pod_policy="All"), "delete 1:finished; say EndedAfterResize"),
    ],
)
def test_what_is_done_at_the_end(view: JobView, plan: str) -> None:
    assert does(view) == plan


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (
            failing(),
            "BackoffLimitExceeded: j-launcher has failed 3 times (backoffLimit 2), so it is ended",
        ),
        (
            over(),
            "FinishedJobDeleted: j is deleted with all that it owns, 10m after its end (ttlSecondsAfterFinished)",
        ),
    ],
)
def test_it_says_why(view: JobView, line: str) -> None:
    assert note(view).line == line


def test_a_suspicious_end_is_told_once_while_it_is_news() -> None:
    view = succeeded(changed=12.0, notices="WorkersNotReady: 1 of 2")
    told = note(view)
    for words in ("succeeded 12s after", "may have exited with 0", "the launcher's log"):
        assert words in told.message
    assert does(view.but(notices=told.line)) == "nothing"
    assert does(view, now=ENDED + notices.NEWS_FOR) == "say EndedAfterResize"
    assert does(view, now=ENDED + notices.NEWS_FOR + 1.0) == "nothing"
