"""Jobs of another operator, and the notice on them; and edits of the list by anybody else, which are put right."""

import math
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.gangs.facts import Gang
from mpijob_elastic.decide import decide, derive
from mpijob_elastic.decide.actions import Plan
from mpijob_elastic.model import bounds
from mpijob_elastic.model.job import JobView, parse_script
from mpijob_elastic.model.memory import Memory, Mended
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import NOW, Story, config, job, launcher, pods
from tests.product.decide.plans import change, does, note, notes, removals, written
from tests.simulated_writes import apply

# As v0.3.0 writes it: no newline at the end.
THEIRS = "#!/bin/sh\necho j-worker-0:1"
FOREIGN = "its pods carry labels of an operator newer than v0.2.3"
MINUTES = 60.0
SAID = "HandedOver: x"
TWENTY = "HandedOver: x has not written to it for 20m. y"
LINGERING = launcher(LauncherPhase.LINGERING, container="main", lingering=("proxy",))
NO_LIST: dict[str, Any] = {"script": None, "published": None}


def rewritten(view: JobView, script: str | None = THEIRS, *, writer: str = "kubectl-edit") -> Story:
    """The job after somebody else wrote its discover_hosts.sh; our annotation beside it stays."""
    assert isinstance(view, Story)
    return view.configured(
        script=script, published=None if script is None else parse_script(script), writer=writer
    )


def mended(at: float, *, count: int = 1) -> Story:
    return job().remembering(mended=Mended(count=count, at=at, writer="kubectl-edit"))


def taken_over(*, ago: float, notices: str = "", script: str | None = THEIRS) -> Story:
    """The job after v0.3.0 put a ConfigMap of its own in the place of ours, so many seconds ago."""
    view = rewritten(job(), script, writer="mpi-operator.v1").configured(
        memory=None, written_at=NOW - ago
    )
    return view.but(
        foreign="it is written by mpi-operator.v1", foreign_at=NOW - ago, notices=notices
    )


def handed_over(view: Story) -> Story:
    """The job with the notice that is due on it."""
    told = apply(view, decide(view, now=NOW).actions[0], now=NOW)
    return view.but(notices=told.facts.notices)


GIVEN = handed_over(taken_over(ago=5.0))
GARBAGE = rewritten(job(), "garbage\n")


@pytest.mark.parametrize(
    ("view", "ours"),
    [
        (job(), True),
        (rewritten(job()), True),
        (rewritten(mended(NOW - 5)), True),
        (rewritten(mended(NOW - 5, count=9)), True),
        (rewritten(mended(NOW + 3600)), True),  # by another clock
        (rewritten(mended(NOW - 5).but(notices=SAID)), True),
        (job(foreign=FOREIGN), False),
        (taken_over(ago=5.0), False),
        (taken_over(ago=9 * MINUTES, notices=SAID), False),
        (taken_over(ago=10 * MINUTES, notices=SAID), True),
        (taken_over(ago=10 * MINUTES), False),  # it was never ours, or its user has yet to be told
        (taken_over(ago=19 * MINUTES, notices=TWENTY), False),
        (taken_over(ago=20 * MINUTES, notices=TWENTY), True),
        (taken_over(ago=5.0, notices=SAID, script=None), True),  # its user gave it back
        (taken_over(ago=math.inf, notices=SAID).but(foreign_at=math.inf), False),
    ],
)
def test_whose_it_is(view: JobView, ours: bool) -> None:
    assert (derive(view, now=NOW).foreign == "") is ours


@pytest.mark.parametrize(
    "script", [THEIRS, "", "garbage\n", "#!/bin/sh\necho j-worker-0:1\n", "#!/bin/sh\nexit 1\n"]
)
def test_an_edit_is_put_right_and_that_is_remembered_and_told(script: str) -> None:
    view = rewritten(job(), script)
    assert change(view).memory.mended == Mended(count=1, at=NOW, writer="kubectl-edit")
    [edited] = [note for note in notes(view) if note.reason == "HostListEdited"]
    assert "kubectl-edit" in edited.message


def test_where_the_memory_alone_was_edited_nobody_is_blamed_for_the_script() -> None:
    view = job().configured(memory=Memory(), writer="mpijob-elastic")
    assert does(view) == "remember hosts mended script (HostListEdited)"
    assert note(view).message.startswith(
        "annotation mpijob-elastic/memory of ConfigMap j-config was changed by another"
    )
    assert change(view).memory.mended == Mended(count=1, at=NOW, writer="")


def test_slots_are_those_of_the_hostfile_while_the_list_is_not_ours() -> None:
    """The driver must not see them change, and the job's own value may have been edited while it runs."""
    view = rewritten(
        job(slots=4, config=config(pods(0, 1, 2), slots=2)), "#!/bin/sh\necho j-worker-0:9\n"
    )
    assert "echo j-worker-0:2\n" in change(view).script


