"""Jobs of another operator, and the notice on them; and edits of the list by anybody else, which are put right."""

import math
from dataclasses import replace

import msgspec
import pytest

from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Plan, TellUser, WriteConfig, WriteRole
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.hosts import parse_script
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Memory, Mended
from tests.builders import NOW, config, job, launcher, pods
from tests.simulated_writes import apply

# As v0.3.0 writes it: no newline at the end.
THEIRS = "#!/bin/sh\necho j-worker-0:1"
FOREIGN = "its pods carry labels of an operator newer than v0.2.3"
MINUTES = 60.0


def rewritten(view: JobView, script: str | None = THEIRS, *, writer: str = "kubectl-edit") -> JobView:
    """The job after somebody else wrote its discover_hosts.sh; our annotation beside it stays."""
    assert view.config is not None
    published = None if script is None else parse_script(script)
    return replace(view, config=replace(view.config, script=script, published=published, writer=writer))


def mended(at: float, *, count: int = 1) -> JobView:
    memory = Memory(mended=Mended(count=count, at=at, writer="kubectl-edit"))
    return job(config=config(pods(0, 1, 2), memory=memory))


def taken_over(*, ago: float, notices: str = "", script: str | None = THEIRS) -> JobView:
    """The job after v0.3.0 put a ConfigMap of its own in the place of ours, so many seconds ago."""
    view = rewritten(job(), script, writer="mpi-operator.v1")
    assert view.config is not None
    taken = replace(view.config, memory=None, written_at=NOW - ago)
    return replace(
        view, config=taken, foreign="it is written by mpi-operator.v1", foreign_at=NOW - ago, notices=notices
    )


def told(view: JobView, *, now: float = NOW) -> TellUser | None:
    [action] = decide(view, now=now).actions or (None,)
    assert action is None or isinstance(action, TellUser)
    return action


def write(view: JobView, *, now: float = NOW) -> WriteConfig:
    [found] = [action for action in decide(view, now=now).actions if isinstance(action, WriteConfig)]
    return found


def handed_over(view: JobView) -> JobView:
    notice = told(view)
    assert notice is not None
    return replace(view, notices=notice.text)


@pytest.mark.parametrize(
    ("view", "ours"),
    [
        (job(), True),
        (rewritten(job()), True),
        (rewritten(mended(NOW - 5)), True),
        (rewritten(mended(NOW - 5, count=9)), True),
        (rewritten(mended(NOW + 3600)), True),  # by another clock
        (rewritten(replace(mended(NOW - 5), notices="HandedOver: x")), True),
        (job(foreign=FOREIGN), False),
        (taken_over(ago=5.0), False),
        (taken_over(ago=9 * MINUTES, notices="HandedOver: x"), False),
        (taken_over(ago=10 * MINUTES, notices="HandedOver: x"), True),
        (taken_over(ago=10 * MINUTES), False),  # it was never ours, or its user has yet to be told
        (taken_over(ago=19 * MINUTES, notices="HandedOver: x has not written to it for 20m. y"), False),
        (taken_over(ago=20 * MINUTES, notices="HandedOver: x has not written to it for 20m. y"), True),
        (taken_over(ago=5.0, notices="HandedOver: x", script=None), True),  # its user gave it back
        (replace(taken_over(ago=math.inf, notices="HandedOver: x"), foreign_at=math.inf), False),
    ],
)
def test_whose_it_is(view: JobView, ours: bool) -> None:
    assert (derive(view, now=NOW).foreign == "") is ours


@pytest.mark.parametrize("script", [THEIRS, "", "garbage\n", "#!/bin/sh\necho j-worker-0:1\n", "#!/bin/sh\nexit 1\n"])
def test_an_edit_is_put_right_and_that_is_remembered_and_told(script: str) -> None:
    found = write(rewritten(job(), script))
    assert found.memory.mended == Mended(count=1, at=NOW, writer="kubectl-edit")
    [note] = [note for note in found.notes if note.reason == "HostListEdited"]
    assert "kubectl-edit" in note.message


def test_where_the_memory_alone_was_edited_nobody_is_blamed_for_the_script() -> None:
    view = job()
    assert view.config is not None
    found = write(replace(view, config=replace(view.config, memory=Memory(), writer="mpijob-elastic")))
    [note] = [note for note in found.notes if note.reason == "HostListEdited"]
    assert note.message.startswith("annotation mpijob-elastic/memory of ConfigMap j-config was changed by another")
    assert found.memory.mended == Mended(count=1, at=NOW, writer="")


