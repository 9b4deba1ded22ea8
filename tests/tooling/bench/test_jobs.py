"""The measured jobs, and what became of them."""

from typing import Any

import msgspec
import pytest

from bench.jobs import found, manifest
from mpijob_elastic import names
from mpijob_elastic.model import job_facts

RIGHT = {"train-worker-0": "Running", "train-worker-1": "Running"}


def objects(
    *, role: tuple[int, ...] = (0, 1), hosts: tuple[int, ...] = (0, 1), pods: dict[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    seen = {"resources": ["pods"], "verbs": ["get"]}
    executed = {"resources": ["pods/exec"], "resourceNames": [names.worker("train", index) for index in role]}
    script = names.discover_hosts([names.worker("train", index) for index in hosts], slots=2)
    items = [{"metadata": {"name": name}, "status": {"phase": phase}} for name, phase in (pods or RIGHT).items()]
    return {"rules": [seen, executed]}, {"data": {names.KEY_DISCOVER_HOSTS: script}}, {"items": items}


def test_a_job_that_is_right_lacks_nothing() -> None:
    assert found(*objects()).lacks("train", 2) == ""


def test_the_order_of_hosts_is_the_operators_own_affair() -> None:
    assert found(*objects(hosts=(1, 0))).lacks("train", 2) == ""


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (objects(role=(0,)), "the Role names"),
        (objects(hosts=(0,)), "discover_hosts.sh names"),
        (objects(pods={"train-worker-0": "Running"}), "worker pods are"),
        (objects(pods=RIGHT | {"train-worker-1": "Pending"}), "worker pods are"),
        (objects(pods=RIGHT | {"train-worker-2": "Running"}), "worker pods are"),
        (({}, {}, {"items": []}), "worker pods are"),
    ],
)
def test_what_a_job_lacks_is_said(given: tuple[Any, Any, Any], complaint: str) -> None:
    assert found(*given).lacks("train", 2).startswith(complaint)


def test_the_measured_job_is_elastic_and_drains_as_it_is_told() -> None:
    job = manifest("train", replicas=3, drain_timeout="0s")
    job["metadata"] |= {"namespace": "n", "uid": "u", "resourceVersion": "1"}
    facts = job_facts.read(msgspec.json.encode(job))
    assert (facts.elastic, facts.replicas, facts.policy.drain_timeout, facts.problems) == (True, 3, 0.0, ())