def test_edits_are_forgiven_after_ten_minutes_and_the_notice_goes() -> None:
    contested = mended(NOW - 599, count=5)
    assert does(contested) == "say HostListContested; wake 1"
    said = handed_over(contested)
    assert does(said) == "wake 1"
    assert does(said, now=NOW + 1) == "say nothing more"
    assert change(rewritten(mended(NOW - 600, count=5))).memory.mended.count == 1


def test_a_writer_that_drops_our_memory_cannot_be_counted_and_waits_a_little() -> None:
    view = GARBAGE.configured(memory=None, written_at=NOW - 1)
    assert does(view) == "wake 4"
    assert does(view, now=NOW + 4) == "publish 0 1 2 (HostsPublished)"
    ahead = GARBAGE.configured(memory=None, written_at=NOW + 3600)
    assert does(ahead) == "publish 0 1 2 (HostsPublished)", "its clock is ahead"


@pytest.mark.parametrize("view", [taken_over(ago=5.0), job(foreign=FOREIGN)])
def test_it_is_said_once_and_nothing_else_is_written(view: Story) -> None:
    assert does(view, but="wake") == "say HandedOver"
    said = note(view)
    assert (said.reason, said.warning) == ("HandedOver", True)
    assert "j is no longer managed by mpijob-elastic" in said.message
    told = handed_over(view)
    assert told.facts.notices == said.line
    assert does(told, but="wake") == "nothing"
    assert does(told.but(foreign="another sign"), but="wake") == "nothing"


def test_a_job_of_elastic_sh_is_told_that_its_script_goes() -> None:
    view = job(foreign=FOREIGN)
    words = "the running launcher learns of no other size, and a new one does not start"
    assert words not in note(view).message
    mpi = view.but(launcher=launcher(mounts_elastic=True), names_elastic=True)
    assert words in note(mpi).message


def test_workers_that_nobody_removes_are_named() -> None:
    assert (
        "Delete j-worker-2, j-worker-1 yourself" in note(job(foreign=FOREIGN, replicas=1)).message
    )


def test_it_is_tried_after_ten_silent_minutes_and_the_next_wait_is_written_down_first() -> None:
    assert "has not written to it for 10m." in GIVEN.facts.notices
    assert does(GIVEN) == "wake 595"
    assert does(GIVEN, now=NOW + 595) == "say HandedOver; publish 0 1 2 (HostsPublished)"
    assert [told.reason for told in notes(GIVEN, now=NOW + 595)] == ["HostsPublished"]
    assert "has not written to it for 20m." in tried(at=NOW + 595).facts.notices


def tried(*, at: float) -> JobView:
    """The job after we put our list in the place of theirs."""
    view: JobView = GIVEN
    for action in decide(view, now=at).actions:
        view = apply(view, action, now=at)
    return view


TRIED_AT = NOW + 600.0


def test_it_is_ours_once_our_list_has_stayed_for_a_minute() -> None:
    view = tried(at=TRIED_AT)
    assert decide(view, now=TRIED_AT) == Plan(wake_at=TRIED_AT + 60.0)
    assert does(view, now=TRIED_AT + 60.0) == "touch; say nothing more"
    assert [told.reason for told in notes(view, now=TRIED_AT + 60.0)] == ["TakenBack"]


def test_the_longest_wait_is_a_day() -> None:
    longest = "has not written to it for 24h."
    view = handed_over(taken_over(ago=30 * 3600.0, notices=f"HandedOver: x {longest} y"))
    assert longest in view.facts.notices
    assert view.facts.notices != f"HandedOver: x {longest} y"


def test_it_is_ours_again_at_once_when_the_key_is_deleted() -> None:
    view = GIVEN.configured(**NO_LIST)
    assert does(view) == "publish 0 1 2 (HostsPublished)"
    after = view.but(foreign="", config=config(pods(0, 1, 2), memory=change(view).memory))
    assert does(after) == "touch; say nothing more"


CONTESTED = mended(NOW - 1, count=9).but(replicas=4, launcher=launcher(refreshed="another@1"))
THEIRS_NOW: dict[str, Any] = {"foreign": FOREIGN}
# What is over needs no list, so a notice on its end would take turns with the notice HandedOver.
OVER: dict[str, dict[str, Any]] = {
    "its driver has ended": {"launcher": LINGERING},
    "it has succeeded": {"finished": True, "succeeded_at": NOW + 1e5},
}


