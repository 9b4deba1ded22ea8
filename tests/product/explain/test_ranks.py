"""Causes in a rank, as far as exec shows them."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide.retries import RENAMED
from mpijob_elastic.explain import explain
from mpijob_elastic.explain.facts import Facts, Look
from mpijob_elastic.explain.findings import Level
from mpijob_elastic.model.execs import Exec
from mpijob_elastic.model.horovodrun import Launch
from mpijob_elastic.model.memory import Memory, Tries
from tests.builders import LONG_AGO, NOW, config, job, pods, shown
from tests.product.explain.said import BUSY, IDLE, of_worker

LAST = "j-worker-2"
OTHERS_TRAIN = {"j-worker-0": BUSY, "j-worker-1": BUSY, LAST: IDLE}


def run(**options: object) -> Launch:
    return Launch(program="horovodrun", **options)  # type: ignore[arg-type]


def test_a_rank_that_is_seen_trains() -> None:
    found = of_worker(job(), 2, looks={LAST: Look(processes=("python3 (x2)", "sh"))})
    assert (found.cause, found.level) == ("trains", Level.FINE)
    assert "j-worker-2 is training: python3 (x2), sh" in found.says


@pytest.mark.parametrize(
    ("others", "look", "words"),
    [
        ((), None, "only exec can show that, and --no-exec was given"),
        ((0, 1), None, "exec looked only into 2 other workers"),
        ((0, 1), Look(error="a policy says no"), "a policy says no"),
    ],
)
def test_what_cannot_be_seen_is_not_known(others: tuple[int, ...], look: Look | None, words: str) -> None:
    found = of_worker(job(), 2, looks=dict.fromkeys(pods(*others), BUSY) | ({LAST: look} if look else {}))
    assert (found.cause, found.level) == ("not-known", Level.UNKNOWN)
    assert found.says.endswith(f"is listed, and the launcher knows it; whether it trains is not known: {words}")


def test_in_a_job_that_is_not_elastic_a_rank_can_be_seen_and_its_absence_means_nothing() -> None:
    plain = job(elastic=False, config=config([]))
    assert of_worker(plain, 2, looks={LAST: BUSY}).cause == "trains"
    found = of_worker(plain, 2, looks={LAST: IDLE})
    assert (found.cause, found.level) == ("not-known", Level.UNKNOWN)
    assert found.says.endswith("exec shows no rank, and the launcher alone decides where ranks run")


@pytest.mark.parametrize(
    ("looks", "facts", "training", "all_train"),
    [
        (dict.fromkeys(pods(0, 1, 2), BUSY), {}, 3, True),
        (dict.fromkeys(pods(0, 1), BUSY), {}, None, None),
        ({}, {}, None, None),
        ({}, {"controller": "no controller leads"}, None, False),
        (OTHERS_TRAIN, {}, 2, False),
        ({"j-worker-0": BUSY, LAST: IDLE}, {}, None, False),
    ],
)
def test_that_all_train_is_said_only_where_it_is_known(
    looks: dict[str, Look], facts: dict[str, str], training: int | None, all_train: bool | None
) -> None:
    found = explain(job(), Facts(looks=looks, **facts), now=NOW)  # type: ignore[arg-type]
    assert (found.training, found.all_train) == (training, all_train)
    assert bool(found.not_known) is (training is None)


def test_a_worker_without_a_rank_while_others_train_has_lost_it() -> None:
    found = of_worker(job(), 2, looks=OTHERS_TRAIN)
    assert (found.cause, found.level) == ("lost-rank", Level.WAITING)
    assert "while 2 others train" in found.says
    assert "for as long as the job runs; the controller gives it a new host name after 30s" in found.says
    assert found.next_step == "kubectl -n default logs j-launcher | grep -i blacklist"
    cooled = of_worker(job(), 2, looks=OTHERS_TRAIN, launch=run(cooldown=(5, 60)))
    assert "for up to 60 s" in cooled.says


def test_a_lost_rank_that_nobody_can_bring_back() -> None:
    away = of_worker(job(), 2, looks=OTHERS_TRAIN, controller="no controller leads")
    edited = job(config=replace(config(pods(0, 1, 2)), kubexec="#!/bin/sh\nssh $1\n"))
    for found in (away, of_worker(edited, 2, looks=OTHERS_TRAIN)):
        assert (found.cause, found.level) == ("lost-rank", Level.WRONG)
        assert found.says.endswith("the controller cannot give it a new host name")


def test_a_worker_that_kept_losing_its_rank_is_given_up() -> None:
    losses = Tries(count=len(RENAMED.delays) + 1, at=NOW - 60.0, uid=f"uid-of-{LAST}")
    view = job(config=config(pods(0, 1, 2), memory=Memory(renamed={LAST: losses})))
    found = of_worker(view, 2, looks=OTHERS_TRAIN)
    assert (found.cause, found.level) == ("given-up", Level.WRONG)
    assert "lost its rank 6 times" in found.says
    assert found.next_step == "kubectl -n default delete pod j-worker-2"


def test_a_worker_that_was_named_a_moment_ago_is_given_time() -> None:
    view = shown(job(known=False), at=NOW - 5.0)
    assert of_worker(view, 2, looks=OTHERS_TRAIN).cause == "joining"
    assert of_worker(shown(view, at=NOW - 25.0), 2, looks=OTHERS_TRAIN).cause == "lost-rank"


@pytest.mark.parametrize(
    ("most", "slots", "cause"), [(2, 1, "beyond-max-np"), (3, 1, "lost-rank"), (8, 4, "beyond-max-np")]
)
def test_a_worker_that_horovodrun_does_not_want(most: int, slots: int, cause: str) -> None:
    found = of_worker(job(slots=slots), 2, looks=OTHERS_TRAIN, launch=run(max_np=most))
    assert found.cause == cause


def test_where_nobody_trains_the_launcher_knows_why() -> None:
    found = of_worker(job(), 2, looks=dict.fromkeys(pods(0, 1, 2), IDLE))
    assert (found.cause, found.level) == ("nobody-trains", Level.WRONG)
    assert found.next_step == "kubectl -n default logs j-launcher --tail=50"


def test_a_frozen_exec_comes_before_anything_else() -> None:
    frozen = (Exec(pid=41, pod=LAST, started_at=LONG_AGO),)
    assert of_worker(job(), 2, looks=OTHERS_TRAIN, frozen=frozen).cause == "frozen-exec"
    assert of_worker(job(), 1, looks=OTHERS_TRAIN, frozen=frozen).cause == "trains"
