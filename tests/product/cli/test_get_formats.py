"""`get` with the options that kubectl has: formats of fields, orders, selectors, several names and rows."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import formats, rows, show
from mpijob_elastic.cli.jobs.report import JobReport, QueueReport
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.target import Where
from mpijob_elastic.install import Refused
from tests.doubles.api import TinyApi
from tests.product.cli import worlds
from tests.product.cli.cluster import serving
from tests.product.cli.served import NAMESPACE, put_job
from tests.product.cli.test_show import two_jobs

TRAIN = worlds.at_rest(2)
EVAL = replace(TRAIN, name="eval-10", gpus=8, min_replicas=2, notices=["A: b"])
NINE = replace(TRAIN, name="eval-9", gpus=16)


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        ("jsonpath={.items[*].name}", "train eval-10"),
        ("jsonpath={.items[*].metadata.name}", "train eval-10"),
        ("jsonpath={range .items[*]}{.name}={.gpus}{'\\n'}{end}", "train=0\neval-10=8\n"),
        ("jsonpath={.items[?(@.gpus>0)].name}", "eval-10"),
        ("jsonpath={.items[?(@.minReplicas>1)].name}", "eval-10"),
        ("jsonpath={.items[?(@.minReplicas!=1)].name}", "eval-10"),
        ("jsonpath={.items[0].workers[1].name}", "train-worker-1"),
        ("jsonpath={.items[0].created}", "2026-01-01T00:00:00Z"),
        (
            "custom-columns=NAME:.name,MIN:.minReplicas",
            "NAME      MIN\ntrain     <none>\neval-10   2\n",
        ),
        ("jsonpath={.items[?(@.queue)].name}{.items[?(@.lastScale)].name}", ""),
        ("jsonpath={.items[?(@.minReplicas)].name}", "eval-10"),
        ("jsonpath={.items[*]['metadata.name', 'state']}", "train eval-10 Running Running"),
        ("jsonpath={.items[*]['launcher.phase']}", "Running Running"),
        ("custom-columns=N:metadata.name,HOSTS:{.hosts[*]}", None),
        ("custom-columns=N:.name,X:.nothing", "N         X\ntrain     <none>\neval-10   <none>\n"),
    ],
)
def test_a_format_prints_the_fields_that_it_names(output: str, printed: str | None) -> None:
    text = formats.writer(output)([TRAIN, EVAL], single=False, headers=True)
    if printed is None:
        assert text.splitlines()[1].split() == ["train", "train-worker-0:1,train-worker-1:1"]
        return
    assert text == printed.replace("2026-01-01T00:00:00Z", worlds.CREATED_TEXT)


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        ("jsonpath={.name}", "train"),
        ("jsonpath={.items}", ""),
        ("custom-columns=NAME:.name", "train\n"),
    ],
)
def test_a_single_job_stands_in_no_list(output: str, printed: str) -> None:
    assert formats.writer(output)([TRAIN], single=True, headers=False) == printed


def test_without_jobs_a_format_has_an_empty_list() -> None:
    assert formats.writer("jsonpath={.items}")([], single=False, headers=True) == "[]"
    assert formats.writer("custom-columns=NAME:.name")([], single=False, headers=True) == "NAME\n"


@pytest.mark.parametrize(
    ("path", "order"),
    [
        (".name", ["eval-9", "eval-10", "train"]),
        ("{.metadata.name}", ["eval-9", "eval-10", "train"]),
        ("gpus", ["train", "eval-10", "eval-9"]),
        (".minReplicas", ["train", "eval-9", "eval-10"]),
        (".notices[0]", ["train", "eval-9", "eval-10"]),
        (".metadata.creationTimestamp", ["train", "eval-10", "eval-9"]),
    ],
)
def test_jobs_are_sorted_by_a_field_and_those_without_come_first(
    path: str, order: Sequence[str]
) -> None:
    reports = [TRAIN, EVAL, NINE]
    if path.startswith(".notices"):
        reports = [replace(one, notices=one.notices or ["0"]) for one in reports]
    assert [report.name for report in formats.sorter(path)(reports)] == order


@pytest.mark.parametrize(
    "path",
    [
        ".gpu",
        ".queue.rank",
        ".etaSeconds",
        ".progress.steps",
        ".name.first",
        ".metadata.owner",
        ".workers[*].size",
        ".workers[?(@.index>90)].size",
        ".slices.a.b",
        ".queue.place.of",
    ],
)
def test_a_field_that_reports_lack_is_refused_unless_there_are_no_jobs(path: str) -> None:
    with pytest.raises(Refused, match=re.escape(f"jobs have no field {path};")):
        formats.sorter(path)([TRAIN, EVAL])
    assert formats.sorter(path)([]) == []


@pytest.mark.parametrize(
    "path",
    [
        ".queue",
        ".queue.place",
        "{.queue.name}",
        ".progress.step",
        ".progress.secondsLeft",
        ".goodput.allocated",
        ".lastScale.at",
        ".ended",
        ".launcher.created",
        ".slices",
        ".slices['nvidia.com/mig-1g.5gb']",
        ".slices.x",
        ".parked[*]",
        ".execNames[*]",
        ".workers[?(@.index>90)].draining.until",
        ".workers[?(@.draining)].draining.since",
        "..place",
        "['queue.place']",
    ],
)
def test_an_order_by_a_field_that_no_job_has_now_is_that_of_the_jobs(path: str) -> None:
    """A line with `--sort-by .queue.place` stays right while no queue holds a job."""
    reports = [replace(one, exec_names=None) for one in (TRAIN, EVAL, NINE)]
    assert formats.sorter(path)(reports) == reports


def test_jobs_without_the_field_come_before_those_with_it() -> None:
    reports = [
        replace(TRAIN, queue=QueueReport(name="q", workload="b", place=2)),
        EVAL,
        replace(NINE, queue=QueueReport(name="q", workload="a", place=1)),
        replace(NINE, name="free", queue=QueueReport(name="q")),
    ]
    names = [one.name for one in formats.sorter(".queue.place")(reports)]
    assert names == ["eval-10", "free", "eval-9", "train"]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("jsonpath={.items[0].name}", "-o jsonpath: array index out of bounds: index 0, length 0"),
        ("jsonpath={.items[?(@.name<1)]}", None),
        ("custom-columns=A:.hosts[7]", None),
    ],
)
def test_a_format_without_jobs_is_refused_only_where_it_names_one(
    output: str, says: str | None
) -> None:
    write = formats.writer(output)
    if says is None:
        write([], single=False, headers=True)
        return
    with pytest.raises(Refused, match=re.escape(says)):
        write([], single=False, headers=True)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("jsonpath={.items[2].name}", "-o jsonpath: array index out of bounds: index 2, length 2"),
        ("jsonpath={.items[*].name[0]}", "-o jsonpath: an index, a slice or a filter needs a list"),
        ("jsonpath={.items[?(@.name<1)]}", "-o jsonpath: train < 1 cannot be compared"),
        ("jsonpath={.items[::0]}", "-o jsonpath: the step of a slice must be above 0"),
        ("custom-columns=A:.hosts[7]", "-o custom-columns: array index out of bounds: index 7"),
        ("custom-columns=A:.name[0]", "-o custom-columns: an index, a slice or a filter needs"),
    ],
)
def test_a_path_that_the_jobs_do_not_allow_is_refused(output: str, says: str) -> None:
    with pytest.raises(Refused, match=re.escape(says)):
        formats.writer(output)([TRAIN, EVAL], single=False, headers=True)


@pytest.mark.parametrize(
    ("output", "field"),
    [
        ("jsonpath={.items[*].spec.mpiReplicaSpecs.Worker.replicas}", ".spec"),
        ("jsonpath={range .items[*]}{.name} {.status.conditions[0].type}{end}", ".status"),
        ("jsonpath={.items[?(@.metadata.labels.team=='a')].name}", ".metadata.labels"),
        ("jsonpath={.items[*]..uid}", ".metadata.uid"),
        ("jsonpath={.items[0]['kind']}", ".kind"),
        ("custom-columns=A:.spec.slotsPerWorker", ".spec"),
        (r"custom-columns=A:.metadata.annotations.mpijob-elastic/parked", ".metadata.annotations"),
    ],
)
def test_a_field_of_the_mpijob_that_no_report_has_is_refused(output: str, field: str) -> None:
    """Nothing instead of it would look like an answer."""
    says = f": {field} is a field of the MPIJob alone: type `kubectl get mpijobs` with the"
    with pytest.raises(Refused, match=re.escape(says)):
        formats.writer(output)([TRAIN, EVAL], single=False, headers=True)


@pytest.mark.parametrize("field", [".kind", ".metadata", ".spec"])
def test_a_field_of_jobs_that_is_asked_of_the_list_is_refused(field: str) -> None:
    says = f"-o jsonpath: a list of jobs has no {field}: begin with .items[*]"
    with pytest.raises(Refused, match=re.escape(says)):
        formats.writer(f"jsonpath={{{field}.x}}")([TRAIN], single=False, headers=True)


def test_a_single_job_and_an_order_refuse_fields_of_the_mpijob_too() -> None:
    output = "jsonpath={.spec.mpiReplicaSpecs.Worker.replicas}"
    with pytest.raises(Refused, match=r"-o jsonpath: \.spec is a field of the MPIJob alone"):
        formats.writer(output)([TRAIN], single=True, headers=True)
    with pytest.raises(Refused, match=r"--sort-by: \.metadata\.labels is a field"):
        formats.sorter(".metadata.labels.team")([TRAIN, EVAL])


def test_no_field_of_a_report_is_among_those_that_are_refused() -> None:
    wholes = "jsonpath={.items[*]..host}{.items[*]..name}{.items[*].*}{.items[0]}"
    assert formats.writer(wholes)([TRAIN, EVAL], single=False, headers=True)
    assert not {"apiVersion", "kind", "spec", "status"} & msgspec.to_builtins(TRAIN).keys()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (".workers[9]", "--sort-by: array index out of bounds: index 9, length 2"),
        (".name[0]", "--sort-by: an index, a slice or a filter needs a list"),
    ],
)
def test_an_order_that_the_jobs_do_not_allow_is_refused(path: str, says: str) -> None:
    with pytest.raises(Refused, match=re.escape(says)):
        formats.sorter(path)([TRAIN, EVAL])


async def printed(
    folder: Path, capsys: pytest.CaptureFixture[str], asked: JobsAsked
) -> tuple[Exit, str, str, list[str]]:
    async with serving(folder, two_jobs()) as (where, requests):
        end = await show.get([where], asked)
    out, err = capsys.readouterr()
    return end, out, err, requests


async def test_several_names_are_rows_and_each_missing_name_is_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end, out, err, _ = await printed(tmp_path, capsys, JobsAsked(jobs=["train", "trian", "other"]))
    assert end == Exit.REFUSED
    assert [line.split()[0] for line in out.splitlines()] == ["NAME", "train", "other"]
    assert err == "mpijob-elastic: no MPIJob trian in namespace default; did you mean train?\n"


@pytest.mark.parametrize("output", ["table", "json", "name"])
async def test_a_missing_name_may_be_fine(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = JobsAsked(jobs=["none"], output=output, missing_is_fine=True)
    assert (await printed(tmp_path, capsys, asked))[:3] == (Exit.DONE, "", "")
    asked = JobsAsked(jobs=["none", "train"], output="name", missing_is_fine=True)
    assert (await printed(tmp_path, capsys, asked))[1] == "mpijob.kubeflow.org/train\n"


async def test_a_single_name_without_headers_is_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = JobsAsked(jobs=["train"], headers=False)
    end, out, _, _ = await printed(tmp_path, capsys, asked)
    [line] = out.splitlines()
    assert (end, line.split()[:2]) == (Exit.DONE, ["train", "Running"])


async def test_a_selector_goes_to_the_api_server_for_mpijobs_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = JobsAsked(labels="team=vision,env!=test", output="name")
    _, out, _, requests = await printed(tmp_path, capsys, asked)
    assert out.splitlines() == ["mpijob.kubeflow.org/other", "mpijob.kubeflow.org/train"]
    selected = {request.partition("?")[0] for request in requests if "team%3Dvision" in request}
    assert {path.rpartition("/")[2] for path in selected} == {"mpijobs"}


@pytest.mark.parametrize("output", ["json", "name", "jsonpath={.items[*].name}"])
async def test_programs_get_no_sentence_about_an_empty_list(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write = formats.writer(output) if "=" in output else None
    async with serving(tmp_path, {}) as (where, _):
        await show.get([where], JobsAsked(output=output, write=write))
    assert capsys.readouterr().err == ""


async def test_an_order_and_a_format_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = "jsonpath={.items[*].name}"
    asked = JobsAsked(
        output=output, write=formats.writer(output), arrange=formats.sorter(".desired")
    )
    assert (await printed(tmp_path, capsys, asked))[1] == "other train"


async def test_a_job_that_does_not_exist_is_not_watched(tmp_path: Path) -> None:
    async with serving(tmp_path, two_jobs()) as (where, _):
        with pytest.raises(NoSuchJob, match="did you mean train"):
            await rows.watch(where, JobsAsked(jobs=["trian"]))


async def test_a_job_that_may_be_missing_has_a_row_once_it_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with TinyApi(selects=True) as api:
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        asked = JobsAsked(jobs=["train"], missing_is_fine=True, output="name")
        watching = asyncio.create_task(rows.watch(where, asked))
        out = ""
        async with asyncio.timeout(10):
            await asyncio.sleep(0.2)
            assert not watching.done()
            put_job(api, "other")
            put_job(api, "train")
            while not out:
                out = capsys.readouterr().out
                await asyncio.sleep(0.05)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
    assert set(out.splitlines()) == {"mpijob.kubeflow.org/train"}


def news(asked: JobsAsked, *steps: dict[str, JobReport | None]) -> list[list[tuple[str, str]]]:
    """What is to be printed after each step, as names and states."""
    changed = rows.ChangedRows(asked)
    return [
        [
            (report.name, report.state)
            for report in changed.among({("ml", name): one for name, one in step.items()})
        ]
        for step in steps
    ]


@pytest.mark.parametrize(
    ("asked", "steps", "said"),
    [
        pytest.param(
            {},
            [{"train": TRAIN, "eval": EVAL}, {"train": TRAIN}],
            [[("train", "Running"), ("eval-10", "Running")], []],
            id="each job once",
        ),
        pytest.param(
            {},
            [{"train": TRAIN}, {"train": replace(TRAIN, ready=1)}, {"train": TRAIN}],
            [[("train", "Running")]] * 3,
            id="each change of a row",
        ),
        pytest.param(
            {},
            [{"train": TRAIN}, {"train": replace(TRAIN, hosts=[])}],
            [[("train", "Running")], []],
            id="a change that no row shows",
        ),
        pytest.param(
            {"output": "json"},
            [{"train": TRAIN}, {"train": replace(TRAIN, hosts=[])}],
            [[("train", "Running")], [("train", "Running")]],
            id="a change that JSON shows",
        ),
        pytest.param(
            {},
            [{"train": TRAIN}, {"train": None}, {"train": None}, {"train": TRAIN}],
            [[("train", "Running")], [("train", "Deleted")], [], [("train", "Running")]],
            id="a deletion once",
        ),
        pytest.param(
            {"jobs": ["train", "other"]},
            [{"train": TRAIN, "eval": EVAL}],
            [[("train", "Running")]],
            id="only the jobs that are named",
        ),
    ],
)
def test_a_row_is_printed_once_it_has_changed(
    asked: dict[str, Any], steps: list[dict[str, JobReport | None]], said: list[list[Any]]
) -> None:
    assert news(JobsAsked(**asked), *steps) == said


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ({}, ["NAME", "train", "eval-10"]),
        ({"headers": False}, ["train", "eval-10"]),
        ({"output": "name"}, ["mpijob.kubeflow.org/train", "mpijob.kubeflow.org/eval-10"]),
        ({"output": "jsonpath={.name};"}, ["train;eval-10;"]),
        ({"output": "custom-columns=JOB:.name"}, ["JOB", "train", "eval-10"]),
    ],
)
def test_rows_follow_one_another_below_one_header(
    asked: dict[str, Any], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    output = asked.get("output", "")
    write = formats.writer(output) if "=" in output else None
    printer = rows.RowPrinter(JobsAsked(**asked, write=write), namespaces=False)
    for report in (TRAIN, EVAL):
        printer.print([report])
    printer.print([])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == lines


def test_documents_of_yaml_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    rows.RowPrinter(JobsAsked(output="yaml"), namespaces=False).print([TRAIN, EVAL])
    assert capsys.readouterr().out.count("---\n") == 2


def test_a_column_stays_as_wide_as_its_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    printer = rows.RowPrinter(JobsAsked(), namespaces=False)
    for report in (EVAL, TRAIN):
        printer.print([report])
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.index("Running") == second.index("Running")
