"""What the user is told when nothing happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpijob_elastic.decide import notices
from mpijob_elastic.model.job import JobView, LauncherPhase
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.policy import Policy, Problem
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, pending, pods, worker

BLIND = launcher(mounts_discovery=False)
GAVE_UP = config(pods(0, 1, 2), memory=Memory(launchers=Tries(count=4, at=NOW, uid="u")))
LATE = (worker(0), worker(1), pending(2, created_at=LONG_AGO))


@pytest.mark.parametrize(
    ("view", "reasons"),
    [
        (job(), []),
        (job(replicas=2), []),
        (job(problems=(Problem(field="f", value="v", allowed="a"),)), ["InvalidAnnotation"]),
        (job(launcher=BLIND), ["LauncherWithoutDiscovery"]),
        (job(launcher=BLIND, elastic=False), []),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False)), []),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False), config=GAVE_UP), ["AdmissionMissed"]),
        (job(launcher=BLIND, config=GAVE_UP), ["LauncherWithoutDiscovery"]),
        # Somebody mended the webhook, and the launcher that waits now is well.
        (job(launcher=launcher(LauncherPhase.WAITING), config=GAVE_UP), []),
        (job(elastic=False, replicas=2), ["NotElastic"]),
        (job(elastic=False, replicas=2, workers=(worker(0), worker(1), worker(2, deleting=True))), []),
        (job(slots=4), ["SlotsUnchanged"]),
        (job(slots=4, launcher=None), []),
        (job(slots=4, config=config([])), []),
        (job(workers=LATE), ["WorkersNotReady"]),
        (job(workers=LATE, launcher=None), []),
        (job(workers=LATE, elastic=False), []),
        (job(workers=(worker(0), worker(1), failed(2))), []),
    ],
)
def test_what_is_said(view: JobView, reasons: list[str]) -> None:
    told, _ = notices.tell(view, now=NOW)
    assert [note.reason for note in told.notes] == reasons if told else reasons == []
    assert told is None or [line.partition(":")[0] for line in told.text.splitlines()] == reasons


def test_what_was_said_is_not_said_again_and_goes_when_it_is_over() -> None:
    view = job(launcher=BLIND)
    told, _ = notices.tell(view, now=NOW)
    assert told is not None
    said = replace(view, notices=told.text)
    assert notices.tell(said, now=NOW) == (None, None)
    more, _ = notices.tell(replace(said, slots=4), now=NOW)
    assert more is not None
    assert [note.reason for note in more.notes] == ["SlotsUnchanged"]
    over, _ = notices.tell(replace(job(), notices=told.text), now=NOW)
    assert over is not None
    assert (over.text, over.notes) == ("", ())


def test_a_value_of_several_lines_is_still_one_line_that_is_said_once() -> None:
    view = job(problems=(Problem(field="f", value="a\nb\u2028c", allowed="x"),))
    told, _ = notices.tell(view, now=NOW)
    assert told is not None
    assert len(told.text.splitlines()) == 1
    again, _ = notices.tell(replace(view, notices=told.text, slots=4), now=NOW)
    assert again is not None
    assert [note.reason for note in again.notes] == ["SlotsUnchanged"]


def test_a_worker_that_is_late_wakes_us_when_that_is_worth_a_word() -> None:
    view = job(workers=(worker(0), pending(1, created_at=NOW - 20), pending(2, created_at=NOW - 10)))
    assert notices.tell(view, now=NOW) == (None, NOW + 100)


def test_the_way_out_is_named_and_whether_workers_go() -> None:
    kept, _ = notices.tell(job(launcher=BLIND), now=NOW)
    asked, _ = notices.tell(job(launcher=BLIND, policy=Policy(delete_without_discovery=True)), now=NOW)
    assert kept is not None
    assert asked is not None
    assert "delete j-launcher" in kept.text
    assert "not deleted on a scale-in" in kept.text
    assert "not deleted on a scale-in" not in asked.text
