"""Notices to the user when nothing happens."""

from typing import Any

import pytest

from mpijob_elastic.decide import derive, notices
from mpijob_elastic.decide.actions import TellUser
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.memory import Memory, Tries
from mpijob_elastic.model.pod import LauncherPhase, RefusedTouch
from mpijob_elastic.model.policy import Policy, Problem
from tests.builders import (
    LONG_AGO,
    NOW,
    Story,
    config,
    failed,
    job,
    launcher,
    pending,
    pods,
    worker,
)
from tests.product.decide.plans import does, notes


def refusal(times: int, *, reason: str = "denied") -> RefusedTouch:
    """So many touches in a row that were refused."""
    return RefusedTouch(change="", tries=Tries(count=times, at=NOW, uid="u"), reason=reason)


BLIND = launcher(mounts_discovery=False)
PLAIN = launcher(mounts_discovery=False, names_discovery=False)
GAVE_UP = config(pods(0, 1, 2), memory=Memory(launchers=Tries(count=4, at=NOW, uid="u")))
FAILED_OFTEN = Tries(count=8, at=NOW - 1, uid="uid-of-j-worker-1")
LOST_OFTEN = Tries(count=6, at=NOW - 1, uid="uid-of-j-worker-1")
PROBLEM = Problem(field="f", value="v", allowed="a")
LATE = (worker(0), worker(1), pending(2, created_at=LONG_AGO))


def told(view: JobView) -> TellUser:
    """The notices that are due; none where nothing is to be said."""
    return notices.tell(derive(view, now=NOW))[0] or TellUser(ref=view.ref, text="")


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
        # The other way round: a new template for the next launcher, while the driver that runs is
        # elastic.
        (job(replicas=2, spec_elastic=False), []),
        (job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False)), []),
        (
            job(launcher=launcher(LauncherPhase.WAITING, mounts_discovery=False), config=GAVE_UP),
            ["AdmissionMissed"],
        ),
        (
            job(launcher=launcher(LauncherPhase.WAITING), config=GAVE_UP, names_elastic=True),
            ["AdmissionMissed"],
        ),
        (job(launcher=BLIND, config=GAVE_UP), ["LauncherWithoutDiscovery"]),
        # Somebody mended the webhook, and the launcher that waits now is well.
        (job(launcher=launcher(LauncherPhase.WAITING), config=GAVE_UP), []),
        (job(elastic=False, replicas=2), ["NotElastic"]),
        (
            job(
                elastic=False, replicas=2, workers=(worker(0), worker(1), worker(2, deleting=True))
            ),
            [],
        ),
        (job(known=False, launcher=launcher(refused=refusal(1))), []),
        (job(known=False, launcher=launcher(refused=refusal(2))), ["RefreshRefused"]),
        (job(launcher=launcher(refused=refusal(2))), []),
        (job(slots=4), ["SlotsUnchanged"]),
        (job(slots=4, launcher=None), []),
        (job(slots=4, config=config([])), []),
        (job(workers=LATE), ["WorkersNotReady"]),
        (job(workers=LATE, launcher=None), []),
        (job(workers=LATE, elastic=False), []),
        # It was Ready until a moment ago, or has just got its node, and is as old as the job.
        (job().pod(2, running=True, ready_at=None, unready_at=NOW - 119), []),
        (job().pod(2, running=True, ready_at=None, unready_at=NOW - 120), ["WorkersNotReady"]),
        # Its node goes, or somebody deletes it: another comes in its place.
        (job().pod(2, deleting=True, ends_at=NOW + 30), []),
        (job().pod(2, running=False, ready_at=None, deleting=True, ends_at=NOW + 30), []),
        (job(workers=(worker(0), worker(1), failed(2))), []),
    ],
)
def test_what_is_said(view: JobView, reasons: list[str]) -> None:
    assert [note.reason for note in told(view).notes] == reasons
    assert [line.partition(":")[0] for line in told(view).text.splitlines()] == reasons


def test_what_was_said_is_not_said_again_and_goes_when_it_is_over() -> None:
    said = job(launcher=BLIND, notices=told(job(launcher=BLIND)).text)
    assert notices.tell(derive(said, now=NOW)) == (None, None)
    more = told(said.but(problems=(PROBLEM,)))
    assert [note.reason for note in more.notes] == ["InvalidAnnotation"]
    assert does(job(notices=said.facts.notices)) == "say nothing more"


def test_a_value_of_several_lines_is_still_one_line_that_is_said_once() -> None:
    view = job(problems=(Problem(field="f", value="a\nb\u2028c", allowed="x"),))
    text = told(view).text
    assert len(text.splitlines()) == 1
    assert [note.reason for note in told(view.but(notices=text, slots=4)).notes] == [
        "SlotsUnchanged"
    ]


