"""Findings on a job as a whole."""

import json
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from mpijob_elastic import names
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Facts, PodTrouble, Stuck
from mpijob_elastic.model import budgets
from mpijob_elastic.model.budgets import BudgetFacts
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.memory import Memory, Mended, SizeChange
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import JOB, LONG_AGO, NOW, but, config, job, launcher, pending, pods, worker
from tests.product.diagnosis.said import BUSY, of_job, of_worker

LATELY = Mended(count=3, at=NOW - 5.0, writer="kubectl-edit")
WAITING, DELIVERING = LauncherPhase.WAITING, LauncherPhase.DELIVERING


def edited(memory: Memory) -> JobView:
    view = job(config=config(pods(0, 1, 2), memory=memory))
    assert view.config is not None
    return but(
        view, config=but(view.config, script="garbage", published=None, writer="kubectl-edit")
    )


def forgotten(view: JobView) -> JobView:
    """The job after somebody removed our memory."""
    assert view.config is not None
    return but(
        view, config=but(view.config, memory=None, writer="mpijob-elastic", written_at=LONG_AGO)
    )


def ended_after_resize() -> JobView:
    resized = config(
        pods(0, 1, 2),
        memory=Memory(added_at=NOW - 42.0, scale=SizeChange(before=2, after=3, at=NOW - 42.0)),
    )
    return job(config=resized, finished=True, succeeded_at=NOW - 30.0)


@pytest.mark.parametrize(
    ("view", "facts", "causes"),
    [
        (job(), {}, []),
        (forgotten(job(elastic=False)), {}, ["not-elastic"]),  # nothing is put right there
        (
            job(slots=4, config=config(pods(0, 1, 2), slots=4)),
            {"launch": Launch(program="horovodrun", min_np=12)},
            [],
        ),
        (job(), {"controller": "away"}, ["no-controller"]),
    ],
)
def test_nothing_else_is_said_and_all_train_only_where_nothing_is_wrong(
    view: JobView, facts: dict[str, Any], causes: list[str]
) -> None:
    found = diagnose(view, Facts(looks=dict.fromkeys(pods(0, 1, 2), BUSY), **facts), now=NOW)
    assert [finding.cause for finding in found.job] == causes
    assert (found.training, found.all_train) == (3, causes != ["no-controller"])
    assert not diagnose(job(0), Facts(), now=NOW).all_train


@pytest.mark.parametrize(
    ("view", "cause", "words"),
    [
        (job(finished=True), "ended", "j has ended: Succeeded"),
        (job(deleting=True), "deleted", "being deleted"),
        (job(foreign="its pods carry labels"), "foreign", "its pods carry labels"),
        (job(size_known=False), "size-unknown", "spec.mpiReplicaSpecs.Worker.replicas: is missing"),
        (ended_after_resize(), "ended-after-resize", "succeeded 12s after its host list changed"),
    ],
)
def test_a_job_that_is_over_or_not_ours_has_no_workers_to_explain(
    view: JobView, cause: str, words: str
) -> None:
    explanation = diagnose(view, Facts(state="Succeeded"), now=NOW)
    [found] = explanation.job
    assert found.cause == cause
    assert words in found.says
    assert explanation.workers == ()
    assert not explanation.all_train


@pytest.mark.parametrize(("length", "causes"), [(63, ["no-operator"]), (64, ["name-too-long"])])
def test_a_name_that_gets_no_pod_is_the_only_cause(length: int, causes: list[str]) -> None:
    view = job(reported=False, workers=(), launcher=None, config=None, role=None, known=False)
    metadata = structs.replace(view.facts.metadata, name="j" * length)
    view = replace(view, facts=structs.replace(view.facts, metadata=metadata))
    found = diagnose(view, Facts(created_at=NOW - 60.0), now=NOW)
    assert [finding.cause for finding in found.job][:1] == causes
    assert bool(found.workers) is (length == 63)
    assert ("has 64 characters" in found.job[0].says) is (length == 64)


