"""`explain` against a server that answers what the test says."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from mpijob_elastic.cli import app
from mpijob_elastic.cli.jobs import explain
from mpijob_elastic.kube.lease_record import micro_time
from tests.builders import job, pods, worker
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, forbidden, serving, status


def lease() -> web.Response:
    """Return a Lease that a leader has just renewed."""
    spec = {"holderIdentity": "a", "renewTime": micro_time(datetime.fromtimestamp(time.time(), UTC))}
    return web.json_response({"metadata": {"name": "lease", "resourceVersion": "1"}, "spec": spec})


def world(*extra: dict[str, Any], replicas: int = 2, **answers: Any) -> Answers:
    """A job whose first two workers are published, with a refreshed launcher."""
    config = worlds.config_map(worlds.workers(0, 1))
    launcher = worlds.launcher(refreshed=worlds.shown(config, at=worlds.CREATED))
    return {
        "mpijobs": [worlds.mpi_job(replicas=replicas)],
        "pods": [launcher, worlds.worker(0), worlds.worker(1), *extra],
        "configmaps": [config],
        "roles": [worlds.role(worlds.workers(*range(replicas)))],
        "mpijob-elastic-controller": lease(),
        "events": web.json_response({"metadata": {}, "items": []}),
        **answers,
    }


async def explained(folder: Path, answers: Answers, **options: Any) -> bool | None:
    options = {"job": "train", "worker": None, "output": "table", "look": False, **options}
    async with serving(folder, answers) as (where, _):
        return await explain.explain(where, **options)


async def test_a_job_into_which_nobody_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await explained(tmp_path, world()) is None
    printed = capsys.readouterr().out
    assert printed.startswith("default/train: Running, 2 of 2 listed; whether they train is not known: only exec can")
    assert printed.count(" is listed, and the launcher knows it") == 2


async def test_one_worker_that_does_not_by_its_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pending = worlds.worker(2, phase="Pending")
    pending["spec"]["nodeName"] = ""
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU left"}
    pending["status"]["conditions"].append(unscheduled)
    assert not await explained(tmp_path, world(pending, replicas=3), worker="2", output="json")
    read = json.loads(capsys.readouterr().out)
    [found] = read["workers"]
    assert (found["name"], found["cause"]["cause"]) == ("train-worker-2", "not-scheduled")
    assert "no GPU left" in found["cause"]["says"]


async def test_why_a_worker_is_not_created_is_in_the_events_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {"metadata": {"name": "e"}, "reason": "MPIJobFailed", "message": "exceeded quota", "source": {}}
    answers = world(replicas=3, events=web.json_response({"metadata": {}, "items": [event]}))
    assert not await explained(tmp_path, answers)
    assert "MPIJobFailed: exceeded quota" in " ".join(capsys.readouterr().out.split())


async def test_without_rights_to_look_around_the_job_is_explained_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    denied: Answers = {"roles": forbidden("roles"), "mpijob-elastic-controller": forbidden("leases")}
    assert await explained(tmp_path, {**world(), **denied}) is None
    assert "no-controller" not in capsys.readouterr().out


async def test_without_a_right_to_exec_the_looks_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await explained(tmp_path, world(exec=forbidden("pods/exec")), look=True) is None
    said = '403 Forbidden: pods/exec is forbidden: User "u" cannot list resource "pods/exec"'
    assert said in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "namespace"),
    [({}, "served-here"), ({"controller_namespace": "given"}, "given")],
)
async def test_the_lease_is_looked_for_where_the_webhook_is_served_or_in_the_given_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, str], namespace: str
) -> None:
    service = {"namespace": "served-here", "name": "w"}
    configuration = web.json_response({"webhooks": [{"clientConfig": {"caBundle": "x", "service": service}}]})
    nowhere = {"mpijob-elastic": configuration, "mpijob-elastic-controller": status(404, "NotFound")}
    answers: Answers = {**world(), **nowhere}
    assert not await explained(tmp_path, answers, **options)
    said = " ".join(capsys.readouterr().out.split())
    assert f"not installed in namespace {namespace}" in said
    assert f"kubectl -n {namespace} get pods,leases" in said


async def test_a_launcher_whose_node_is_about_to_go(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = worlds.config_map(worlds.workers(0, 1))
    launcher = worlds.launcher(refreshed=worlds.shown(config, at=worlds.CREATED))
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    node = web.json_response({"metadata": {"name": "spot-1"}, "spec": {"taints": [taint]}})
    launcher["spec"]["nodeName"] = "spot-1"
    pods = [launcher, worlds.worker(0), worlds.worker(1)]
    assert not await explained(tmp_path, {**world(), "pods": pods, "spot-1": node})
    said = " ".join(capsys.readouterr().out.split())
    assert "train-launcher is about to be deleted (taint karpenter.sh/disrupted)" in said
    assert "nodes that stay, such as on-demand nodes" in said


async def test_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert await explained(tmp_path, world(), output="yaml") is None
    assert "training: null\nallTrain: null\n" in capsys.readouterr().out


VIEW = job(2, workers=(worker(0), worker(4)))


@pytest.mark.parametrize(
    ("said", "name"),
    [("1", pods(1)), ("0", pods(0)), ("4", pods(4)), ("j-worker-4", pods(4))],
)
def test_a_worker_is_known_by_its_number_or_its_pod(said: str, name: tuple[str]) -> None:
    assert (explain.worker_name(VIEW, said),) == name


@pytest.mark.parametrize("said", ["2", "worker-1", "j-launcher", "99999999999"])
def test_an_unknown_worker_is_answered_with_how_to_name_a_worker(said: str) -> None:
    with pytest.raises(
        explain.NoSuchWorker, match=f"j has no worker {said}; it has 3: give a number like 0 or a pod like j-worker-0"
    ):
        explain.worker_name(VIEW, said)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["explain"], 2, "Missing argument"),
        (["explain", "train", "-o", "wide"], 2, "wide"),
        (["explain", "train", "--kubeconfig", "/nowhere"], 2, "/nowhere"),
    ],
)
def test_wrong_usage(arguments: list[str], code: int, words: str) -> None:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == code
    assert words in result.output