def put_right(view: JobView, *, now: float) -> tuple[JobView, float]:
    """The job after its list was written again, and the time of that."""
    while True:
        plan = decide(view, now=now)
        for action in plan.actions:
            view = apply(view, action, now=now)
        if any(isinstance(action, WriteConfig) for action in plan.actions):
            return view, now
        if not plan.actions:
            assert plan.wake_at is not None
            now = plan.wake_at


@pytest.mark.parametrize("edits", [2, 3, 5])
def test_so_are_several_edits_within_ten_minutes(edits: int) -> None:
    view: JobView = job()
    now = NOW
    for count in range(1, edits + 1):
        edited_at = now
        view, now = put_right(rewritten(view, "garbage\n"), now=now)
        assert now - edited_at <= 4.0
        assert not derive(view, now=now).edited
        assert view.memory.mended == Mended(count=count, at=now, writer="kubectl-edit")
        now += 0.1


def test_slots_are_those_of_the_hostfile_while_the_list_is_not_ours() -> None:
    """The driver must not see them change, and the job's own value may have been edited while it runs."""
    view = rewritten(job(slots=4, config=config(pods(0, 1, 2), slots=2)), "#!/bin/sh\necho j-worker-0:9\n")
    assert "echo j-worker-0:2\n" in write(view).script


def test_two_programs_that_never_tire_write_ever_more_seldom() -> None:
    view: JobView = job()
    times = [NOW]
    while times[-1] < NOW + 3600.0:
        view, now = put_right(rewritten(view), now=times[-1])
        times.append(now)
    assert len(times) <= 24
    assert times[-1] - times[-2] == pytest.approx(300.0)
    assert view.notices.startswith("HostListContested: kubectl-edit keeps changing")


def test_nothing_but_the_role_is_written_while_an_edit_has_to_wait() -> None:
    view = rewritten(replace(mended(NOW - 1, count=9), replicas=4, launcher=launcher(refreshed="another@1")))
    plan = decide(view, now=NOW)
    assert {type(action) for action in plan.actions} <= {WriteRole, TellUser}
    assert plan.wake_at == NOW - 1 + 120.0


def test_edits_are_forgiven_after_ten_minutes_and_the_notice_goes() -> None:
    contested = mended(NOW - 599, count=5)
    notice = told(contested)
    assert notice is not None
    assert notice.text.startswith("HostListContested:")
    said = replace(contested, notices=notice.text)
    assert decide(said, now=NOW).wake_at == NOW + 1
    gone = told(said, now=NOW + 1)
    assert gone is not None
    assert gone.text == ""
    again = write(rewritten(mended(NOW - 600, count=5)))
    assert again.memory.mended is not None
    assert again.memory.mended.count == 1


def test_a_writer_that_drops_our_memory_cannot_be_counted_and_waits_a_little() -> None:
    view = rewritten(job(), "garbage\n")
    assert view.config is not None
    view = replace(view, config=replace(view.config, memory=None, written_at=NOW - 1))
    plan = decide(view, now=NOW)
    assert plan.actions == ()
    assert plan.wake_at == NOW + 4
    assert write(view, now=NOW + 4)


def test_it_waits_for_no_time_of_a_clock_that_is_ahead_of_ours() -> None:
    view = rewritten(job(), "garbage\n")
    assert view.config is not None
    assert write(replace(view, config=replace(view.config, memory=None, written_at=NOW + 3600)))


def test_it_stays_remembered_with_the_next_list() -> None:
    assert write(replace(mended(NOW - 30), replicas=2)).memory.mended == mended(NOW - 30).memory.mended


@pytest.mark.parametrize("view", [taken_over(ago=5.0), job(foreign=FOREIGN)])
def test_it_is_said_once_and_nothing_else_is_written(view: JobView) -> None:
    action = told(view)
    assert action is not None
    [note] = action.notes
    assert (note.reason, note.warning) == ("HandedOver", True)
    assert action.text == f"HandedOver: {note.message}"
    assert "j is no longer managed by mpijob-elastic" in note.message
    said = replace(view, notices=action.text)
    assert decide(said, now=NOW).actions == ()
    assert decide(replace(said, foreign="another sign"), now=NOW).actions == ()