def test_nobody_is_told_that_a_job_is_taken_back_that_never_was_ours() -> None:
    never = job(foreign="its pods carry labels", foreign_at=NOW - 5.0, config=None, known=False)
    [found] = diagnose(never, Facts(), now=NOW).job
    assert "managed once these are gone" in found.says
    [found] = diagnose(but(never, notices="NotElastic: x"), Facts(), now=NOW).job
    assert "taken back once the other operator has not written to it for 10m" in found.says


@pytest.mark.parametrize(
    ("view", "facts", "told"),
    [
        (
            job(reported=False),
            {"created_at": NOW - 5.0},
            "no-operator waiting: j was created 5s ago",
        ),
        (job(reported=False), {"created_at": NOW - 60.0}, "no-operator wrong: created 1m ago"),
        (
            job(reported=False),
            {
                "created_at": NOW - 5.0,
                "events": {JOB: 'ErrResourceExists: Resource "j-config" of Kind "ConfigMap"'},
            },
            'name-taken wrong: Its last warning: ErrResourceExists: Resource "j-config" of Kind',
        ),
        (
            job(reported=False),
            {"created_at": NOW - 5.0, "events": {JOB: "FailedMount: x"}},
            "no-operator waiting: j was created 5s ago",
        ),
        (
            job(
                known=False,
                notices="NotElastic: x\nRefreshRefused: j-launcher cannot be told (a policy says no)",
            ),
            {},
            "refresh-refused wrong: j-launcher cannot be told (a policy says no)",
        ),
        (
            job(),
            {"controller": "no controller leads"},
            "no-controller wrong: so j keeps its present size",
        ),
        (job(), {"webhook": "no replica is ready"}, "no-webhook wrong: no replica is ready"),
        (job(elastic=False), {}, "not-elastic fine: --host-discovery-script"),
        (
            edited(Memory()),
            {},
            "edited waiting: changed by kubectl-edit; the controller puts it right at once",
        ),
        (
            forgotten(job()),
            {},
            "edited waiting: annotation mpijob-elastic/memory of ConfigMap j-config was",
        ),
        (
            edited(Memory(mended=LATELY)),
            {},
            "host-list-contested wrong: kubectl-edit keeps changing discover_hosts.sh",
        ),
        (job(launcher=None), {}, "no-launcher waiting: j-launcher does not exist yet"),
        (
            job(launcher=launcher(WAITING)),
            {},
            "launcher-starting waiting: j-launcher has not started",
        ),
        (job(launcher=launcher(LauncherPhase.FINISHED)), {}, "launcher-ended waiting: has ended"),
        (
            job(launcher=launcher(LauncherPhase.LINGERING, lingering=("proxy",))),
            {},
            "driver-ended wrong: has ended, but proxy still runs beside it",
        ),
        (
            job(launcher=launcher(mounts_discovery=False)),
            {},
            "launcher-without-discovery wrong: change its size",
        ),
        (
            job(launcher=launcher(WAITING)),
            {"pods": {"j-launcher": PodTrouble(unscheduled="0/1 nodes")}},
            "launcher-stuck wrong: j-launcher cannot be scheduled: 0/1 nodes",
        ),
        (
            job(launcher=launcher(WAITING)),
            {"pods": {"j-launcher": PodTrouble(stuck=Stuck(container="c", reason="ErrImagePull"))}},
            "launcher-stuck wrong: ErrImagePull",
        ),
        (
            job(launcher=launcher(disruption="condition DisruptionTarget (Preemption)")),
            {},
            "launcher-disrupted wrong: (condition DisruptionTarget (Preemption)) cannot be moved: training stops",
        ),
        (
            job(),
            {
                "resized_at": NOW - 20.0,
                "surplus": {"j-worker-40": NOW - 1.0, "j-worker-3": NOW - 60.0},
            },
            "former-size wrong: j-worker-40 was created 19s after the size became 3",
        ),
        (
            job(),
            {"launch": Launch(program="horovodrun", min_np=4)},
            "below-min-np wrong: waits for 4 slots",
        ),
        (
            but(job(3), config=config(())),
            {"launch": Launch(program="horovodrun", min_np=1)},
            "below-min-np wrong: waits for 1 slot (",
        ),
        (
            job(
                unread_options=frozenset({"max_np", "min_np"}), launch=Launch(program="horovodrun")
            ),
            {},
            "unread-command fine: horovodrun's --min-np, --max-np cannot be read in the",
        ),
        (
            job(unread_options=frozenset({"np", "min_np", "max_np"})),
            {},
            "unread-command fine: no horovodrun can be read in the launcher's command",
        ),
        (
            job(
                names_elastic=True,
                unread_options=frozenset({"np"}),
                launch=Launch(program="elastic.sh"),
            ),
            {},
            "unread-command fine: elastic.sh's --np cannot be read in the launcher's command",
        ),
        (
            job(launcher=launcher(mounts_elastic=True), names_elastic=True),
            {"launch": Launch(program="elastic.sh", min_np=12)},
            "below-min-np wrong: j-launcher waits for 12 slots (elastic.sh's --min-np); published",
        ),
    ],
)
def test_what_holds_for_all_workers(view: JobView, facts: dict[str, Any], told: str) -> None:
    """Of the job is told `CAUSE LEVEL: SAYS`, of which the table gives parts."""
    kind, _, words = told.partition(": ")
    cause, level = kind.split()
    found = of_job(view, **facts)[cause]
    assert words in found.says
    assert found.level.value == level
    assert found.next_step or cause == "not-elastic"


