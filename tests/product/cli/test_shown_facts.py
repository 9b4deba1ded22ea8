"""An MPIJob and a pod as they are read for showing."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.explain.facts import Pod, Stuck
from tests.product.cli import worlds


@pytest.mark.parametrize(
    ("conditions", "more", "state"),
    [
        ([], {}, "Pending"),
        (["Created"], {}, "Created"),
        (["Created", "Running"], {}, "Running"),
        (["Created", "Restarting"], {}, "Restarting"),
        (["Created", "Succeeded"], {"completionTime": worlds.CREATED_TEXT}, "Succeeded"),
        (["Created", "Failed"], {"completionTime": worlds.CREATED_TEXT}, "Failed"),
        # An evicted worker leaves Failed behind for ever, although the job goes on.
        (["Created", "Failed", "Running"], {}, "Running"),
    ],
)
def test_the_state_is_one_word_for_the_conditions(conditions: list[str], more: dict[str, Any], state: str) -> None:
    job = worlds.mpi_job(conditions=conditions, **more)
    assert shown_facts.read_job(json.dumps(job).encode()).state == state


def test_a_job_that_is_being_deleted_says_so_whatever_else_it_is() -> None:
    job = worlds.mpi_job(conditions=["Succeeded"])
    job["metadata"]["deletionTimestamp"] = worlds.CREATED_TEXT
    assert shown_facts.read_job(json.dumps(job).encode()).state == "Terminating"


@pytest.mark.parametrize(("condition", "state"), [("Running", "Suspended"), ("Succeeded", "Succeeded")])
def test_a_job_that_is_suspended_says_so_unless_it_is_over(condition: str, state: str) -> None:
    job = worlds.mpi_job(conditions=["Created", condition])
    job["metadata"]["annotations"] = {"mpijob-elastic/enabled": "true", "mpijob-elastic/suspend": "true"}
    assert shown_facts.read_job(json.dumps(job).encode()).state == state


def test_when_a_job_was_created() -> None:
    assert shown_facts.read_job(json.dumps(worlds.mpi_job()).encode()).facts.created_at == worlds.CREATED


def test_the_node_of_a_pod_is_empty_until_it_is_scheduled() -> None:
    pod = worlds.worker(3)
    assert shown_facts.read_pod(json.dumps(pod).encode()).facts.node == "node-3"
    del pod["spec"]
    assert not shown_facts.read_pod(json.dumps(pod).encode()).facts.node


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    raw = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}, "status": status or {}}
    return shown_facts.read_pod(msgspec.json.encode(raw)).state


def condition(kind: str, value: str, **words: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": value, **words}]}


def waiting(name: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_a_pod_that_is_well_says_nothing() -> None:
    assert pod(condition("Ready", "True")) == Pod()
    assert shown_facts.read_pod(b'{"metadata": {"name": "p"}}').state == Pod()


def test_conditions_keep_the_words_of_their_author() -> None:
    assert (
        pod(condition("PodScheduled", "False", reason="Unschedulable", message="0/3\nnodes")).unscheduled == "0/3 nodes"
    )
    assert pod(condition("PodScheduled", "False", reason="SchedulingGated")).unscheduled == "SchedulingGated"
    assert pod(condition("PodScheduled", "True", message="x")).unscheduled == ""
    assert pod(condition("Ready", "False", message="unready: [main]")).unready == "unready: [main]"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_containers_on_their_way_are_not_stuck(reason: str) -> None:
    assert pod({"containerStatuses": [waiting("main", reason)]}).stuck is None


def test_the_first_container_that_is_stuck_is_reported_init_containers_first() -> None:
    status = {
        "containerStatuses": [waiting("main", "ImagePullBackOff")],
        "initContainerStatuses": [waiting("prepare", "ErrImagePull", "no such\nimage")],
    }
    assert pod(status).stuck == Stuck(container="prepare", reason="ErrImagePull", message="no such image")


def test_how_containers_ended_now_or_before_a_restart() -> None:
    status = {
        "containerStatuses": [
            {"name": "main", "lastState": {"terminated": {"reason": "OOMKilled"}}},
            {"name": "side", "state": {"terminated": {"reason": "Completed"}}},
        ]
    }
    assert pod(status).ended == ("main: OOMKilled",)
