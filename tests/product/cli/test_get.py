"""`get` against a server that answers what the test says, above all what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import fetch, get
from mpijob_elastic.kube import errors
from mpijob_elastic.telemetry.terminal import printable
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, forbidden, serving, status


def two_jobs() -> Answers:
    pods = [worlds.launcher(), worlds.worker(0), worlds.worker(1), worlds.worker(0, job="other")]
    config = worlds.config_map(worlds.workers(0, 1))
    jobs = [worlds.mpi_job(), worlds.mpi_job(name="other", replicas=1)]
    return {"mpijobs": jobs, "pods": pods, "configmaps": [config], "roles": [worlds.role(worlds.workers(0, 1))]}


async def test_all_jobs_are_read_by_four_lists_however_many_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, two_jobs()) as (where, asked):
        await get.get(where, job=None, output="table")
    first = [request for request in asked if "continue" not in request]
    assert len(first) == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines[1:]] == [
        ["other", "Running", "1", "1", "0"],
        ["train", "Running", "2", "2", "2"],
    ]


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_programs_get_an_object_for_one_job_and_items_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, read: Any
) -> None:
    async with serving(tmp_path, two_jobs()) as (where, _):
        await get.get(where, job="train", output=output)
        assert read(capsys.readouterr().out)["hosts"] == ["train-worker-0:1", "train-worker-1:1"]
        await get.get(where, job=None, output=output)
        assert [item["name"] for item in read(capsys.readouterr().out)["items"]] == ["other", "train"]


async def test_no_job_at_all_is_said_and_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving(tmp_path, {}) as (where, _):
        await get.get(where, job=None, output="table")
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", "No MPIJobs found in namespace default.\n")
        await get.get(where, job=None, output="json")
        assert json.loads(capsys.readouterr().out) == {"items": []}


@pytest.mark.parametrize(
    ("job", "hint"),
    [("trian", "did you mean train?"), ("zzz", "existing jobs: other, train"), ("othr", "did you mean other?")],
)
async def test_a_job_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path, job: str, hint: str) -> None:
    async with serving(tmp_path, two_jobs()) as (where, _):
        with pytest.raises(get.NoSuchJob) as raised:
            await get.get(where, job=job, output="table")
    assert str(raised.value) == f"no MPIJob {job} in namespace default; {hint}"


async def test_where_there_is_no_job_other_namespaces_are_pointed_to(tmp_path: Path) -> None:
    async with serving(tmp_path, {}) as (where, _):
        with pytest.raises(get.NoSuchJob, match="choose another namespace with -n"):
            await get.get(where, job="train", output="table")


async def test_a_cluster_without_the_operators_crd_is_named(tmp_path: Path) -> None:
    missing = web.Response(text="404 page not found\n", status=404)
    async with serving(tmp_path, {"mpijobs": missing}) as (where, _):
        with pytest.raises(fetch.NotServed, match=r"does not serve MPIJob kubeflow.org/v1; install mpi-operator"):
            await get.get(where, job=None, output="table")


@pytest.mark.parametrize("resource", ["mpijobs", "pods", "configmaps"])
async def test_what_may_not_be_read_is_named(tmp_path: Path, resource: str) -> None:
    async with serving(tmp_path, {**two_jobs(), resource: forbidden(resource)}) as (where, _):
        with pytest.raises(errors.Forbidden, match=f'cannot list resource "{resource}"'):
            await get.get(where, job="train", output="table")


async def test_roles_that_may_not_be_read_only_cost_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, {**two_jobs(), "roles": forbidden("roles")}) as (where, _):
        await get.get(where, job="train", output="table")
    page = capsys.readouterr().out.splitlines()
    assert page[-1].startswith("  unknown: you lack the right to read the launcher's Role")
    assert page[10].split()[4] == "?"


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_what_a_machine_reads_is_what_the_user_wrote(output: str, read: Callable[[str], object]) -> None:
    said = {"notices": ["Größe \u00a0 \u202ereversed\u200b", "\x1b[2J", "two\nlines"]}
    shown = "\n".join(map(printable, get.WRITERS[output](said).split("\n")))
    assert read(shown) == said


def queued(*, label: str = "team", reserved: bool = False) -> Answers:
    """A job that waits in a queue, unless it has quota, and another that is before it."""
    job, waits = worlds.mpi_job(replicas=1, conditions=["Created"]), worlds.worker(0, phase="Pending")
    job["metadata"]["labels"] = {names.LABEL_QUEUE: label}
    waits["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    asked = {"type": "QuotaReserved", "status": str(reserved), "message": "1 more needed"}
    mine = {
        **worlds.role([]),
        "spec": {"queueName": "team", "podSets": [{"name": "workers", "count": 1}]},
        "status": {"conditions": [asked]},
    }
    first = {"metadata": {"name": "first", "namespace": "default", "uid": "f"}, "spec": {**mine["spec"], "priority": 1}}
    config = worlds.config_map([])
    return {"mpijobs": [job], "pods": [waits], "configmaps": [config], "workloads": [first, mine]}


@pytest.mark.parametrize("newer", [{}, {"v1beta2/workloads": status(404, "NotFound")}], ids=["0.19", "0.14"])
async def test_a_queued_job_says_its_place_and_what_it_waits_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], newer: Answers
) -> None:
    async with serving(tmp_path, {**queued(), **newer}) as (where, _):
        await get.get(where, job="train", output="table")
    lines = capsys.readouterr().out.splitlines()
    assert "State:          Queued, " in "\n".join(lines)
    assert "Queue:          team; train-launcher waits at place 2: 1 more needed" in lines
    [row] = [line for line in lines if line.startswith("train-worker-0")]
    assert (row.split()[1], row.split()[-1]) == ("Queued", "least")


async def test_a_job_whose_label_changes_says_which_queue_gives_it_quota(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, queued(label="other", reserved=True)) as (where, _):
        await get.get(where, job="train", output="table")
    assert "Queue:          team" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("answer", [forbidden("workloads"), status(404, "NotFound")])
async def test_who_may_not_read_workloads_or_has_none_gets_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: web.Response
) -> None:
    async with serving(tmp_path, {**queued(), "workloads": answer}) as (where, _):
        await get.get(where, job="train", output="json")
    read = json.loads(capsys.readouterr().out)
    assert (read["queue"], read["workers"][0]["phase"]) == (None, "Queued")


def enqueued(phase: str = "Enqueued") -> Answers:
    """A job that waits in KubeQueue."""
    job, waits = worlds.mpi_job(replicas=1, conditions=["Created"]), worlds.worker(0, phase="Pending")
    job["metadata"]["annotations"] = {names.KUBEQUEUE_SUSPEND: "true"}
    waits["spec"]["schedulingGates"] = [{"name": names.GATE_SUSPENDED}]
    [metadata] = [worlds.role([])["metadata"] | {"name": "train-mpi-qu"}]
    unit = {"metadata": metadata, "spec": {"queue": "team"}, "status": {"phase": phase, "message": "1 more\nneeded"}}
    return {"mpijobs": [job], "pods": [waits], "configmaps": [worlds.config_map([])], "queueunits": [unit]}


@pytest.mark.parametrize(("phase", "state"), [("", "Enqueued"), ("Enqueued", "Enqueued"), ("Reserved", "Reserved")])
async def test_a_job_in_kube_queue_shows_the_phase_of_its_unit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], phase: str, state: str
) -> None:
    async with serving(tmp_path, enqueued(phase)) as (where, _):
        await get.get(where, job="train", output="table")
        lines = capsys.readouterr().out.splitlines()
        await get.get(where, job=None, output="table")
    assert f"State:          {state}, " in "\n".join(lines)
    assert "Queue:          team; train-mpi-qu waits: 1 more needed" in lines
    assert not [line for line in lines if line.endswith("QUOTA")]
    assert capsys.readouterr().out.splitlines()[1].split()[1] == state


@pytest.mark.parametrize("answer", [forbidden("queueunits"), status(404, "NotFound"), []])
async def test_who_may_not_read_queue_units_or_has_none_reads_that_the_job_is_suspended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: web.Response | list[worlds.Object]
) -> None:
    async with serving(tmp_path, {**enqueued(), "queueunits": answer}) as (where, _):
        await get.get(where, job="train", output="json")
    read = json.loads(capsys.readouterr().out)
    assert (read["queue"], read["state"]) == (None, "Suspended")