@pytest.mark.parametrize(
    ("view", "now", "plan"),
    [
        pytest.param(
            GARBAGE, NOW, "publish 0 1 2 (HostListEdited HostsPublished)", id="the first edit"
        ),
        *(
            pytest.param(
                rewritten(mended(NOW, count=count)), NOW, plan, id=f"another after {count}"
            )
            for count, plan in (
                (1, "publish 0 1 2 (HostListEdited HostsPublished)"),
                (3, "say HostListContested; wake 2"),
                (4, "say HostListContested; wake 4"),
            )
        ),
        pytest.param(
            rewritten(CONTESTED),
            NOW,
            "allow 0 1 2 3; say HostListContested; wake 119",
            id="only the Role meanwhile",
        ),
        # Never ours, or over.
        pytest.param(job(**THEIRS_NOW, config=None), NOW, "nothing", id="no ConfigMap"),
        pytest.param(
            job(**THEIRS_NOW, launcher=None, config=None), NOW, "nothing", id="no launcher"
        ),
        pytest.param(job(**THEIRS_NOW, finished=True), NOW, "nothing", id="finished"),
        pytest.param(job(**THEIRS_NOW, deleting=True), NOW, "nothing", id="deleted"),
        pytest.param(job(**THEIRS_NOW, reported=False), NOW, "nothing", id="not reported"),
        # Until our list can be tried a silent operator is left alone.
        pytest.param(
            GIVEN.but(role=None, gang=Gang(scheduler="volcano"), serves_gangs=True),
            NOW + 1e5,
            "nothing",
            id="no Role",
        ),
        pytest.param(
            GIVEN.but(finished=True, clean_pod_policy="All", replicas=1),
            NOW + 1e5,
            "nothing",
            id="ended elsewhere",
        ),
        *(
            pytest.param(GIVEN.but(**over), NOW + 1e5, "nothing", id=f"not taken back: {what}")
            for what, over in OVER.items()
        ),
        *(
            pytest.param(
                GIVEN.but(**over).configured(**NO_LIST), NOW, "nothing", id=f"given back: {what}"
            )
            for what, over in OVER.items()
        ),
        pytest.param(
            GIVEN.but(**OVER["its driver has ended"], suspended_by="annotation"),
            NOW + 600,
            "say HandedOver; publish 0 1 2 (HostsPublished)",
            id="to be suspended, although its driver has ended",
        ),
        pytest.param(
            GIVEN.launched(failures=2).but(backoff_limit=1),
            NOW + 600,
            "say HandedOver; publish 0 1 2 (HostsPublished)",
            id="its launcher is not ended before the job is ours again",
        ),
        pytest.param(
            taken_over(ago=-601.0, notices=tried(at=TRIED_AT).facts.notices),
            TRIED_AT + 2,
            "wake 1199",
            id="an operator that lives is left alone for twice as long",
        ),
        pytest.param(
            rewritten(tried(at=TRIED_AT), "garbage\n"),
            TRIED_AT + 5,
            "publish 0 1 2 (HostListEdited HostsPublished)",
            id="garbage after our try",
        ),
        # A notice that goes and comes would be two writes in each round.
        pytest.param(
            GIVEN.configured(**NO_LIST).without(0, 1, 2),
            NOW,
            "nothing",
            id="given back, nobody to be listed",
        ),
        pytest.param(
            handed_over(job(foreign="its objects belong to kubeflow.org/v2beta1")),
            NOW,
            "nothing",
            id="for ever theirs",
        ),
    ],
)
def test_what_is_done(view: JobView, now: float, plan: str) -> None:
    assert does(view, now=now) == plan


def test_an_edit_stays_remembered_with_the_next_list() -> None:
    assert change(mended(NOW - 30).but(replicas=2)).memory.mended == mended(NOW - 30).memory.mended


CUT = (names.MEMORY, names.KEY_HOSTFILE)


def test_nobody_is_deleted_because_of_a_memory_that_was_not_read() -> None:
    drained = job(2).shrunk(from_=3, ago=20.0).drained(2)
    assert removals(drained)
    unread = drained.configured(memory=None, cut=CUT, written_at=NOW - 60.0)
    assert not removals(unread)
    assert [note.reason for note in change(unread).notes] == ["ConfigTooLarge"]
    again = apply(unread, change(unread), now=NOW)
    assert again.memory.left["j-worker-2"].at == NOW, "it drains from the beginning"
    assert not removals(again)


def test_a_list_that_was_not_read_is_put_right_by_what_runs_and_keeps_its_slots() -> None:
    large = names.hostfile(["j-worker-0"] * 1_000, slots=4)
    unread = job(3).configured(script="x", published=None, hostfile=bounds.cut(large), cut=CUT)
    assert change(unread).script == names.discover_hosts([*pods(0, 1, 2)], slots=4)
    assert not removals(unread)


def test_the_files_of_a_job_that_is_not_elastic_stay_where_they_were_not_read() -> None:
    plain = job(3, elastic=False).configured(script=None, published=None, hostfile="x", cut=CUT)
    assert written(plain) is None
    assert note(plain).reason == "ConfigTooLarge"
    assert "hostfile" in note(plain).message
