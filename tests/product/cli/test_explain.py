"""`explain` against a server that answers what the test says."""

import json
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic.cli.jobs import explain
from tests.builders import job, pods, worker
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, Commands, forbidden, status, world
from tests.product.diagnosis.said import STALLED


async def test_a_job_into_which_nobody_looks(command: Commands) -> None:
    all_train, said = await command.explain(world())
    assert all_train is None
    assert said.startswith(
        "default/train: Running, 2 of 2 listed; whether they train is not known: only exec can"
    )
    assert said.count(" is listed, and the launcher knows it") == 2
    assert "training: null\nallTrain: null\n" in (await command.explain(world(), output="yaml"))[1]


async def test_one_worker_that_does_not_by_its_number(command: Commands) -> None:
    pending = worlds.worker(2, phase="Pending")
    pending["spec"]["nodeName"] = ""
    unscheduled = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no GPU left",
    }
    pending["status"]["conditions"].append(unscheduled)
    all_train, said = await command.explain(world(pending, replicas=3), worker="2", output="json")
    assert not all_train
    [found] = json.loads(said)["workers"]
    assert (found["name"], found["cause"]["cause"]) == ("train-worker-2", "not-scheduled")
    assert "no GPU left" in found["cause"]["says"]


def about_to_go(of: int) -> Answers:
    """The node of one pod has a taint: 0 is the launcher, 2 a worker that is not published."""
    pods = [worlds.launcher(), worlds.worker(0), worlds.worker(1)]
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    pods[of]["spec"]["nodeName"] = "spot-1"
    node = web.json_response({"metadata": {"name": "spot-1"}, "spec": {"taints": [taint]}})
    return {"pods": pods, "configmaps": [worlds.config_map(worlds.workers(0))], "spot-1": node}


EVENT = {
    "metadata": {"name": "e"},
    "reason": "MPIJobFailed",
    "message": "exceeded quota",
    "source": {},
}
TAKEN = {
    "metadata": {"name": "t"},
    "reason": "ErrResourceExists",
    "message": 'Resource "train-config" of Kind "ConfigMap" already exists and is not managed by MPIJob',
    "source": {},
}
DENIED: Answers = {
    "node-0": forbidden("nodes"),
    "roles": forbidden("roles"),
    "mpijob-elastic-controller": forbidden("leases"),
}
HOOK = {"clientConfig": {"caBundle": "x", "service": {"namespace": "served-here", "name": "w"}}}
NOWHERE: Answers = {
    "mpijob-elastic": web.json_response({"webhooks": [HOOK]}),
    "mpijob-elastic-controller": status(404, "NotFound"),
}


@pytest.mark.parametrize(
    ("different", "options", "all_train", "words"),
    [
        pytest.param(
            {"replicas": 3, "events": web.json_response({"metadata": {}, "items": [EVENT]})},
            {},
            False,
            "MPIJobFailed: exceeded quota",
            id="why a worker is not created is in the Events of the job",
        ),
        pytest.param(
            {
                "mpijobs": [worlds.mpi_job(conditions=())],
                "events": web.json_response({"metadata": {}, "items": [TAKEN]}),
            },
            {},
            False,
            "cause: name-taken",
            id="why the operator reports nothing is in the Events of the job",
        ),
        pytest.param(DENIED, {}, None, "listed", id="without rights to look around"),
        pytest.param(
            {"exec": forbidden("pods/exec")},
            {"look": True},
            None,
            "whether they train is not known: your account may not exec into pods of namespace",
            id="without a right to exec the looks say so",
        ),
        pytest.param(
            {"exec": status(403, "Forbidden", "a policy says no")},
            {"look": True},
            None,
            "is not known: exec into pods is refused: a policy says no",
            id="what a policy says stands in the heading without its code",
        ),
        pytest.param(
            {"log": web.Response(body=STALLED)},
            {},
            False,
            "the other ranks have waited for more than 60 s for rank 1 (its worker is not known), 2",
            id="missing ranks are in the launcher's log",
        ),
        pytest.param(
            {"log": forbidden("pods/log")}, {}, None, "listed", id="without a right to read logs"
        ),
        pytest.param(
            NOWHERE,
            {},
            False,
            "not installed in namespace served-here",
            id="the Lease is looked for where the webhook is served",
        ),
        pytest.param(
            {
                "mpijob-elastic": status(404, "NotFound"),
                "mpijob-elastic-controller": status(404, "NotFound"),
            },
            {},
            False,
            "mpijob-elastic is not installed in this cluster, so train keeps its present size "
            "cause: no-controller next: mpijob-elastic install ",
            id="nothing is installed",
        ),
        pytest.param(
            about_to_go(of=0),
            {},
            False,
            "train-launcher (taint karpenter.sh/disrupted on node spot-1) cannot be moved",
            id="a launcher whose node is about to go",
        ),
        pytest.param(
            about_to_go(of=2),
            {},
            False,
            "train-worker-1 is leaving: its node or pod is being removed (taint karpenter.sh/disrupted)",
            id="a worker whose node is about to go",
        ),
    ],
)
async def test_what_the_cluster_tells(
    command: Commands,
    different: dict[str, Any],
    options: dict[str, Any],
    all_train: bool | None,
    words: str,
) -> None:
    found, said = await command.explain(world(**different), **options)
    assert found is all_train
    assert words in said
    assert all_train is False or "no-controller" not in said


VIEW = job(2, workers=(worker(0), worker(4)))


@pytest.mark.parametrize(("said", "index"), [("1", 1), ("0", 0), ("4", 4), ("j-worker-4", 4)])
def test_a_worker_is_known_by_its_number_or_its_pod(said: str, index: int) -> None:
    assert (explain.worker_name(VIEW, said),) == pods(index)


@pytest.mark.parametrize("said", ["1", "j-worker-1"])
def test_a_parked_worker_is_answered_with_how_to_have_it_back(said: str) -> None:
    with pytest.raises(
        explain.NoSuchWorker,
        match=r"j-worker-1 is parked.*`mpijob-elastic scaleout j --pod j-worker-1 -n",
    ):
        explain.worker_name(job(2, workers=(worker(0),), parked=(1,)), said)


@pytest.mark.parametrize("said", ["2", "worker-1", "j-launcher", "99999999999"])
def test_an_unknown_worker_is_answered_with_how_to_name_a_worker(said: str) -> None:
    with pytest.raises(
        explain.NoSuchWorker,
        match=f"j has 3 workers, but no worker {said}: give a number like 0 or a pod like j-worker-0",
    ):
        explain.worker_name(VIEW, said)
