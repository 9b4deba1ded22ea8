"""Evictions of workers: which begin, which wait, which pass."""

import json
from typing import Any

import pytest

from lab.operator import objects
from lab.operator.objects import Object
from mpijob_elastic import names
from mpijob_elastic.admission import review
from mpijob_elastic.capabilities.disruption import admission as eviction
from tests.product.capabilities.disruption.evicted import (
    READY,
    released,
    request,
    requested,
    worker,
)
from tests.product.webhook.answers import NOW, facts, running
from tests.product.webhook.objects import mpi_job

GOING: Object = {"deletionTimestamp": "2026-11-23T00:00:00Z"}
JOB = running()
PASS, WAIT, BEGIN = review.UNCHANGED, eviction.DRAINING, None


def read(pod: Object) -> eviction.EvictedPod:
    return eviction.pod(json.dumps(pod).encode())


@pytest.mark.parametrize(
    ("job", "asked", "may"),
    [
        pytest.param(JOB, {}, True, id="elastic"),
        pytest.param(
            running(annotations={names.ENABLED: "true"}), {}, True, id="said to be elastic"
        ),
        pytest.param(running(annotations={names.ENABLED: "false"}), {}, False, id="switched off"),
        pytest.param(
            running(annotations={names.STATUS: "HandedOver: another operator"}),
            {},
            False,
            id="handed over",
        ),
        pytest.param(running(conditions=["Created", "Succeeded"]), {}, False, id="finished"),
        pytest.param({**JOB, "metadata": JOB["metadata"] | GOING}, {}, False, id="being deleted"),
        pytest.param(JOB, {"dryRun": True}, False, id="a dry run"),
        pytest.param(JOB, {"options": {"dryRun": ["All"]}}, False, id="a dry run by its options"),
        pytest.param(JOB, {"options": {"gracePeriodSeconds": 5}}, True, id="other options"),
        pytest.param(JOB, {"subResource": ""}, False, id="another subresource"),
        pytest.param(JOB, {"operation": "UPDATE"}, False, id="no creation"),
    ],
)
def test_evictions_of_workers_of_jobs_that_go_on_may_wait(
    job: Object, asked: dict[str, Any], may: bool
) -> None:
    assert eviction.may_wait(request(**asked), facts(job)) is may


SHORT = running(annotations={names.DRAIN_TIMEOUT: "10s"})
OF_ANOTHER = objects.worker(mpi_job(name="other"), 0)["metadata"]["ownerReferences"]


@pytest.mark.parametrize(
    ("pod", "job", "options", "then"),
    [
        pytest.param(worker(), JOB, None, BEGIN, id="a worker"),
        pytest.param(worker(mark=requested(NOW - 59)), JOB, None, WAIT, id="asked for long ago"),
        pytest.param(worker(mark=requested(NOW - 60)), JOB, None, PASS, id="the timeout is over"),
        pytest.param(worker(mark=released(NOW - 5)), JOB, None, PASS, id="released"),
        pytest.param(
            worker(mark=requested(NOW - 9)), SHORT, None, WAIT, id="within the job's timeout"
        ),
        pytest.param(
            worker(mark=requested(NOW - 10)), SHORT, None, PASS, id="the job's timeout is over"
        ),
        # A mark that is over, from far ahead, or no mark at all: another first try.
        pytest.param(worker(mark=requested(NOW - 120)), JOB, None, BEGIN, id="an old request"),
        pytest.param(worker(mark=released(NOW - 60)), JOB, None, BEGIN, id="an old release"),
        pytest.param(
            worker(mark=requested(NOW + 600)), JOB, None, BEGIN, id="a request from the future"
        ),
        pytest.param(worker(mark="requested tomorrow"), JOB, None, BEGIN, id="no mark of ours"),
        # Who does not train need not wait.
        pytest.param(worker(status={"phase": "Pending"}), JOB, None, PASS, id="pending"),
        pytest.param(worker(status={"phase": "Running"}), JOB, None, PASS, id="not Ready"),
        pytest.param(worker(status=READY | {"phase": "Failed"}), JOB, None, PASS, id="failed"),
        pytest.param(worker(**GOING), JOB, None, PASS, id="being deleted"),
        # Nor who is not of this job, or not this pod.
        pytest.param(worker(labels={}), JOB, None, PASS, id="without labels"),
        pytest.param(worker(ownerReferences=[]), JOB, None, PASS, id="without an owner"),
        pytest.param(
            worker(ownerReferences=OF_ANOTHER), running(uid="x"), None, PASS, id="of another job"
        ),
        pytest.param(
            worker(), JOB, {"preconditions": {"uid": "gone"}}, PASS, id="another pod is meant"
        ),
        pytest.param(worker(), JOB, {"preconditions": {"uid": "w"}}, BEGIN, id="this pod is meant"),
    ],
)
def test_an_eviction_begins_waits_or_passes(
    pod: Object, job: Object, options: Object | None, then: Any
) -> None:
    tried = eviction.tried(request(options=options), read(pod), facts(job), now=NOW)
    assert (tried if isinstance(tried, review.Verdict) else BEGIN) is then


RUNS = {"status": {"phase": "Running"}}
LAUNCHER, MOUNTS = (objects.launcher(mpi_job()) for _ in range(2))
objects.mounted(MOUNTS).append({"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS})


@pytest.mark.parametrize(
    ("pod", "trains"),
    [
        pytest.param({**LAUNCHER, **RUNS}, False, id="does not see the list"),
        pytest.param({**MOUNTS, **RUNS}, True, id="sees it"),
        pytest.param(MOUNTS, False, id="does not run yet"),
        pytest.param({**MOUNTS, "status": {"phase": "Succeeded"}}, False, id="has ended"),
        pytest.param(
            {**MOUNTS, **RUNS, "metadata": MOUNTS["metadata"] | GOING}, False, id="being deleted"
        ),
    ],
)
def test_a_driver_that_sees_the_list_trains(pod: Object, trains: bool) -> None:
    assert eviction.is_training(read(pod), facts(JOB)) is trains


def test_the_answer_is_the_one_of_a_budget() -> None:
    answer = json.loads(review.answer(request(), eviction.DRAINING))["response"]
    assert answer["allowed"] is False
    status = answer["status"]
    assert (status["code"], status["reason"], status["details"]["retryAfterSeconds"]) == (
        429,
        "TooManyRequests",
        1,
    )
    assert status["message"].startswith("draining, retry")