def test_when_what_may_be_worth_a_word_wakes_us() -> None:
    late = job(
        workers=(worker(0), pending(1, created_at=NOW - 20), pending(2, created_at=NOW - 10))
    )
    assert notices.tell(derive(late, now=NOW)) == (None, NOW + 100)
    flaps = job().pod(1, ready_at=None, unready_at=NOW - 20)
    assert notices.tell(derive(flaps, now=NOW)) == (None, NOW + 100)
    going = job().pod(1, created_at=NOW, deleting=True, ends_at=NOW - 59)
    assert notices.tell(derive(going, now=NOW)) == (None, NOW + 1)
    # Nobody waits for a worker that is too many.
    surplus = job(workers=(*job().workers, worker(3, deleting=True, ends_at=NOW - 600)))
    assert notices.tell(derive(surplus, now=NOW)) == (None, None)


UNLISTED = config(pods(0, 2), memory=Memory(replaced={pods(1)[0]: FAILED_OFTEN}))
EVICTED = (worker(0), failed(1, last_state="Failed; Evicted"), worker(2))
RENAMED = config(pods(0, 1, 2), memory=Memory(renamed={pods(1)[0]: LOST_OFTEN}))
LOST_NODE: dict[str, Any] = {
    "created_at": NOW,
    "deleting": True,
    "ends_at": NOW - 70,
    "node": "gpu-7",
}
LOST = tuple(worker(index, **LOST_NODE) for index in range(2, 20))
DENIED = refusal(2, reason="admission webhook denied:\n" + "x" * 5000)
DELETE = "kubectl -n default delete pod j-worker-1"
ADOPT = "upgrade adopt j -n default`"
KEPT = "not deleted on a scale-in"


@pytest.mark.parametrize(
    ("view", "reason", "words"),
    [
        (job(launcher=BLIND), "LauncherWithoutDiscovery", (ADOPT, KEPT)),
        (
            job().pod(1, created_at=NOW, deleting=True, ends_at=NOW - 60, node="gpu-7"),
            "PodStuckTerminating",
            (f"{DELETE} --grace-period=0 --force", "kubectl delete node gpu-7"),
        ),
        # All pods of a lost node are one word.
        (
            job(20, workers=(worker(0), worker(1), *LOST), launcher=launcher(**LOST_NODE)),
            "PodStuckTerminating",
            (
                "PodStuckTerminating: j-launcher, j-worker-2, j-worker-3",
                "j-worker-8 and 11 more stuck in deletion",
                "`kubectl delete node gpu-7` frees all its pods",
            ),
        ),
        (
            job(workers=EVICTED, config=UNLISTED),
            "WorkerGivenUp",
            ("failed 8 times (last: Failed; Evicted)", DELETE),
        ),
        (job(config=RENAMED), "WorkerGivenUp", ("lost its rank 6 times", DELETE)),
        # No edit is recommended that the driver cannot follow.
        (
            job(replicas=2, launcher=PLAIN, spec_elastic=False),
            "NotElastic",
            (
                "j-worker-2 is kept beyond the size, 2 workers: the job is not elastic",
                f"edit the job, then type `mpijob-elastic {ADOPT}",
            ),
        ),
        (
            job(replicas=2, elastic=False),
            "NotElastic",
            ('remove its annotation mpijob-elastic/enabled="false"',),
        ),
        (
            job(4, replicas=1, elastic=False),
            "NotElastic",
            ("j-worker-3, j-worker-2, j-worker-1 are kept beyond the size, 1 worker: the job",),
        ),
        (
            job(replicas=2, launcher=PLAIN),
            "LauncherWithoutDiscovery",
            (f"new launcher: `mpijob-elastic {ADOPT}", KEPT),
        ),
        (
            job(known=False, launcher=launcher(refused=DENIED)),
            "RefreshRefused",
            (
                "(admission webhook denied: xxx",
                "system:serviceaccount:mpijob-elastic:mpijob-elastic-controller",
            ),
        ),
    ],
)
def test_the_words(view: JobView, reason: str, words: tuple[str, ...]) -> None:
    said = told(view)
    assert [note.reason for note in said.notes] == [reason]
    assert [part for part in words if part not in said.text] == []
    assert (KEPT in said.text) is (KEPT in words)
    assert 'enabled="true"' not in said.text
    assert len(said.text) < 1000


def seen_for(seconds: float, view: Story) -> Story:
    """The job in which this process has seen the missing pods missing for so long."""
    return view.but(drains_seen={(pod, 0.0): seconds for pod in view.missing})


FEW = job(4, workers=(worker(0), worker(1)), config=config(pods(0, 1)))


