"""`get` against a server that answers what the test says, above all what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import explain, report, show, snapshot, table
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors, kubectl_yaml
from mpijob_elastic.telemetry.escapes import printable
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, Commands, forbidden, serving, status


def two_jobs() -> Answers:
    pods = [worlds.launcher(), worlds.worker(0), worlds.worker(1), worlds.worker(0, job="other")]
    config = worlds.config_map(worlds.workers(0, 1))
    jobs = [worlds.mpi_job(), worlds.mpi_job(name="other", replicas=1)]
    return {
        "mpijobs": jobs,
        "pods": pods,
        "configmaps": [config],
        "roles": [worlds.role(worlds.workers(0, 1))],
    }


async def test_all_jobs_are_read_by_four_lists_however_many_they_are(command: Commands) -> None:
    lines = (await command.get(two_jobs(), job=None)).splitlines()
    looks = [request for request in command.asked if "/exec?" in request]
    rest = [request for request in command.asked if "/exec?" not in request]
    *lists, lease = [request for request in rest if "continue" not in request]
    assert len(lists) == 4
    assert lease.endswith(f"/leases/{names.LEASE}")
    assert {look.partition("/exec?")[0].rpartition("/")[2] for look in looks} == {"train-worker-0"}
    assert [line.split()[:5] for line in lines[1:]] == [
        ["other", "Running", "-", "1", "1"],
        ["train", "Running", "-", "2", "2"],
    ]


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_programs_get_an_object_for_one_job_and_items_for_all(
    command: Commands, output: str, read: Any
) -> None:
    assert read(await command.get(two_jobs(), output=output))["hosts"] == [
        "train-worker-0:1",
        "train-worker-1:1",
    ]
    everything = read(await command.get(two_jobs(), job=None, output=output))
    assert [item["name"] for item in everything["items"]] == ["other", "train"]
    assert read(await command.get({}, job=None, output=output)) == {"items": []}


def test_a_name_that_looks_like_a_number_is_printed_as_a_name() -> None:
    value = {"name": "1e4", "namespace": "0899", "notices": ["y", "22:22"]}
    lines = table.serialized(value, "yaml")
    assert kubectl_yaml.read_all("\n".join(lines)) == [value]


FAR = "9999-12-31T23:59:59-23:59"


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        pytest.param(
            "mpijobs", lambda job: job["metadata"].update(creationTimestamp=FAR), id="created"
        ),
        pytest.param("mpijobs", lambda job: job["status"].update(completionTime=FAR), id="ended"),
        pytest.param(
            "pods", lambda pod: pod["metadata"].update(creationTimestamp=FAR), id="pod created"
        ),
        pytest.param(
            "pods",
            lambda pod: pod["status"].update(
                conditions=[{"type": "Ready", "status": "True", "lastTransitionTime": FAR}]
            ),
            id="pod ready",
        ),
    ],
)
async def test_a_time_that_no_calendar_holds_is_a_line_like_any_other(
    command: Commands, kind: str, spoil: Callable[[dict[str, Any]], None]
) -> None:
    answers = two_jobs()
    objects = answers[kind]
    assert isinstance(objects, list)
    for found in objects:
        if "other" not in found["metadata"]["name"]:
            spoil(found)
    if kind == "mpijobs":
        objects[0]["status"]["conditions"].append({"type": "Succeeded", "status": "True"})
    lines = (await command.get(answers, job=None)).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["other", "train"]
    assert json.loads(await command.get(answers, job=None, output="json"))["items"]
    assert (await command.explain(answers))[1]


@pytest.mark.parametrize("broken", ["derive", "build", "diagnose"])
async def test_what_is_wrong_with_one_job_is_the_line_of_that_job(
    command: Commands, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    module = {"derive": snapshot, "build": report, "diagnose": explain}[broken]
    real = getattr(module, broken)

    def failing(found: Any, *more: Any, **options: Any) -> Any:
        view = getattr(found, "view", found)
        if view.name == "train":
            raise OverflowError("no such number")
        return real(found, *more, **options)

    monkeypatch.setattr(module, broken, failing)
    printed = await command.get(two_jobs(), job=None, output="wide")
    other, train = printed.splitlines()[1:]
    assert other.split()[:2] == ["other", "Running"]
    assert train.split()[0] == "train"
    all_train, words = await command.explain(two_jobs())
    if broken == "build":
        assert train.split()[1] == report.UNREADABLE
    else:
        assert not all_train
        assert "default/train: Unreadable" in words
        assert "no such number" in words


async def test_no_job_at_all_is_said_and_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, {}) as (where, _):
        await show.get([where], JobsAsked())
    assert capsys.readouterr() == ("", "No resources found in default namespace.\n")


def clusters(where: Where, **servers: str | None) -> list[Where]:
    """One for each context; a server of None is that of `where`."""
    assert where.kubeconfig
    config = yaml.safe_load(where.kubeconfig.read_text())
    [first] = config["clusters"]
    config["clusters"] = [
        {"name": name, "cluster": {"server": server or first["cluster"]["server"]}}
        for name, server in servers.items()
    ]
    user = config["contexts"][0]["context"]
    config["contexts"] = [{"name": name, "context": {**user, "cluster": name}} for name in servers]
    where.kubeconfig.write_text(yaml.safe_dump(config))
    return [Where(kubeconfig=where.kubeconfig, context=name) for name in servers]


async def test_several_clusters_are_one_table_without_the_one_that_is_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, two_jobs()) as (where, _):
        several = clusters(where, east=None, away="http://127.0.0.1:1", west=None)
        assert await show.get(several, JobsAsked()) == Exit.NOT_KNOWN
        printed = capsys.readouterr()
        assert [line.split()[:4] for line in printed.out.splitlines()] == [
            ["CONTEXT", "NAMESPACE", "NAME", "STATE"],
            ["east", "default", "other", "Running"],
            ["east", "default", "train", "Running"],
            ["west", "default", "other", "Running"],
            ["west", "default", "train", "Running"],
        ]
        [line] = printed.err.splitlines()
        assert line.startswith("mpijob-elastic: context away: GET http://127.0.0.1:1/")

        assert await show.get([several[0], several[2]], JobsAsked(output="json")) == Exit.DONE
        assert [item["context"] for item in json.loads(capsys.readouterr().out)["items"]] == [
            "east",
            "east",
            "west",
            "west",
        ]
        with pytest.raises(errors.Unreachable):
            await show.get([several[1]], JobsAsked())


async def test_a_name_is_what_kubectl_takes(command: Commands) -> None:
    assert await command.get(two_jobs(), job=None, output="name") == (
        "mpijob.kubeflow.org/other\nmpijob.kubeflow.org/train\n"
    )
    assert not [request for request in command.asked if "/exec?" in request]


def trains(*jobs: str) -> Answers:
    """Jobs of one worker each that train, and nobody may exec into them."""
    pods = [pod for job in jobs for pod in (worlds.launcher(job=job), worlds.worker(0, job=job))]
    return {
        "mpijobs": [worlds.mpi_job(name=job, replicas=1) for job in jobs],
        "pods": pods,
        "configmaps": [worlds.config_map([names.worker(job, 0)], job=job) for job in jobs],
        "exec": forbidden("pods/exec"),
    }


@pytest.mark.parametrize("job", [None, "one"])
async def test_who_may_not_exec_is_told_so_once(
    job: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, trains("one", "two")) as (where, _):
        assert await show.get([where], JobsAsked(jobs=[job] if job else [])) == Exit.DONE
    printed = capsys.readouterr()
    assert printed.err == (
        "Warning: progress is not shown, because your account may not exec into pods of namespace "
        "default (pods/exec)\n"
    )
    assert "one" in printed.out


async def test_who_may_not_exec_is_told_nothing_where_nothing_trains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = trains("one")
    ended["pods"] = [worlds.launcher(job="one", phase="Succeeded"), worlds.worker(0, job="one")]
    async with serving(tmp_path, ended) as (where, _):
        await show.get([where], JobsAsked(jobs=["one"]))
    assert capsys.readouterr().err == ""


NO_CRD = web.Response(text="404 page not found\n", status=404)


@pytest.mark.parametrize(
    ("answers", "job", "error", "words"),
    [
        (
            two_jobs(),
            "trian",
            snapshot.NoSuchJob,
            "no MPIJob trian in namespace default; did you mean train[?]$",
        ),
        (two_jobs(), "othr", snapshot.NoSuchJob, "did you mean other[?]$"),
        (
            two_jobs(),
            "zzz",
            snapshot.NoSuchJob,
            "no MPIJob zzz in namespace default; existing jobs: other, train$",
        ),
        ({}, "train", snapshot.NoSuchJob, "choose another namespace with -n"),
        (
            {"mpijobs": NO_CRD},
            None,
            snapshot.NotServed,
            "does not serve MPIJob kubeflow.org/v1; install mpi-operator",
        ),
        *(
            (
                {**two_jobs(), kind: forbidden(kind)},
                "train",
                errors.Forbidden,
                f'cannot list resource "{kind}"',
            )
            for kind in ("mpijobs", "pods", "configmaps")
        ),
    ],
)
async def test_what_cannot_be_shown_is_told_with_what_to_do(
    command: Commands, answers: Answers, job: str | None, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await command.get(answers, job=job)


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_what_a_machine_reads_is_what_the_user_wrote(
    output: str, read: Callable[[str], object]
) -> None:
    said = {"notices": ["Größe \u00a0 \u202ereversed\u200b", "\x1b[2J", "two\nlines"]}
    shown = "\n".join(map(printable, table.serialized(said, output)))
    assert read(shown) == said


@pytest.mark.parametrize(
    ("containers", "parked", "gpus"),
    [
        ([{}], None, 0),
        ([{"limits": {"nvidia.com/gpu": "2", "cpu": "8"}}], None, 6),
        (
            [
                {"requests": {"amd.com/gpu": 1}, "limits": {"amd.com/gpu": 1}},
                {"limits": {"amd.com/gpu": "1"}},
            ],
            None,
            6,
        ),
        # Slices are never added to whole GPUs: tests/product/model/test_devices.py.
        ([{"limits": {"nvidia.com/gpu.shared": "1"}}], "1", 0),
        ([{"limits": {"aliyun.com/gpu-mem": "8", "rdma/hca": "1"}}], None, 0),
        ([{"limits": {"nvidia.com/mig-1g.5gb": "1"}}], None, 0),
        ([{"limits": {"nvidia.com/gpu": "many"}}], None, 0),
    ],
)
async def test_the_gpus_of_the_workers_that_are_not_parked_are_counted(
    command: Commands, containers: list[Any], parked: str | None, gpus: int
) -> None:
    job = worlds.mpi_job(
        replicas=3, annotations={"mpijob-elastic/parked": parked} if parked else {}
    )
    template = {
        "spec": {
            "containers": [
                {"name": f"c{at}", "resources": one} for at, one in enumerate(containers)
            ]
        }
    }
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template
    read = json.loads(await command.get({**two_jobs(), "mpijobs": [job]}, output="json"))
    assert (read["gpus"], read["parked"]) == (gpus, [int(parked)] if parked else [])


def queued(*, label: str = "team", reserved: bool = False) -> Answers:
    """A job that waits in a queue, unless it has quota, and another that is before it."""
    job, waits = (
        worlds.mpi_job(replicas=1, conditions=["Created"]),
        worlds.worker(0, phase="Pending"),
    )
    job["metadata"]["labels"] = {LABEL_QUEUE: label}
    waits["spec"]["schedulingGates"] = [{"name": names.GATE_QUEUED}]
    asked = {"type": "QuotaReserved", "status": str(reserved), "message": "1 more needed"}
    mine = {
        **worlds.role([]),
        "spec": {"queueName": "team", "podSets": [{"name": "workers", "count": 1}]},
        "status": {"conditions": [asked]},
    }
    first = {
        "metadata": {"name": "first", "namespace": "default", "uid": "f"},
        "spec": {**mine["spec"], "priority": 1},
    }
    config = worlds.config_map([])
    return {"mpijobs": [job], "pods": [waits], "configmaps": [config], "workloads": [first, mine]}


async def test_a_queued_job_says_its_place_and_what_it_waits_for(command: Commands) -> None:
    lines = (await command.get(queued())).splitlines()
    assert "State:          Queued, " in "\n".join(lines)
    assert "Queue:          team; train-launcher waits at place 2: 1 more needed" in lines
    [row] = [line for line in lines if line.startswith("train-worker-0")]
    assert (row.split()[1], row.split()[-1]) == ("Queued", "least")


async def test_a_job_whose_label_changes_says_which_queue_gives_it_quota(command: Commands) -> None:
    assert (
        "Queue:          team"
        in (await command.get(queued(label="other", reserved=True))).splitlines()
    )


@pytest.mark.parametrize("answer", [forbidden("workloads"), status(404, "NotFound")])
async def test_who_may_not_read_a_queue_gets_the_rest(
    command: Commands, answer: web.Response
) -> None:
    read = json.loads(await command.get({**queued(), "workloads": answer}, output="json"))
    assert (read["queue"], read["workers"][0]["phase"]) == (None, "Queued")