@pytest.mark.parametrize(
    "view", [job(), but(job(reported=False), notices="NotElastic: x"), job(launcher=None)]
)
def test_who_carries_out_changes_comes_first(view: JobView) -> None:
    """Before an installation nobody writes the list, so no edit of the job helps."""
    launch = Launch(program="horovodrun", min_np=12)
    found = diagnose(view, Facts(controller="nothing is installed", launch=launch), now=NOW).job
    assert found[0].cause == "no-controller"
    assert not [one.next_step for one in found if " edit " in one.next_step]


ADOPT = names.adopt(JOB, "default")


@pytest.mark.parametrize(
    "view",
    [
        pytest.param(job(), id="at rest"),
        pytest.param(job(config=config(pods(0, 1))), id="not published"),
        pytest.param(job(role=None), id="no right"),
        pytest.param(job(known=False), id="not refreshed"),
        pytest.param(
            job(launcher=launcher(mounts_discovery=False)), id="a launcher without discovery"
        ),
        pytest.param(
            job(2, workers=tuple(map(worker, range(3))), elastic=False), id="kept beyond the size"
        ),
        pytest.param(edited(Memory()), id="edited"),
        pytest.param(job(launcher=None), id="no launcher"),
    ],
)
def test_without_an_installation_only_the_first_next_step_is_of_ours(view: JobView) -> None:
    """There is no controller with a log then, and `adopt` refuses."""
    facts = Facts(
        controller="mpijob-elastic is not installed",
        webhook="the API server does not call it",
        installed=False,
    )
    found = diagnose(view, facts, now=NOW)
    causes = (*found.job, *(worker.cause for worker in found.workers))
    steps = [cause.next_step for cause in causes if "mpijob-elastic" in cause.next_step]
    assert steps == ["mpijob-elastic install"]
    assert "no-webhook" not in [cause.cause for cause in found.job]
    for cause in causes:
        later = cause.says.replace(f"`{ADOPT}` (once mpijob-elastic is installed)", "")
        assert ADOPT not in later


def budget(*, allowed: int = 0, **spec: object) -> BudgetFacts:
    """A PodDisruptionBudget of the job's workers."""
    selector = {"matchLabels": {names.LABEL_JOB_NAME: JOB}}
    made = {
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"selector": selector, **spec},
        "status": {"disruptionsAllowed": allowed},
    }
    return budgets.read(json.dumps(made).encode())


def waiting_beside_three(gate: str) -> JobView:
    """A job of four workers, of which one only holds its place."""
    held = pending(3, gates=(gate,))
    view = but(job(3), facts=but(job(3).facts, replicas=4))
    if gate == names.GATE_PARKED:
        return replace(view, placeholders=(held,))
    return but(view, workers=(*view.workers, held), replicas=4)


