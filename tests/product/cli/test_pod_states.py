"""The state of a pod in the words of kubelet and scheduler."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic.cli.jobs import pod_states
from mpijob_elastic.explain.facts import Pod, Stuck
from mpijob_elastic.observe.pod import decode


def read(status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    raw = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}, "status": status or {}}
    return pod_states.of(decode(msgspec.json.encode(raw)))


def condition(kind: str, value: str, **words: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": value, **words}]}


def waiting(name: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_a_pod_that_is_well_says_nothing() -> None:
    assert read(condition("Ready", "True")) == Pod()
    assert pod_states.of(decode(b'{"metadata": {"name": "p"}}')) == Pod()


def test_conditions_keep_the_words_of_their_author() -> None:
    assert (
        read(condition("PodScheduled", "False", reason="Unschedulable", message="0/3\nnodes")).unscheduled
        == "0/3 nodes"
    )
    assert read(condition("PodScheduled", "False", reason="SchedulingGated")).unscheduled == "SchedulingGated"
    assert read(condition("PodScheduled", "True", message="x")).unscheduled == ""
    assert read(condition("Ready", "False", message="unready: [main]")).unready == "unready: [main]"


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_containers_on_their_way_are_not_stuck(reason: str) -> None:
    assert read({"containerStatuses": [waiting("main", reason)]}).stuck is None


def test_the_first_container_that_is_stuck_is_reported_init_containers_first() -> None:
    status = {
        "containerStatuses": [waiting("main", "ImagePullBackOff")],
        "initContainerStatuses": [waiting("prepare", "ErrImagePull", "no such\nimage")],
    }
    assert read(status).stuck == Stuck(container="prepare", reason="ErrImagePull", message="no such image")


def test_how_containers_ended_now_or_before_a_restart() -> None:
    status = {
        "containerStatuses": [
            {"name": "main", "lastState": {"terminated": {"reason": "OOMKilled"}}},
            {"name": "side", "state": {"terminated": {"reason": "Completed"}}},
        ]
    }
    assert read(status).ended == ("main: OOMKilled",)
