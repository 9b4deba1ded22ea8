"""Evictions of workers: which begin, which wait, which pass."""

import json
from typing import Any

import pytest

from lab.operator import objects as made
from mpijob_elastic import names
from mpijob_elastic.model import eviction as marks
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job_facts import JobFacts
from tests.product.webhook.objects import ELASTIC, Object, body, mpi_job
from webhook.rules import eviction, review
from webhook.rules.eviction import Step
from webhook.rules.review import Request

NOW = 1_700_000_000.0
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def job(**facts: Any) -> Object:
    return mpi_job(**{"command": ELASTIC, "conditions": ["Created", "Running"], **facts})


def known(found: Object) -> JobFacts:
    return job_facts.read(json.dumps(found).encode())


def worker(*, mark: str = "", status: Object = READY, **metadata: Any) -> Object:
    pod = made.worker(job(), 0)
    annotations = {names.EVICTION: mark} if mark else {}
    return {
        **pod,
        "metadata": {**pod["metadata"], "uid": "w", "annotations": annotations, **metadata},
        "status": status,
    }


def request(*, options: Object | None = None, **fields: Any) -> Request:
    asked: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "train-worker-0"}}
    if options is not None:
        asked["deleteOptions"] = options
    return review.parse(body(asked, **{"subResource": "eviction", **fields}))


def read(pod: Object) -> eviction.Pod:
    return eviction.pod(json.dumps(pod).encode())


def step(pod: Object, *, options: Object | None = None, of: Object | None = None) -> Step:
    return eviction.step(request(options=options), read(pod), known(of or job()), now=NOW)


@pytest.mark.parametrize(
    ("found", "may"),
    [
        (job(), True),
        (job(annotations={names.ENABLED: "true"}), True),
        (job(annotations={names.ENABLED: "false"}), False),
        (job(annotations={names.STATUS: "HandedOver: another operator"}), False),
        (job(conditions=["Created", "Succeeded"]), False),
        ({**job(), "metadata": {**job()["metadata"], "deletionTimestamp": "2026-11-23T00:00:00Z"}}, False),
    ],
)
def test_workers_of_jobs_that_go_on_may_wait(found: Object, may: bool) -> None:
    assert eviction.may_wait(request(), known(found)) is may


def test_nobody_else_waits_and_no_dry_run_does() -> None:
    assert not eviction.may_wait(request(), None)
    assert not eviction.may_wait(request(dryRun=True), known(job()))
    assert not eviction.may_wait(request(options={"dryRun": ["All"]}), known(job()))
    assert not eviction.may_wait(request(subResource=""), known(job()))
    assert not eviction.may_wait(request(operation="UPDATE"), known(job()))
    assert eviction.may_wait(request(options={"gracePeriodSeconds": 5}), known(job()))


@pytest.mark.parametrize(
    ("pod", "then"),
    [
        (worker(), Step.BEGIN),
        (worker(mark=marks.requested(NOW - 5)), Step.WAIT),
        (worker(mark=marks.requested(NOW - 59)), Step.WAIT),
        (worker(mark=marks.requested(NOW - 60)), Step.PASS),
        (worker(mark=marks.released(NOW - 5)), Step.PASS),
        # A mark that is over, from far ahead, or no mark at all: another first try.
        (worker(mark=marks.requested(NOW - 120)), Step.BEGIN),
        (worker(mark=marks.released(NOW - 60)), Step.BEGIN),
        (worker(mark=marks.requested(NOW + 600)), Step.BEGIN),
        (worker(mark="requested tomorrow"), Step.BEGIN),
        # Who does not train need not wait.
        (worker(status={"phase": "Pending"}), Step.PASS),
        (worker(status={"phase": "Running"}), Step.PASS),
        (worker(status={"phase": "Failed", "conditions": READY["conditions"]}), Step.PASS),
        (worker(deletionTimestamp="2026-11-23T00:00:00Z"), Step.PASS),
        # Nor who is not of this job.
        (worker(labels={}), Step.PASS),
        (worker(ownerReferences=[]), Step.PASS),
        (worker(ownerReferences=made.worker(job(name="other"), 0)["metadata"]["ownerReferences"]), Step.PASS),
    ],
)
def test_an_eviction_begins_waits_or_passes(pod: Object, then: Step) -> None:
    of = job()
    if pod["metadata"].get("ownerReferences") and pod["metadata"]["ownerReferences"][0]["name"] == "other":
        of["metadata"]["uid"] = "another"
    assert step(pod, of=of) is then


def test_the_drain_timeout_of_the_job_bounds_the_wait() -> None:
    short = job(annotations={names.DRAIN_TIMEOUT: "10s"})
    assert step(worker(mark=marks.requested(NOW - 9)), of=short) is Step.WAIT
    assert step(worker(mark=marks.requested(NOW - 10)), of=short) is Step.PASS


def test_an_eviction_of_another_pod_of_the_name_passes() -> None:
    assert step(worker(), options={"preconditions": {"uid": "gone"}}) is Step.PASS
    assert step(worker(), options={"preconditions": {"uid": "w"}}) is Step.BEGIN


def test_a_driver_that_sees_the_list_runs() -> None:
    pod = made.launcher(job())
    [config] = [volume["configMap"] for volume in pod["spec"]["volumes"] if volume["name"] == names.CONFIG_VOLUME]
    running = {**pod, "status": {"phase": "Running"}}
    assert not eviction.is_training(read(running), known(job()))
    config["items"].append({"key": names.KEY_DISCOVER_HOSTS, "path": names.KEY_DISCOVER_HOSTS})
    assert eviction.is_training(read(running), known(job()))
    assert not eviction.is_training(read(pod), known(job()))
    assert not eviction.is_training(read({**pod, "status": {"phase": "Succeeded"}}), known(job()))
    going = {**running, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-11-23T00:00:00Z"}}
    assert not eviction.is_training(read(going), known(job()))


def test_the_answer_is_the_one_of_a_budget() -> None:
    answer = json.loads(review.answer(request(), eviction.DRAINING))["response"]
    assert answer["allowed"] is False
    status = answer["status"]
    assert (status["code"], status["reason"], status["details"]["retryAfterSeconds"]) == (429, "TooManyRequests", 1)
    assert status["message"].startswith("draining, retry")