@pytest.mark.parametrize("gate", [names.GATE_PARKED, names.GATE_QUEUED])
def test_a_budget_that_blocks_every_drain_is_named(gate: str) -> None:
    view = waiting_beside_three(gate)
    found = of_job(view, budgets=(budget(maxUnavailable="25%"), budget(minAvailable=2)))
    assert "drain-refused" not in found  # the launcher counts beside the workers
    of_workers = {"matchLabels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER}}
    found = of_job(view, budgets=(budget(maxUnavailable=1, selector=of_workers),))
    assert found["drain-refused"].level.value == "wrong"
    assert "PodDisruptionBudget team (maxUnavailable 1) allows no eviction" in (
        said := found["drain-refused"].says
    )
    assert "counts j-worker-3 as unavailable. Set minAvailable to a number of at most 2" in said
    assert found["drain-refused"].next_step.endswith("edit poddisruptionbudget team")


def test_a_budget_that_lets_a_pod_go_is_not() -> None:
    view = waiting_beside_three(names.GATE_PARKED)
    of_workers = {"matchLabels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER}}
    assert not of_job(view, budgets=(budget(maxUnavailable=1, selector=of_workers, allowed=1),))
    assert not of_job(view, budgets=(budget(minAvailable=2, selector=of_workers),))


@pytest.mark.parametrize(
    ("resized_at", "created_at"),
    [
        (0.0, NOW - 1.0),
        (NOW - 20.0, NOW - 30.0),
        (NOW - 20.0, NOW - 16.0),
        (NOW - 300.0, NOW - 100.0),
    ],
    ids=["nobody knows when", "of the former size", "was under way", "it has ended"],
)
def test_surplus_workers_are_no_sign_of_an_operator_that_goes_on(
    resized_at: float, created_at: float
) -> None:
    assert not of_job(job(), resized_at=resized_at, surplus={"j-worker-3": created_at})


def test_a_launcher_in_its_init_container_names_the_pods_it_waits_for() -> None:
    waits = launcher(DELIVERING, delivering_since=NOW - 90.0)
    view = job(
        launcher=waits, workers=(worker(0), pending(1)), config=config([], hostfile=pods(0, 1, 2))
    )
    found = of_job(view)["launcher-init"]
    assert "for 1m30s until these pods run: j-worker-1, j-worker-2" in found.says
    assert found.next_step == "kubectl -n default describe pod j-worker-1"
    assert "starts in a moment" in of_job(job(launcher=waits))["launcher-init"].says


def test_of_frozen_execs_it_is_said_who_ends_them_and_by_which_command() -> None:
    frozen = tuple(Exec(pid=pid, pod="j-worker-2", started_at=LONG_AGO) for pid in (41, 44))
    holding = launcher(held=HeldExecs(frozen=frozen))
    gone = job(2, workers=(worker(0), worker(1)), launcher=holding)
    lost_node = job(
        launcher=holding,
        workers=(worker(0), worker(1), worker(2, deleting=True, ends_at=NOW - 90.0)),
    )
    by_itself, by_hand = "; a controller that runs ends it within a minute", ". To end it: `kubectl"
    assert of_job(gone)["frozen-exec"].says.endswith(by_itself)
    found = of_job(lost_node)["frozen-exec"]
    assert "into j-worker-2, which" in found.says
    assert by_hand in found.says
    assert by_itself not in found.says
    assert found.next_step == "kubectl -n default exec j-launcher -- /bin/sh -c 'kill 41 44'"


def test_one_worker_can_be_asked_about_alone() -> None:
    view = job(workers=(worker(0), worker(1), pending(2)), config=config(pods(0, 1)))
    seen = Facts(looks=dict.fromkeys(pods(0, 1), BUSY))
    assert not diagnose(view, seen, now=NOW).all_train
    assert diagnose(view, seen, now=NOW, worker="j-worker-1").all_train
    assert [
        found.name for found in diagnose(view, Facts(), now=NOW, worker="j-worker-2").workers
    ] == ["j-worker-2"]


def test_a_drain_beside_workers_that_train_is_nothing_wrong() -> None:
    assert of_worker(job(3, replicas=2), 2).cause == "leaving"
    assert diagnose(
        job(3, replicas=2), Facts(looks=dict.fromkeys(pods(0, 1), BUSY)), now=NOW
    ).all_train
