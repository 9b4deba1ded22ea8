"""The Events of a job: which are its own, in which order, and how they are printed."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic.cli.dashboard.streams import owner
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.jobs import job_events
from mpijob_elastic.cli.jobs.dependencies import Event, read_event
from mpijob_elastic.cli.jobs.job_events import EventOwner, EventPrinter, EventsAsked, chosen, is_of
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from mpijob_elastic.cli.target import Where
from tests.product.cli import worlds
from tests.product.cli.cluster import Answers, serving
from tests.product.cli.test_commands import typed


def shown_job() -> Snapshot:
    config = worlds.config_map(worlds.workers(0, 1))
    pods = [worlds.launcher(), worlds.worker(0), worlds.worker(1)]
    [found] = worlds.read([worlds.mpi_job()], pods=pods, configs=[config])
    return found


JOB_UID, POD_UID = "uid of default/train", "uid of default/train-worker-0"
BEFORE, AFTER = "2025-12-31T23:59:59Z", "2026-01-01T00:00:10Z"


@pytest.mark.parametrize(
    ("kind", "name", "uid", "at", "shown"),
    [
        pytest.param("MPIJob", "train", JOB_UID, AFTER, True, id="the job"),
        pytest.param("MPIJob", "train", "former", BEFORE, False, id="a deleted job of the name"),
        pytest.param("HorizontalPodAutoscaler", "train", "h", AFTER, False, id="an HPA"),
        pytest.param("Pod", "train", "p", AFTER, False, id="a pod named as the job"),
        pytest.param("Pod", "train-worker-0", POD_UID, BEFORE, True, id="a pod that is there"),
        pytest.param("Pod", "train-worker-0", "former", AFTER, True, id="the pod before it"),
        pytest.param("Pod", "train-worker-9", "gone", AFTER, True, id="a pod that has gone"),
        pytest.param("Pod", "train-worker-0", "former", BEFORE, False, id="of a deleted job"),
        pytest.param("Pod", "train-launcher", "former", BEFORE, False, id="its launcher"),
        pytest.param("Pod", "train-worker-0", "former", "", False, id="without a time"),
        pytest.param("Job", "train-worker-0", POD_UID, AFTER, False, id="another kind"),
        pytest.param("Pod", "other-worker-0", "o", AFTER, False, id="of another job"),
    ],
)
def test_only_events_of_the_job_itself_and_its_pods_are_shown(
    kind: str, name: str, uid: str, at: str, shown: bool
) -> None:
    about = {"kind": kind, "name": name, "uid": uid}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "lastTimestamp": at}
    found = is_of(read_event(json.dumps(event).encode()), owner(shown_job()))
    assert found is shown


TRAIN = EventOwner(name="train", uid=JOB_UID, created_at=0.0, pods={})


def event_object(name: str, second: int, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "resourceVersion": "1"},
        "involvedObject": {"kind": "MPIJob", "name": "train", "uid": JOB_UID},
        "type": "Normal",
        "reason": name.capitalize(),
        "message": f"says\n{name}",
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
        **more,
    }


def event(name: str, second: int, **more: Any) -> Event:
    return read_event(json.dumps(event_object(name, second, **more)).encode())


def test_the_newest_is_the_last_whatever_the_form_of_its_time() -> None:
    given = [
        event("c", 0, lastTimestamp=None, eventTime="2026-01-01T00:00:05.500000Z"),
        event("d", 6),
        event("b", 5),
        event("a", 5),
        event("none", 0, lastTimestamp=None),
    ]
    names = [one.metadata.name for one in chosen(given, TRAIN)]
    assert names == ["none", "a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("types", "names"),
    [((), ["a", "b"]), (("Warning",), ["b"]), (("normal", "Warning"), ["a", "b"])],
)
def test_only_the_types_that_are_asked_for(types: tuple[str, ...], names: list[str]) -> None:
    given = [event("a", 1), event("b", 2, type="Warning")]
    assert [one.metadata.name for one in chosen(given, TRAIN, types)] == names


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ({}, "5s"),
        ({"count": 1, "firstTimestamp": "2026-01-01T00:00:00Z"}, "5s"),
        ({"count": 3, "firstTimestamp": "2026-01-01T00:00:01Z"}, "5s (x3 over 9s)"),
        ({"lastTimestamp": None}, "<unknown>"),
    ],
)
def test_a_row_says_when_and_how_often(more: dict[str, Any], seen: str) -> None:
    now = datetime.fromisoformat("2026-01-01T00:00:10Z")
    assert job_events.row(event("created", 5, **more), now=now) == (
        seen,
        "Normal",
        "Created",
        "mpijob/train",
        "says created",
    )


def test_an_event_is_printed_again_once_it_was_seen_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = EventPrinter(headers=True)
    printer.print([event("a", 1), event("b", 2)])
    printer.print([event("a", 1), event("b", 2)])
    printer.print([event("a", 1), event("b", 3, count=2)])
    said = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert said == ["MESSAGE", "a", "b", "b"]


async def test_events_are_a_table_or_items(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Answers = {
        "train": lambda: web.json_response(worlds.mpi_job()),
        "pods": [worlds.worker(0)],
        "events": [event_object("b", 2), event_object("a", 1)],
    }
    async with serving(tmp_path, answers) as (where, _):
        await job_events.events(where, "train", EventsAsked(headers=False))
        assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["a", "b"]
        await job_events.events(where, "train", EventsAsked(output="json"))
        items = json.loads(capsys.readouterr().out)["items"]
        assert [item["reason"] for item in items] == ["A", "B"]
        await job_events.events(where, "train", EventsAsked(types=["Warning"]))
        assert capsys.readouterr() == ("", "No events found in default namespace.\n")


@pytest.mark.parametrize(
    ("words", "types"),
    [
        ((), ["Normal", "Warning"]),
        (("--types=Warning",), ["Warning"]),
        (("--types", "Normal", "--types", "warning"), ["Normal", "warning"]),
        (("--types=Normal,Warning",), ["Normal", "Warning"]),
    ],
)
def test_types_of_events_are_given_together_or_one_by_one(
    words: tuple[str, ...], types: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with kubectl, none is lost."""
    given = list[EventsAsked]()

    async def kept(_where: Where, _job: str, asked: EventsAsked) -> None:
        given.append(asked)

    monkeypatch.setattr(job_events, "events", kept)
    assert typed("events", "train", *words).exit_code == Exit.DONE
    assert [list(asked.types) for asked in given] == [types]
    wrong = typed("events", "train", "--types", "Normal", "--types", "Alert,Bad")
    assert wrong.exit_code == Exit.USAGE
    assert "Alert, Bad: the types are Normal and Warning" in wrong.stderr
