"""Jobs of another operator, and the notice on them."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Plan, TellUser, WriteConfig
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory
from tests.builders import NOW, config, job, launcher, pods

# As v0.3.0 writes it: no newline at the end.
THEIRS = "#!/bin/sh\necho j-worker-0:1"
FOREIGN = "its pods carry labels of an operator newer than v0.2.3"


def rewritten(view: JobView, script: str | None = THEIRS) -> JobView:
    """The job after somebody else wrote its discover_hosts.sh; our annotation beside it stays."""
    assert view.config is not None
    published = None if script is None else parse_script(script)
    return replace(view, config=replace(view.config, script=script, published=published))


def mended(at: float) -> JobView:
    return job(config=config(pods(0, 1, 2), memory=Memory(mended_at=at)))


def told(view: JobView) -> TellUser | None:
    [action] = decide(view, now=NOW).actions or (None,)
    assert action is None or isinstance(action, TellUser)
    return action


@pytest.mark.parametrize(
    ("view", "ours"),
    [
        (job(), True),
        (rewritten(job()), True),
        (rewritten(mended(NOW - 601)), True),
        (rewritten(mended(NOW + 3600)), False),  # by another clock
        (mended(NOW - 5), True),
        (replace(rewritten(mended(NOW - 5)), finished=True), True),  # no list is written any more
        (rewritten(mended(NOW - 5), None), True),
        (rewritten(mended(NOW - 5)), False),
        (rewritten(mended(NOW - 599)), False),
        # What was said stays true for as long as the script is somebody else's.
        (replace(rewritten(mended(NOW - 86_400)), notices="HandedOver: x"), False),
        (replace(mended(NOW - 86_400), notices="HandedOver: x"), True),
        (job(foreign=FOREIGN), False),
    ],
)
def test_whose_it_is(view: JobView, ours: bool) -> None:
    assert (derive(view, now=NOW).foreign == "") is ours


def test_a_list_that_somebody_wrote_is_mended_once_and_that_is_remembered() -> None:
    writes = [action for action in decide(rewritten(job()), now=NOW).actions if isinstance(action, WriteConfig)]
    [write] = writes
    assert write.memory.mended_at == NOW
    assert write.script == config(pods(0, 1, 2)).script


def test_it_stays_remembered_with_the_next_list() -> None:
    [write] = [
        action
        for action in decide(replace(mended(NOW - 30), replicas=2), now=NOW).actions
        if isinstance(action, WriteConfig)
    ]
    assert write.memory.mended_at == NOW - 30


@pytest.mark.parametrize("view", [rewritten(mended(NOW - 5)), job(foreign=FOREIGN)])
def test_it_is_said_once_and_nothing_else_is_written(view: JobView) -> None:
    action = told(view)
    assert action is not None
    [note] = action.notes
    assert (note.reason, note.warning) == ("HandedOver", True)
    assert action.text == f"HandedOver: {note.message}"
    assert "j is no longer managed by mpijob-elastic" in note.message
    said = replace(view, notices=action.text)
    assert decide(said, now=NOW) == Plan()
    assert decide(replace(said, foreign="another sign"), now=NOW) == Plan()


def test_workers_that_nobody_removes_are_named() -> None:
    action = told(job(foreign=FOREIGN, replicas=1))
    assert action is not None
    assert "Delete j-worker-2, j-worker-1 yourself" in action.text


@pytest.mark.parametrize(
    "view",
    [
        job(foreign=FOREIGN, launcher=launcher(), config=None),  # never ours
        job(foreign=FOREIGN, launcher=None, config=None),
        job(foreign=FOREIGN, finished=True),
        job(foreign=FOREIGN, deleting=True),
        job(foreign=FOREIGN, reported=False),
    ],
)
def test_nothing_is_said_on_a_job_that_was_never_ours_or_is_over(view: JobView) -> None:
    assert told(view) is None


def test_it_is_ours_again_once_the_key_is_gone() -> None:
    view = replace(rewritten(mended(NOW - 5), None), notices="HandedOver: x")
    [write] = [action for action in decide(view, now=NOW).actions if isinstance(action, WriteConfig)]
    after = replace(view, config=config(pods(0, 1, 2), memory=write.memory))
    gone = [action for action in decide(after, now=NOW).actions if isinstance(action, TellUser)]
    assert [action.text for action in gone] == [""]