def test_objects_that_stay_another_operators_are_never_taken_back() -> None:
    view = handed_over(job(foreign="its objects belong to kubeflow.org/v2beta1"))
    assert "managed again when these are gone" in view.notices
    assert decide(view, now=NOW) == Plan()


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
    assert decide(view, now=NOW).wake_at is None


def test_it_is_tried_after_ten_silent_minutes_and_the_next_wait_is_written_down_first() -> None:
    view = handed_over(taken_over(ago=5.0))
    assert "has not written to it for 10m." in view.notices
    due = decide(view, now=NOW).wake_at
    assert due == NOW - 5.0 + 600.0
    notice, ours = decide(view, now=due).actions
    assert isinstance(notice, TellUser)
    assert "has not written to it for 20m." in notice.text
    assert notice.notes == ()
    assert isinstance(ours, WriteConfig)
    assert parse_script(ours.script) is not None


def test_a_silent_operator_whose_objects_are_incomplete_is_left_alone_until_our_list_can_be_tried() -> None:
    asks = Gang(scheduler="volcano", queue="", priority_class="")
    view = replace(handed_over(taken_over(ago=5.0)), role=None, gang=asks, serves_gangs=True)
    assert decide(view, now=NOW + 86_400.0) == Plan()


def test_its_launcher_is_not_ended_before_the_job_is_ours_again() -> None:
    failing = replace(launcher(), failures=2)
    view = replace(handed_over(taken_over(ago=5.0)), launcher=failing, backoff_limit=1)
    found = {type(action) for action in decide(view, now=NOW + 600.0).actions}
    assert found == {TellUser, WriteConfig}


def test_a_job_that_ended_under_another_operator_is_left_alone_however_silent_that_is() -> None:
    view = replace(handed_over(taken_over(ago=5.0)), finished=True, clean_pod_policy="All", replicas=1)
    assert decide(view, now=NOW + 86_400.0) == Plan()


def tried(*, at: float) -> JobView:
    """The job after we put our list in the place of theirs."""
    view = handed_over(taken_over(ago=5.0))
    for action in decide(view, now=at).actions:
        view = apply(view, action, now=at)
    return view


def test_it_is_ours_once_our_list_has_stayed_for_a_minute() -> None:
    at = NOW + 600.0
    view = tried(at=at)
    assert decide(view, now=at) == Plan(wake_at=at + 60.0)
    notice = next(action for action in decide(view, now=at + 60.0).actions if isinstance(action, TellUser))
    assert notice.text == ""
    assert [note.reason for note in notice.notes] == ["TakenBack"]


def test_an_operator_that_lives_replaces_it_at_once_and_is_left_alone_for_twice_as_long() -> None:
    at = NOW + 600.0
    again = taken_over(ago=-601.0, notices=tried(at=at).notices)
    assert decide(again, now=at + 2.0) == Plan(wake_at=NOW + 601.0 + 1200.0)


def test_the_longest_wait_is_a_day() -> None:
    view = taken_over(ago=30 * 3600.0, notices="HandedOver: x has not written to it for 24h. y")
    notice, _ = decide(view, now=NOW).actions
    assert isinstance(notice, TellUser)
    assert "has not written to it for 24h." in notice.text


def test_garbage_during_that_minute_is_put_right() -> None:
    at = NOW + 600.0
    assert write(rewritten(tried(at=at), "garbage\n"), now=at + 5.0)


def test_it_is_ours_again_at_once_when_the_key_is_deleted() -> None:
    view = handed_over(taken_over(ago=5.0))
    assert view.config is not None
    view = replace(view, config=replace(view.config, script=None, published=None))
    ours = write(view)
    after = replace(view, foreign="", config=config(pods(0, 1, 2), memory=msgspec.structs.replace(ours.memory)))
    gone = [action for action in decide(after, now=NOW).actions if isinstance(action, TellUser)]
    assert [action.text for action in gone] == [""]


def test_until_a_worker_can_be_listed_a_job_that_was_given_back_keeps_its_notice() -> None:
    """A notice that goes and comes would be two writes in each round."""
    view = handed_over(taken_over(ago=5.0))
    assert view.config is not None
    view = replace(view, workers=(), config=replace(view.config, script=None, published=None))
    assert decide(view, now=NOW) == Plan()
