"""What a reader of the stream gets, slow or not."""

import json
from typing import Any

import pytest

from mpijob_elastic.cli.dashboard import streams
from mpijob_elastic.cli.dashboard.streams import Channel
from mpijob_elastic.cli.jobs.dependencies import read_event
from mpijob_elastic.cli.jobs.snapshot import Snapshot
from tests.product.cli import worlds


def read(lines: bytes) -> list[tuple[str, Any]]:
    return [(line["part"], line["value"]) for line in map(json.loads, lines.splitlines())]


async def test_a_slow_reader_gets_the_newest_of_each_part() -> None:
    sending = Channel()
    lines = sending.lines()
    for size in range(1000):
        sending.put("ml/train", {"size": size})
        sending.put("ml/other", None)
    assert read(await anext(lines)) == [("ml/train", {"size": 999}), ("ml/other", None)]
    assert sending.empty


async def test_what_the_reader_has_is_not_sent_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT", 0.01)
    sending = Channel()
    lines = sending.lines()
    sending.put("report", 1)
    await anext(lines)
    sending.put("report", 1)
    assert await anext(lines) == b"\n"
    sending.put("report", 2)
    sending.put("report", 1)  # back before it was sent
    assert read(await anext(lines)) == [("report", 1)]


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
    found = streams.is_of(read_event(json.dumps(event).encode()), shown_job())
    assert found is shown
