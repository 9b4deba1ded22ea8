"""Launchers that fail again and again."""

from typing import Any

import pytest

from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import EndLauncher
from mpijob_elastic.model.job import JobView, LauncherPhase
from tests.builders import NOW, job, launcher


def failing(failures: int = 3, *, limit: int | None = 2, phase: Any = LauncherPhase.STARTED, **facts: Any) -> JobView:
    """A job whose launcher has failed so often, and waits to be restarted."""
    about = {name: facts.pop(name) for name in ("deadline", "deleting") if name in facts}
    return job(2, backoff_limit=limit, launcher=launcher(phase, failures=failures, **about), **facts)


@pytest.mark.parametrize(
    ("view", "ended"),
    [
        (failing(), True),
        (failing(9), True),
        (failing(elastic=False), True),
        (failing(config=None, role=None), True),
        (failing(deadline=3600), True),
        (failing(deadline=1), False),
        (failing(2), False),
        (failing(0), False),
        (failing(limit=None), False),
        (failing(limit=0), False),
        (failing(phase=LauncherPhase.FINISHED), False),
        (failing(deleting=True), False),
        (failing(finished=True), False),
        (failing(foreign="another's"), False),
    ],
)
def test_when_it_is_ended(view: JobView, ended: bool) -> None:
    found = [action for action in decide(view, now=NOW).actions if isinstance(action, EndLauncher)]
    assert [action.launcher for action in found] == ([view.launcher] if ended else [])


def test_it_says_why() -> None:
    [action] = decide(failing(), now=NOW).actions
    assert isinstance(action, EndLauncher)
    message = "j-launcher has failed 3 times (backoffLimit 2), so it is ended"
    assert (action.note.reason, action.note.message) == ("BackoffLimitExceeded", message)