@pytest.mark.parametrize(
    ("view", "missing"),
    [
        (seen_for(29, FEW), ""),
        (seen_for(30, FEW), "j-worker-2, j-worker-3"),
        # Before the operator has written a status: its first sync was refused, maybe for the first
        # of all pods.
        (seen_for(30, FEW.but(reported=False)), "j-worker-2, j-worker-3"),
        (seen_for(30, job(1, workers=(), launcher=None, reported=False)), "j-worker-0, j-launcher"),
        (
            seen_for(30, job(1, workers=(), launcher=None, config=None, reported=False)),
            "j-worker-0, j-launcher",
        ),
        (seen_for(30, job(2, launcher=None)), "j-launcher"),
        (seen_for(30, FEW.but(spec_elastic=False, launcher=PLAIN)), "j-worker-2, j-worker-3"),
        # It is at work.
        (seen_for(30, FEW.but(workers=(worker(0), worker(1, created_at=NOW - 29)))), ""),
        (seen_for(30, FEW.but(suspended_by="a field")), ""),
        (FEW, ""),
    ],
)
def test_pods_that_the_operator_does_not_create_are_told(view: JobView, missing: str) -> None:
    refused = [note.message for note in notes(view) if note.reason == "WorkersRefused"]
    assert [said.partition(":")[0] for said in refused] == [
        f"the operator has not created {missing}"
    ] * bool(missing)


def test_pods_that_are_missing_are_told_in_time_once_and_no_longer_than_they_are() -> None:
    assert does(seen_for(10, FEW)) == "wake 20"
    text = told(seen_for(30, FEW)).text
    # Who measures nothing, like the command line, or begins to, like another leader, changes
    # nothing.
    for seen in (FEW.but(notices=text), seen_for(0, FEW.but(notices=text))):
        assert notices.tell(derive(seen, now=NOW))[0] is None
    assert does(job(4, notices=text)) == "say nothing more"


TOO_LARGE = "it has more than 15,000 fields or list items"


def test_a_worker_whose_pod_cannot_be_read_is_not_lost() -> None:
    gone = job(3).without(1)
    assert "publish" in does(gone)
    unread = gone.but(unread={"Pod j-worker-1": TOO_LARGE})
    assert does(unread) == "say ObjectUnreadable"
    assert TOO_LARGE in told(unread).notes[0].message
    again = unread.but(notices=told(unread).text)
    assert does(again) == "nothing"
    assert does(again.shrunk(from_=3, ago=60.0).but(replicas=1)) == "nothing", (
        "nobody is deleted either"
    )


def test_no_quota_is_free_while_a_pod_cannot_be_read() -> None:
    ended = job(2).but(finished=True, workers=(), unread={"Pod j-worker-1": TOO_LARGE})
    assert does(ended) == "nothing"


@pytest.mark.parametrize(
    ("absent", "name"), [("config", "ConfigMap j-config"), ("role", "Role j-launcher")]
)
def test_a_job_without_a_readable_config_map_or_role_says_so_once(absent: str, name: str) -> None:
    view = job(3).but(**{absent: None})
    assert does(view) == "nothing"
    unread = view.but(unread={name: TOO_LARGE})
    assert does(unread) == "say ObjectUnreadable"
    said = told(unread)
    assert f"{name} of j is too large" in said.notes[0].message
    assert does(unread.but(notices=said.text)) == "nothing"


def test_another_object_that_cannot_be_read_holds_up_nothing() -> None:
    view = job(3).without(1).but(unread={"HorizontalPodAutoscaler j": TOO_LARGE})
    assert does(view, but="wake") == does(job(3).without(1), but="wake")
    view = job(3).but(unread={"HorizontalPodAutoscaler j": TOO_LARGE, "Workload j": TOO_LARGE})
    assert does(view) == "say ObjectUnreadable"


ADOPTION = "mpijob-elastic upgrade adopt j -n default"
STATIC, MPIRUN = (Launch(program=program, np=2) for program in ("horovodrun", "mpirun"))


@pytest.mark.parametrize(
    ("launch", "enabled", "step"),
    [
        (None, True, ADOPTION),
        (Launch(program="horovodrun", unread=True), True, ADOPTION),
        (
            Launch(program="horovodrun", discovery_script="/etc/mpi/discover_hosts.sh"),
            True,
            ADOPTION,
        ),
        (STATIC, None, ADOPTION),  # the command names the list in another way
        (STATIC, True, "kubectl -n default edit mpijob j"),
        (MPIRUN, True, "kubectl -n default edit mpijob j"),
    ],
)
def test_no_restart_is_advised_that_changes_nothing(
    launch: Launch | None, enabled: bool | None, step: str
) -> None:
    view = job(launcher=PLAIN, launch=launch, policy=Policy(enabled=enabled))
    [found] = [
        one
        for one in notices.of_job(derive(view, now=NOW))
        if one.reason == "LauncherWithoutDiscovery"
    ]
    assert found.next_step == step
    first = "first give its command horovodrun --host-discovery-script /etc/mpi/discover_hosts.sh"
    assert (first in found.message) is (step != ADOPTION)
    assert ADOPTION in found.message
