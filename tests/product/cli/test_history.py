"""`history` as it is typed: what it prints, and of whom."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from msgspec.structs import replace

from mpijob_elastic import names
from mpijob_elastic.cli.dashboard import server
from mpijob_elastic.cli.jobs import history
from mpijob_elastic.cli.jobs.snapshot import NoSuchJob
from mpijob_elastic.model.history import (
    LONGEST_MANAGER,
    LONGEST_NOTE,
    UNKNOWN,
    Change,
    entries,
    merged,
)
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, serving, status

CHANGES = (
    Change(
        at=1_764_000_000.0,
        cause="user",
        by="kubectl-edit",
        before=2,
        after=4,
        listed=40.4,
        trained=61.0,
        lost=184.4,
        repeated=12,
    ),
    Change(at=1_764_000_100.0, cause="node", before=4, after=3, note="train-worker-3: taint spot"),
    Change(
        at=1_764_000_200.0,
        cause="HPA",
        by="kube-controller-manager",
        before=4,
        after=1,
        listed=0.0,
        cut=2,
    ),
)
PENDING = '{"at":1764000300.0,"cause":"user","from":1,"to":2,"by":"kubectl"}'


def answers(*changes: Change, pending: str = "", owner: str | None = None) -> Answers:
    job, config = worlds.mpi_job(), worlds.config_map(worlds.workers(0))
    job["metadata"].setdefault("annotations", {})[names.CHANGE] = pending
    config["metadata"]["annotations"][names.HISTORY] = merged("", changes)
    if owner is not None:
        config["metadata"]["ownerReferences"][0]["uid"] = owner
    return {
        "train": web.json_response(job),
        "train-config": web.json_response(config),
        "mpijobs": [job],
    }


async def told(
    folder: Path, capsys: pytest.CaptureFixture[str], served: Answers, output: str = "wide"
) -> str:
    async with serving(folder, served) as (where, _):
        await history.history(where, job="train", output=output)
    return capsys.readouterr().out


async def test_each_change_is_a_line_and_the_newest_is_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (await told(tmp_path, capsys, answers(*CHANGES, pending=PENDING))).splitlines()
    assert [line.split() for line in lines] == [
        [
            "WHEN",
            "CAUSE",
            "BY",
            "FROM→TO",
            "LISTED",
            "TRAINED",
            "LOST-S",
            "REPEATED",
            "CUT",
            "NOTE",
        ],
        [
            "2025-11-24T16:00:00Z",
            "user",
            "kubectl-edit",
            "2→4",
            "40s",
            "1m1s",
            "184",
            "12",
            "-",
            "-",
        ],
        [
            "2025-11-24T16:01:40Z",
            "node",
            "-",
            "4→3",
            "-",
            "-",
            "-",
            "-",
            "-",
            "train-worker-3:",
            "taint",
            "spot",
        ],
        [
            "2025-11-24T16:03:20Z",
            "HPA",
            "kube-controller-manager",
            "4→1",
            "0s",
            "-",
            "-",
            "-",
            "2",
            "-",
        ],
        ["2025-11-24T16:05:00Z", "user", "kubectl", "1→2", "-", "-", "-", "-", "-", "-"],
    ]
    lines = (await told(tmp_path, capsys, answers(*CHANGES), "table")).splitlines()
    assert all(" ago " in line for line in lines[1:])


@pytest.mark.parametrize(("output", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
async def test_programs_get_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str, read: Any
) -> None:
    found = read(await told(tmp_path, capsys, answers(*CHANGES), output))
    assert (found["namespace"], found["name"], len(found["changes"])) == ("default", "train", 3)
    first = dict(found["changes"][0])
    assert str(first.pop("when")).startswith("2025-11-24")
    assert first == {
        "cause": "user",
        "by": "kubectl-edit",
        "from": 2,
        "to": 4,
        "listedAfter": 40.4,
        "trainedAfter": 61.0,
        "secondsLost": 184.4,
        "stepsRepeated": 12,
        "ranksCut": 0,
        "note": "",
        "setsSize": True,
    }
    assert [change["setsSize"] for change in found["changes"]] == [True, False, True]


@pytest.mark.parametrize(
    "served", [answers(), answers(*CHANGES, owner="of an earlier job"), answers(pending="{")]
)
async def test_without_changes_that_is_said_and_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], served: Answers
) -> None:
    async with serving(tmp_path, served) as (where, _):
        await history.history(where, job="train", output="table")
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "",
        "no change of the size of default/train is recorded; mpijob-elastic records the changes of "
        "elastic jobs since it is installed\n",
    )


async def test_a_change_of_which_nobody_knows_who_made_it_names_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change = Change(at=1_764_000_000.0, cause="user", by=UNKNOWN, before=2, after=3)
    line = (await told(tmp_path, capsys, answers(change))).splitlines()[1]
    assert line.split()[1:4] == ["user", "-", "2→3"]
    found = json.loads(await told(tmp_path, capsys, answers(change), "json"))
    [only] = found["changes"]
    assert (only["by"], only["setsSize"]) == ("", True)


async def test_an_unknown_job_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    served = {**answers(), "trian": status(404, "NotFound")}
    async with serving(tmp_path, served) as (where, _):
        with pytest.raises(
            NoSuchJob, match=r"no MPIJob trian in namespace default; did you mean train\?"
        ):
            await history.history(where, job="trian", output="table")


def test_a_history_that_the_page_takes_for_whole_has_lost_nothing() -> None:
    script = (server.PAGE / "record.js").read_text()
    whole = int(script.partition("const SURELY_WHOLE = ")[2].partition(";")[0])
    longest = Change(
        at=1_764_000_000.25,
        cause="stragglers",
        by="m" * LONGEST_MANAGER,
        before=10_000,
        after=10_000,
        listed=86_400.25,
        trained=86_400.25,
        lost=864_000_000.25,
        repeated=1_000_000,
        cut=80_000,
        note="n" * LONGEST_NOTE,
    )
    changes = [replace(longest, at=longest.at + number) for number in range(whole)]
    assert len(entries(merged("", changes))) == whole
