"""What `prune` and `delete` delete, and what they say before."""

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import typer

from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import deletion
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube.errors import Forbidden
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model.json_parts import timestamp
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.product.cli.served import NAMESPACE, put_job

OVER: dict[str, Any] = {"phase": "Succeeded", "conditions": ("Created", "Succeeded")}


@pytest.fixture
async def jobs() -> AsyncIterator[TinyApi]:
    """A cluster where two jobs have ended and one trains."""
    async with TinyApi(selects=True) as api:
        put_job(api, "first", **OVER)
        put_job(api, "second", **OVER)
        put_job(api, "trains")
        api.hook = lambda sent: {} if (sent.body or {}).get("dryRun") else None
        yield api


def left(api: TinyApi) -> set[str]:
    """Return the jobs that are there."""
    return {
        path.rpartition("/")[2]
        for path in api.objects
        if path.startswith(f"{MPI_JOBS.path(NAMESPACE)}/")
    }


async def pruned(api: TinyApi, *, yes: bool = False, dry_run: bool = False) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    return await deletion.prune(where, yes=yes, dry_run=dry_run)


async def test_with_a_yes_nobody_is_asked(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await pruned(jobs, yes=True) == Exit.DONE
    assert left(jobs) == {"trains"}
    said = capsys.readouterr().out.splitlines()[-2:]
    assert said == [f"MPIJob {NAMESPACE}/{job} deleted" for job in ("first", "second")]


async def test_where_nobody_can_be_asked_nothing_is_deleted(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        await pruned(jobs)
    assert ended.value.exit_code == Exit.USAGE
    assert len(left(jobs)) == 3
    assert "there is no terminal to ask on, so nothing was deleted" in capsys.readouterr().err


async def test_only_jobs_that_are_old_enough_are_deleted(jobs: TinyApi) -> None:
    put_job(jobs, "young", **OVER)
    path = MPI_JOBS.path(NAMESPACE, "young")
    young = jobs.objects[path]
    young["metadata"]["creationTimestamp"] = timestamp(time.time() - 60.0)
    jobs.put(path, young)
    where = Where(kubeconfig=jobs.kubeconfig, namespace=NAMESPACE)
    assert await deletion.prune(where, yes=True, dry_run=False, older_than=3600.0) == Exit.DONE
    assert left(jobs) == {"trains", "young"}


async def test_a_dry_run_lists_them_and_asks_nobody(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await pruned(jobs, dry_run=True) == Exit.DONE
    assert len(left(jobs)) == 3
    _, first, second, said = capsys.readouterr().out.splitlines()
    assert [first.split()[1], second.split()[1]] == ["first", "second"]
    assert said == "Dry run: nothing was deleted."


async def deleted(api: TinyApi, *names: str, **options: bool) -> Exit:
    where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
    return await deletion.delete(where, names, **{"yes": False, **options})


async def test_several_jobs_are_deleted_and_one_that_is_missing_is_a_line(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await deleted(jobs, "first", "none", "second") == Exit.REFUSED
    assert left(jobs) == {"trains"}
    assert "mpijob-elastic: no MPIJob none in namespace ml" in capsys.readouterr().err


def keeping(job: str, *, when_dry: bool) -> Callable[[Sent], object]:
    """A policy that refuses to delete a job, either a dry run as well or only the deletion."""

    def answer(sent: Sent) -> object:
        is_dry = bool((sent.body or {}).get("dryRun"))
        if (sent.method, sent.name) == ("DELETE", job) and (when_dry or not is_dry):
            raise refused(403, "Forbidden", "denied the request: first is kept")
        return {} if is_dry else None

    return answer


@pytest.mark.parametrize("when_dry", [True, False])
@pytest.mark.parametrize("command", ["delete", "prune"])
async def test_a_job_that_must_stay_holds_back_no_other(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str], command: str, when_dry: bool
) -> None:
    jobs.hook = keeping("first", when_dry=when_dry)
    if command == "delete":
        assert await deleted(jobs, "first", "second") == Exit.REFUSED
    else:
        assert await pruned(jobs, yes=True) == Exit.REFUSED
    assert left(jobs) == {"first", "trains"}
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "MPIJob ml/second deleted"
    assert "first is kept" in err
    assert "second" not in err


async def test_a_single_job_that_must_stay_is_an_error(jobs: TinyApi) -> None:
    jobs.hook = keeping("first", when_dry=True)
    with pytest.raises(Forbidden, match="first is kept"):
        await deleted(jobs, "first")


@pytest.mark.parametrize("names", [("none",), ("none", "first")])
async def test_a_missing_job_may_be_fine(
    jobs: TinyApi, capsys: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    assert await deleted(jobs, *names, missing_is_fine=True) == Exit.DONE
    assert capsys.readouterr().err == ""


async def test_a_single_missing_job_is_an_error(jobs: TinyApi) -> None:
    with pytest.raises(NoSuchJob):
        await deleted(jobs, "none")


@pytest.mark.parametrize(
    ("names", "question"),
    [
        (("trains",), "trains trains on 2 workers. Delete it?"),
        (("first", "trains"), "trains trains on 2 workers. Delete all 2 jobs?"),
        (
            ("also", "trains"),
            "also trains on 3 workers, trains trains on 2 workers. Delete all 2 jobs?",
        ),
    ],
)
async def test_one_question_names_all_jobs_that_train(
    jobs: TinyApi, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], question: str
) -> None:
    put_job(jobs, "also", size=3)
    asked = list[str]()
    monkeypatch.setattr(deletion, "_ask", asked.append)  # returns None: no
    assert await deleted(jobs, *names) == Exit.REFUSED
    assert asked == [question]
    assert left(jobs) == {"first", "second", "trains", "also"}
