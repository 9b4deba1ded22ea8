"""`watch`: which snapshots end it, and what is drawn."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from mpijob_elastic.cli.jobs import get, watch
from mpijob_elastic.cli.jobs.report import JobReport
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from tests.product.cli import worlds


def snapshot(*conditions: str, replicas: int = 2) -> Snapshot:
    job = worlds.mpi_job(replicas=replicas, conditions=("Created", *conditions), completionTime=worlds.CREATED_TEXT)
    [found] = worlds.read([job], pods=[worlds.launcher()])
    return found


async def watched(*snapshots: Snapshot | None) -> tuple[bool, list[str]]:
    seen: list[str] = []

    async def arriving() -> AsyncIterator[Snapshot | None]:
        for each in snapshots:
            yield each

    def show(_: JobReport, news: list[str]) -> None:
        seen.extend(news)

    return await watch.until_end(arriving(), show, job="train"), seen


async def test_it_ends_well_with_the_jobs_success_and_looks_no_further() -> None:
    succeeded, seen = await watched(snapshot("Running"), snapshot("Succeeded"), snapshot("Failed"))
    assert succeeded
    assert seen[1:] == ["state: Running → Succeeded"]


async def test_it_ends_badly_with_the_jobs_failure() -> None:
    assert (await watched(snapshot("Failed")))[0] is False


async def test_what_changes_is_shown_in_between() -> None:
    _, seen = await watched(snapshot("Running"), snapshot("Running", replicas=3), snapshot("Succeeded", replicas=3))
    assert seen[1] == "desired: 2 → 3"


async def test_a_job_that_is_deleted_is_an_error() -> None:
    with pytest.raises(get.NoSuchJob, match="MPIJob train was deleted"):
        await watched(snapshot("Running"), None)


async def test_a_new_job_of_the_same_name_is_another_job() -> None:
    first = snapshot("Running")
    other = replace(first, view=replace(first.view, ref=replace(first.view.ref, uid="another")))
    with pytest.raises(get.NoSuchJob, match="MPIJob train was deleted"):
        await watched(first, other)


def test_the_page_holds_the_job_and_the_last_changes_only() -> None:
    page = watch.Page()
    assert not page.render().plain
    page.show(worlds.at_rest(2), [f"change {number}" for number in range(30)])
    lines = page.render().plain.splitlines()
    assert lines[0] == "Job:            default/train"
    assert [line.split("  ")[1] for line in lines[-watch.RECENT :]] == [f"change {number}" for number in range(20, 30)]
