"""Changes between two reports, and what `watch` makes of them."""

from collections.abc import AsyncIterator
from dataclasses import replace as with_fields
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mpijob_elastic.cli.jobs import watch
from mpijob_elastic.cli.jobs.report import JobReport
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob, Snapshot
from tests.builders import but
from tests.product.cli import worlds
from tests.product.cli.worlds import at_rest


def refreshed(value: bool | None) -> JobReport:
    report = at_rest(2)
    assert report.launcher is not None
    return replace(report, launcher=replace(report.launcher, refreshed=value))


FAILED: dict[str, Any] = {"state": "Failed", "notices": ["Reason: words"]}
LIST = "train-worker-0:1, train-worker-1:1"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(
            None,
            at_rest(2),
            ["default/train: Running, desired 2, ready 2, published 2, draining 0"],
            id="the first look is summed up",
        ),
        pytest.param(at_rest(2), at_rest(2, now=worlds.NOW + 50), [], id="nothing new"),
        pytest.param(
            at_rest(2),
            at_rest(3),
            [
                "desired: 2 → 3",
                "Role: exec allowed into train-worker-2",
                "train-worker-2: none → Running Ready",
                f"discover_hosts.sh: {LIST} → {LIST}, train-worker-2:1",
                "train-launcher: discover_hosts.sh refreshed",
            ],
            id="a scale-out in the order in which it happens",
        ),
        pytest.param(
            at_rest(2),
            at_rest(2, job=worlds.mpi_job(replicas=3)),
            ["desired: 2 → 3"],
            id="a worker that is only wanted is no worker yet",
        ),
        pytest.param(
            refreshed(False),
            refreshed(True),
            ["train-launcher: discover_hosts.sh refreshed"],
            id="refreshed",
        ),
        pytest.param(refreshed(True), refreshed(True), [], id="refreshed once for each list"),
        pytest.param(
            at_rest(2),
            at_rest(2, launcher=None),
            ["train-launcher: Running → gone"],
            id="no launcher",
        ),
        pytest.param(
            at_rest(1),
            replace(at_rest(1), **FAILED),
            ["state: Running → Failed", "notice: Reason: words"],
            id="a new state and a new notice",
        ),
        pytest.param(
            replace(at_rest(1), **FAILED),
            replace(at_rest(1), state="Failed"),
            [],
            id="a notice that goes is no news",
        ),
    ],
)
def test_changes(before: JobReport | None, after: JobReport, lines: list[str]) -> None:
    assert watch.changes_between(before, after) == lines


def test_workers_that_leave_are_listed_in_numeric_order() -> None:
    lines = watch.changes_between(at_rest(12), at_rest(1))
    assert [line.split(":")[0] for line in lines if line.endswith("gone")] == worlds.workers(
        *range(1, 12)
    )
    assert f"Role: exec no longer allowed into {', '.join(worlds.workers(*range(1, 12)))}" in lines


def snapshot(*conditions: str, replicas: int = 2) -> Snapshot:
    job = worlds.mpi_job(
        replicas=replicas, conditions=("Created", *conditions), completionTime=worlds.CREATED_TEXT
    )
    phase = "Succeeded" if {"Succeeded", "Failed"} & {*conditions} else "Running"
    [found] = worlds.read([job], pods=[worlds.launcher(phase=phase)])
    return found


async def watched(*snapshots: Snapshot | None) -> tuple[bool, list[str]]:
    seen: list[str] = []

    async def arriving() -> AsyncIterator[Snapshot | None]:
        for each in snapshots:
            yield each

    return await watch.until_end(arriving(), lambda _, news: seen.extend(news), job="train"), seen[
        1:
    ]


@pytest.mark.parametrize(
    ("snapshots", "succeeded", "news"),
    [
        (
            (
                snapshot("Running"),
                snapshot("Running", replicas=3),
                snapshot("Succeeded", replicas=3),
                snapshot("Failed"),
            ),
            True,
            ["desired: 2 → 3", "state: Running → Succeeded", "train-launcher: Running → Succeeded"],
        ),
        ((snapshot("Failed"),), False, []),
    ],
)
async def test_a_watch_shows_what_changes_and_ends_with_the_job(
    snapshots: tuple[Snapshot, ...], succeeded: bool, news: list[str]
) -> None:
    assert await watched(*snapshots) == (succeeded, news)


async def test_a_job_that_is_deleted_or_replaced_by_another_of_its_name_is_an_error() -> None:
    first = snapshot("Running")
    other = with_fields(
        first,
        view=but(first.view, ref=msgspec.structs.replace(first.view.facts.metadata, uid="another")),
    )
    for then in (None, other):
        with pytest.raises(NoSuchJob, match="MPIJob train was deleted"):
            await watched(first, then)


def test_the_page_holds_the_job_and_the_last_changes_only() -> None:
    page = watch.LivePage()
    assert not page.render().plain
    page.show(at_rest(2), [f"change {number}" for number in range(30)])
    lines = page.render().plain.splitlines()
    assert lines[0] == "Job:            default/train"
    assert [line.split("  ")[1] for line in lines[-watch.RECENT :]] == [
        f"change {number}" for number in range(20, 30)
    ]
