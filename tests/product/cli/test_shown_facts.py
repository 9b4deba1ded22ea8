"""MPIJobs and pods as they are read for showing, and put together to jobs."""

import json
from typing import Any

import msgspec
import pytest

from mpijob_elastic.cli.jobs import shown_facts
from mpijob_elastic.explain.facts import Pod, Stuck
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
def test_the_state_is_one_word_for_the_conditions(conditions: list[str], more: dict[str, Any], state: str) -> None:
    job = worlds.mpi_job(conditions=conditions, **more)
    found = shown_facts.read_job(json.dumps(job).encode())
    assert (found.state, found.facts.created_at) == (state, worlds.CREATED)
    job["metadata"]["deletionTimestamp"] = worlds.CREATED_TEXT
    assert shown_facts.read_job(json.dumps(job).encode()).state == "Terminating"


def test_the_node_of_a_pod_is_empty_until_it_is_scheduled() -> None:
    pod = worlds.worker(3)
    assert shown_facts.read_pod(json.dumps(pod).encode()).facts.node == "node-3"
    del pod["spec"]
    assert not shown_facts.read_pod(json.dumps(pod).encode()).facts.node


def pod(status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    raw = {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": "n"}, "status": status or {}}
    return shown_facts.read_pod(msgspec.json.encode(raw)).state


def condition(kind: str, value: str, **words: str) -> Pod:
    return pod({"conditions": [{"type": kind, "status": value, **words}]})


def waiting(name: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


def test_conditions_keep_the_words_of_their_author() -> None:
    lacking = condition("PodScheduled", "False", reason="Unschedulable", message="0/3\nnodes")
    assert lacking == Pod(unscheduled="0/3 nodes")
    assert condition("PodScheduled", "False", reason="SchedulingGated") == Pod(unscheduled="SchedulingGated")
    assert condition("PodScheduled", "True", message="x") == condition("Ready", "True") == Pod()
    assert condition("Ready", "False", message="unready: [main]") == Pod(unready="unready: [main]")
    assert shown_facts.read_pod(b'{"metadata": {"name": "p"}}').state == Pod()


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


def test_jobs_of_one_name_in_two_namespaces_keep_to_their_own() -> None:
    a, b = worlds.read(
        [worlds.mpi_job(namespace="b", replicas=1), worlds.mpi_job(namespace="a", replicas=2)],
        pods=[worlds.worker(0, namespace="a"), worlds.worker(1, namespace="a"), worlds.worker(0, namespace="b")],
        configs=[worlds.config_map(worlds.workers(0), namespace="b")],
        roles=[worlds.role(worlds.workers(0, 1), namespace="a")],
    )
    assert (a.view.namespace, len(a.view.workers), a.view.config) == ("a", 2, None)
    assert a.view.role is not None
    assert (b.view.namespace, len(b.view.workers), b.view.published_pods) == ("b", 1, ("train-worker-0",))
    assert b.view.role is None
    assert list(b.pods) == ["train-worker-0"]


def test_what_an_earlier_job_of_the_name_left_is_not_shown() -> None:
    old = worlds.worker(0)
    old["metadata"]["ownerReferences"][0]["uid"] = "of an earlier job"
    [snapshot] = worlds.read([worlds.mpi_job()], pods=[old])
    assert not snapshot.view.workers


def test_jobs_are_sorted_by_namespace_and_name() -> None:
    jobs = [worlds.mpi_job(name=name, namespace=ns) for ns, name in (("b", "x"), ("a", "z"), ("a", "y"))]
    order = [(found.view.namespace, found.view.name) for found in worlds.read(jobs)]
    assert order == [("a", "y"), ("a", "z"), ("b", "x")]


def test_roles_that_may_not_be_read_differ_from_missing_roles() -> None:
    assert worlds.read([worlds.mpi_job()], roles=None)[0].role_readable is False
    assert worlds.read([worlds.mpi_job()], roles=[])[0].role_readable is True
