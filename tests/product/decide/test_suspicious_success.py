"""Jobs that ended well just after a change of their host list."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.decide import decide, derive, notices
from mpijob_elastic.decide.actions import DeleteWorkers, TellUser
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Scale
from tests.builders import LONG_AGO, NOW, config, job, pods

ENDED = NOW - 30.0


def over(*, changed: float, memory: dict[str, Any] | None = None, **facts: Any) -> JobView:
    """A job of two that succeeded `ENDED`, so many seconds after it had been made smaller."""
    at = ENDED - changed
    remembered = Memory(**(memory or {"removed_at": at, "added_at": LONG_AGO}))
    facts = {"finished": True, "succeeded_at": ENDED, **facts}
    return job(2, config=config(pods(0, 1), memory=remembered), **facts)


def told(view: JobView) -> list[str]:
    return [
        note.reason for action in decide(view, now=NOW).actions if isinstance(action, TellUser) for note in action.notes
    ]


GREW = {"added_at": ENDED - 5.0, "scale": Scale(before=1, after=2, at=ENDED - 5.0)}
BEGAN = {"added_at": ENDED - 5.0, "scale": Scale(before=0, after=2, at=ENDED - 5.0)}


@pytest.mark.parametrize(
    ("view", "suspicious"),
    [
        (over(changed=5.0), True),
        (over(changed=60.0), True),
        (over(changed=61.0), False),
        (over(changed=-4.0), True),  # another clock
        (over(changed=-6.0), False),
        (over(changed=5.0, memory=GREW), True),
        (over(changed=5.0, memory=BEGAN), False),
        (over(changed=5.0, succeeded_at=None), False),
        (over(changed=5.0, elastic=False), False),
        (over(changed=5.0, deleting=True), False),
        (over(changed=5.0, foreign="another's"), False),
    ],
)
def test_an_end_soon_after_a_change_is_suspicious(view: JobView, suspicious: bool) -> None:
    assert told(view) == (["EndedAfterResize"] if suspicious else [])


def test_it_is_said_as_what_may_have_happened_and_where_to_look() -> None:
    [action] = decide(over(changed=12.0), now=NOW).actions
    assert isinstance(action, TellUser)
    assert "succeeded 12s after" in action.text
    assert "may have exited with 0" in action.text
    assert "the launcher's log" in action.text


def test_it_is_said_once_and_takes_the_place_of_what_held_before() -> None:
    view = over(changed=12.0, notices="WorkersNotReady: 1 of 2")
    action = notices.tell_suspicious_success(derive(view, now=NOW))
    assert action is not None
    assert action.text.startswith("EndedAfterResize: ")
    assert notices.tell_suspicious_success(derive(replace(view, notices=action.text), now=NOW)) is None


def test_an_old_end_is_no_news() -> None:
    view = over(changed=12.0)
    assert notices.tell_suspicious_success(derive(view, now=ENDED + notices.NEWS_FOR)) is not None
    assert notices.tell_suspicious_success(derive(view, now=ENDED + notices.NEWS_FOR + 1.0)) is None


def test_workers_are_cleaned_up_first() -> None:
    view = over(changed=5.0, replicas=1, clean_pod_policy="All")
    assert [type(action) for action in decide(view, now=NOW).actions] == [DeleteWorkers, TellUser]
