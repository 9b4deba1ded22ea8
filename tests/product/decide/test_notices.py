"""Notices to the user when nothing happens."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import decide, derive, notices
from mpijob_elastic.decide.actions import TellUser
from mpijob_elastic.model.job import JobView, LauncherPhase, Refusal
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.policy import Policy, Problem
from tests.builders import LONG_AGO, NOW, config, failed, job, launcher, pending, pods, worker


def refusal(times: int, *, reason: str = "denied") -> Refusal:
    """So many touches in a row that were refused."""
    return Refusal(change="", tries=Tries(count=times, at=NOW, uid="u"), reason=reason)


BLIND = launcher(mounts_discovery=False)
PLAIN = launcher(mounts_discovery=False, names_discovery=False)
GAVE_UP = config(pods(0, 1, 2), memory=Memory(launchers=Tries(count=4, at=NOW, uid="u")))
FAILED_OFTEN = Tries(count=8, at=NOW - 1, uid="uid-of-j-worker-1")
LOST_OFTEN = Tries(count=6, at=NOW - 1, uid="uid-of-j-worker-1")
PROBLEM = Problem(field="f", value="v", allowed="a")
LATE = (worker(0), worker(1), pending(2, created_at=LONG_AGO))


@pytest.mark.parametrize(
    ("view", "reasons"),
    [
        (job(), []),
        (job(replicas=2), []),
        (job(problems=(PROBLEM,)), ["InvalidAnnotation"]),
        (job(launcher=BLIND), ["LauncherWithoutDiscovery"]),
        (job(launcher=BLIND, elastic=False), []),
        # Made smaller as a plain job; then an annotation, or the template, asked for elasticity.
        (job(launcher=PLAIN, replicas=2), ["LauncherWithoutDiscovery"]),
        (job(launcher=PLAIN, replicas=2, spec_elastic=False), ["NotElastic"]),
        # The other way round: a new template for the next launcher, while the driver that runs is elastic.
        (job(replicas=2, spec_elastic=False), []),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False)), []),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False), config=GAVE_UP), ["AdmissionMissed"]),
        (job(launcher=BLIND, config=GAVE_UP), ["LauncherWithoutDiscovery"]),
        # Somebody mended the webhook, and the launcher that waits now is well.
        (job(launcher=launcher(LauncherPhase.WAITING), config=GAVE_UP), []),
        (job(elastic=False, replicas=2), ["NotElastic"]),
        (job(elastic=False, replicas=2, workers=(worker(0), worker(1), worker(2, deleting=True))), []),
        (job(known=False, launcher=launcher(refused=refusal(1))), []),
        (job(known=False, launcher=launcher(refused=refusal(2))), ["RefreshRefused"]),
        (job(launcher=launcher(refused=refusal(2))), []),
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
    told, _ = notices.tell(derive(view, now=NOW))
    assert [note.reason for note in told.notes] == reasons if told else reasons == []
    assert told is None or [line.partition(":")[0] for line in told.text.splitlines()] == reasons


def test_what_was_said_is_not_said_again_and_goes_when_it_is_over() -> None:
    view = job(launcher=BLIND)
    told, _ = notices.tell(derive(view, now=NOW))
    assert told is not None
    said = replace(view, notices=told.text)
    assert notices.tell(derive(said, now=NOW)) == (None, None)
    more, _ = notices.tell(derive(replace(said, problems=(PROBLEM,)), now=NOW))
    assert more is not None
    assert [note.reason for note in more.notes] == ["InvalidAnnotation"]
    over, _ = notices.tell(derive(replace(job(), notices=told.text), now=NOW))
    assert over is not None
    assert (over.text, over.notes) == ("", ())


def test_a_value_of_several_lines_is_still_one_line_that_is_said_once() -> None:
    view = job(problems=(Problem(field="f", value="a\nb\u2028c", allowed="x"),))
    told, _ = notices.tell(derive(view, now=NOW))
    assert told is not None
    assert len(told.text.splitlines()) == 1
    again, _ = notices.tell(derive(replace(view, notices=told.text, slots=4), now=NOW))
    assert again is not None
    assert [note.reason for note in again.notes] == ["SlotsUnchanged"]


def test_a_worker_that_is_late_wakes_us_when_that_is_worth_a_word() -> None:
    view = job(workers=(worker(0), pending(1, created_at=NOW - 20), pending(2, created_at=NOW - 10)))
    assert notices.tell(derive(view, now=NOW)) == (None, NOW + 100)


def test_the_way_out_is_named_and_whether_workers_go() -> None:
    kept, _ = notices.tell(derive(job(launcher=BLIND), now=NOW))
    asked, _ = notices.tell(derive(job(launcher=BLIND, policy=Policy(delete_without_discovery=True)), now=NOW))
    assert kept is not None
    assert asked is not None
    assert "upgrade adopt j -n default" in kept.text
    assert "not deleted on a scale-in" in kept.text
    assert "not deleted on a scale-in" not in asked.text


def test_a_pod_that_never_goes_is_told_with_the_commands_that_help() -> None:
    stuck = worker(1, created_at=NOW, deleting=True, ends_at=NOW - 60, node="gpu-7")
    told, _ = notices.tell(derive(job(workers=(worker(0), stuck, worker(2))), now=NOW))
    assert told is not None
    assert [note.reason for note in told.notes] == ["PodStuckTerminating"]
    assert "kubectl -n default delete pod j-worker-1 --grace-period=0 --force" in told.text
    assert "kubectl delete node gpu-7" in told.text


def test_a_pod_that_has_time_left_to_end_is_waited_for() -> None:
    going = worker(1, created_at=NOW, deleting=True, ends_at=NOW - 59)
    assert notices.tell(derive(job(workers=(worker(0), going, worker(2))), now=NOW)) == (None, NOW + 1)
    # Nobody waits for a worker that is too many.
    surplus = worker(3, deleting=True, ends_at=NOW - 600)
    assert notices.tell(derive(job(workers=(*job().workers, surplus)), now=NOW)) == (None, None)


def test_all_pods_of_a_lost_node_are_one_word() -> None:
    lost = [worker(index, created_at=NOW, deleting=True, ends_at=NOW - 70, node="gpu-7") for index in range(2, 20)]
    gone = launcher(deleting=True, ends_at=NOW - 70, node="gpu-7")
    told, _ = notices.tell(derive(job(20, workers=(worker(0), worker(1), *lost), launcher=gone), now=NOW))
    assert told is not None
    [note] = told.notes
    assert note.message.startswith("j-launcher, j-worker-2, j-worker-3")
    assert "j-worker-8 and 11 more stuck in deletion" in note.message
    assert note.message.endswith("`kubectl delete node gpu-7` frees all its pods")


@pytest.mark.parametrize(
    ("view", "word"),
    [
        (
            job(
                workers=(worker(0), failed(1, last_state="Failed; Evicted"), worker(2)),
                config=config(pods(0, 2), memory=Memory(replaced={pods(1)[0]: FAILED_OFTEN})),
            ),
            "failed 8 times (last: Failed; Evicted)",
        ),
        (
            job(config=config(pods(0, 1, 2), memory=Memory(renamed={pods(1)[0]: LOST_OFTEN}))),
            "lost its rank 6 times",
        ),
    ],
)
def test_a_worker_that_is_given_up_is_told(view: JobView, word: str) -> None:
    told, _ = notices.tell(derive(view, now=NOW))
    assert told is not None
    assert [note.reason for note in told.notes] == ["WorkerGivenUp"]
    assert word in told.text
    assert "kubectl -n default delete pod j-worker-1" in told.text


@pytest.mark.parametrize(
    ("view", "remedy"),
    [
        (
            job(replicas=2, launcher=PLAIN, spec_elastic=False),
            "edit the job, then type `mpijob-elastic upgrade adopt j -n default`",
        ),
        (job(replicas=2, elastic=False), 'remove its annotation mpijob-elastic/enabled="false"'),
        (job(replicas=2, launcher=PLAIN), "new launcher: `mpijob-elastic upgrade adopt j -n default`"),
    ],
)
def test_a_notice_recommends_no_edit_that_the_driver_cannot_follow(view: JobView, remedy: str) -> None:
    told, _ = notices.tell(derive(view, now=NOW))
    assert told is not None
    assert remedy in told.text
    assert 'enabled="true"' not in told.text


def test_a_refused_touch_is_told_with_its_reason_cut_short_and_who_to_exempt() -> None:
    reason = "admission webhook denied:\n" + "x" * 5000
    told, _ = notices.tell(derive(job(known=False, launcher=launcher(refused=refusal(2, reason=reason))), now=NOW))
    assert told is not None
    assert "(admission webhook denied: xxx" in told.text
    assert "system:serviceaccount:mpijob-elastic:mpijob-elastic-controller" in told.text
    assert len(told.text) < 1000


def seen_for(seconds: float, view: JobView) -> JobView:
    """The job in which this process has seen the missing pods missing for so long."""
    return replace(view, drains_seen={(pod, 0.0): seconds for pod in view.missing})


FEW = job(4, workers=(worker(0), worker(1)), config=config(pods(0, 1)))


@pytest.mark.parametrize(
    ("view", "pods_told"),
    [
        (seen_for(29, FEW), ""),
        (seen_for(30, FEW), "j-worker-2, j-worker-3"),
        # Before the operator has written a status: its first sync was refused, maybe for the first of all pods.
        (seen_for(30, replace(FEW, reported=False)), "j-worker-2, j-worker-3"),
        (seen_for(30, job(1, workers=(), launcher=None, reported=False)), "j-worker-0, j-launcher"),
        (seen_for(30, job(1, workers=(), launcher=None, config=None, reported=False)), "j-worker-0, j-launcher"),
        (seen_for(30, job(2, launcher=None)), "j-launcher"),
        (seen_for(30, replace(FEW, spec_elastic=False, launcher=PLAIN)), "j-worker-2, j-worker-3"),
        # It is at work.
        (seen_for(30, replace(FEW, workers=(worker(0), worker(1, created_at=NOW - 29)))), ""),
        (seen_for(30, replace(FEW, suspended_by="a field")), ""),
        (FEW, ""),
    ],
)
def test_pods_that_the_operator_does_not_create_are_told(view: JobView, pods_told: str) -> None:
    told = [action for action in decide(view, now=NOW).actions if isinstance(action, TellUser)]
    notes = [note.message for action in told for note in action.notes if note.reason == "WorkersRefused"]
    assert [note.partition(":")[0] for note in notes] == [f"the operator has not created {pods_told}"] * bool(pods_told)


def test_pods_that_are_missing_are_told_in_time_once_and_no_longer_than_they_are() -> None:
    assert decide(seen_for(10, FEW), now=NOW).wake_at == NOW + 20
    told, _ = notices.tell(derive(seen_for(30, FEW), now=NOW))
    assert told is not None
    # Who measures nothing, like the command line, or begins to, like another leader, changes nothing.
    for seen in (replace(FEW, notices=told.text), seen_for(0, replace(FEW, notices=told.text))):
        assert notices.tell(derive(seen, now=NOW))[0] is None
    over, _ = notices.tell(derive(replace(job(4), notices=told.text), now=NOW))
    assert over is not None
    assert over.text == ""
