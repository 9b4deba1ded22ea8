"""MPIJobs and pods as they are read for showing, and put together to jobs."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic.cli.jobs import snapshot
from mpijob_elastic.diagnosis.facts import PodTrouble, Stuck
from mpijob_elastic.model.devices import Devices
from tests.product.cli import worlds

ENDED = {"completionTime": worlds.CREATED_TEXT}
SUSPENDED = {"mpijob-elastic/enabled": "true", "mpijob-elastic/suspend": "true"}


@pytest.mark.parametrize(
    ("conditions", "more", "state"),
    [
        ([], {}, "Pending"),
        (["Created"], {}, "Created"),
        (["Created", "Running"], {}, "Running"),
        (["Created", "Restarting"], {}, "Restarting"),
        (["Created", "Succeeded"], ENDED, "Succeeded"),
        (["Created", "Failed"], ENDED, "Failed"),
        # An evicted worker leaves Failed behind for ever, although the job goes on.
        (["Created", "Failed", "Running"], {}, "Running"),
        (["Created", "Running"], {"annotations": SUSPENDED}, "Suspended"),
        (["Created", "Succeeded"], {"annotations": SUSPENDED}, "Succeeded"),
    ],
)
def test_the_state_is_one_word_for_the_conditions(
    conditions: list[str], more: dict[str, Any], state: str
) -> None:
    job = worlds.mpi_job(conditions=conditions, **more)
    found = snapshot.read_job(json.dumps(job).encode())
    assert (found.state, found.facts.created_at) == (state, worlds.CREATED)
    job["metadata"]["deletionTimestamp"] = worlds.CREATED_TEXT
    assert snapshot.read_job(json.dumps(job).encode()).state == "Terminating"


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> PodTrouble:
    raw = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}, "status": status or {}}
    return snapshot.read_pod(msgspec.json.encode(raw)).state


def condition(kind: str, value: str, **words: str) -> PodTrouble:
    return pod({"conditions": [{"type": kind, "status": value, **words}]})


def waiting(name: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_conditions_keep_the_words_of_their_author() -> None:
    lacking = condition("PodScheduled", "False", reason="Unschedulable", message="0/3\nnodes")
    assert lacking == PodTrouble(unscheduled="0/3 nodes")
    assert condition("PodScheduled", "False", reason="SchedulingGated") == PodTrouble(
        unscheduled="SchedulingGated"
    )
    assert (
        condition("PodScheduled", "True", message="x") == condition("Ready", "True") == PodTrouble()
    )
    assert condition("Ready", "False", message="unready: [main]") == PodTrouble(
        unready="unready: [main]"
    )
    assert snapshot.read_pod(b'{"metadata": {"name": "p"}}').state == PodTrouble()


def test_a_pod_shows_the_mark_of_its_gang() -> None:
    marked = b'{"metadata": {"name": "p", "annotations": {"scheduling.k8s.io/group-name": "j"}}}'
    assert snapshot.read_pod(marked).facts.grouped


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_containers_on_their_way_are_not_stuck(reason: str) -> None:
    assert pod({"containerStatuses": [waiting("main", reason)]}).stuck is None


def test_the_first_container_that_is_stuck_is_reported_init_containers_first() -> None:
    status = {
        "containerStatuses": [waiting("main", "ImagePullBackOff")],
        "initContainerStatuses": [waiting("prepare", "ErrImagePull", "no such\nimage")],
    }
    assert pod(status).stuck == Stuck(
        container="prepare", reason="ErrImagePull", message="no such image"
    )


def test_how_containers_ended_now_or_before_a_restart() -> None:
    status = {
        "containerStatuses": [
            {"name": "main", "lastState": {"terminated": {"reason": "OOMKilled"}}},
            {"name": "side", "state": {"terminated": {"reason": "Completed"}}},
        ]
    }
    assert pod(status).ended == ("main: OOMKilled",)


def test_jobs_of_one_name_in_two_namespaces_keep_to_their_own() -> None:
    a, b = worlds.read(
        [worlds.mpi_job(namespace="b", replicas=1), worlds.mpi_job(namespace="a", replicas=2)],
        pods=[
            worlds.worker(0, namespace="a"),
            worlds.worker(1, namespace="a"),
            worlds.worker(0, namespace="b"),
        ],
        configs=[worlds.config_map(worlds.workers(0), namespace="b")],
        roles=[worlds.role(worlds.workers(0, 1), namespace="a")],
    )
    assert (a.view.namespace, len(a.view.workers), a.view.config) == ("a", 2, None)
    assert a.view.role is not None
    assert (b.view.namespace, len(b.view.workers), b.view.published_pods) == (
        "b",
        1,
        ("train-worker-0",),
    )
    assert b.view.role is None
    assert list(b.pods) == ["train-worker-0"]


@pytest.mark.parametrize(("length", "selects"), [(63, True), (64, False)])
def test_a_name_that_is_too_long_for_a_label_is_in_no_selector(length: int, selects: bool) -> None:
    chosen = snapshot.Selection(namespace="default", job="a" * length)
    assert ("mpi-job-name=a" in chosen.pods.query()["labelSelector"]) is selects


def test_the_limits_of_all_containers_count() -> None:
    """Requests without a limit do not: the API server takes no such amount of a device."""
    job = worlds.mpi_job()
    containers = [
        {"name": "worker", "resources": {"limits": {"nvidia.com/gpu": "4", "cpu": "8"}}},
        {"name": "more", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "2"}}},
        {"name": "none", "resources": {"requests": {"amd.com/gpu": "1"}}},
    ]
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] = containers
    found = snapshot.read_job(json.dumps(job).encode()).facts.devices
    assert found == Devices(whole=4, slices={"nvidia.com/mig-1g.10gb": 2})
