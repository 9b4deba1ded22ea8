"""What people and programs read of a job: each world as its row, its page and, of some, its JSON, in pages/.

`UPDATE_PAGES=1 pytest tests/product/cli/test_pages.py` writes the files: read what git shows of
them.
"""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mpijob_elastic import names
from mpijob_elastic.cli.jobs import explain, table
from mpijob_elastic.cli.jobs.report import JobReport, QueueReport
from mpijob_elastic.decide import derive, notices
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import Explanation, Facts, Look, PodTrouble
from mpijob_elastic.model.goodput import Buckets, Spent
from mpijob_elastic.model.memory import Host, Left, Memory, SizeChange, pod_fingerprint
from mpijob_elastic.model.pod import LauncherPhase
from tests import builders
from tests.product.cli import worlds
from tests.product.cli.worlds import (
    at_rest,
    config_map,
    launcher,
    lines_of,
    mpi_job,
    worker,
    workers,
)
from tests.product.diagnosis.said import BUSY
from tests.queues import granted, training, waiting, workload

PAGES = Path(__file__).parent / "pages"
WITH_JSON = {
    "at rest",
    "workers with GPUs",
    "workers with slices of GPUs",
    "draining",
    "once renamed",
    "reminded",
    "nothing is there or known",
    "a training tells how far it is",
    "a worker is not scheduled",
}
NOW = datetime.fromtimestamp(worlds.NOW, UTC)
LEFT_AT = worlds.NOW - 10.0


def leaving(*, refreshed: bool = True) -> JobReport:
    """3→1, ten seconds after two workers left discover_hosts.sh; the launcher was touched a second later."""
    left = {
        name: Left(pod=pod_fingerprint(f"uid of default/{name}"), at=LEFT_AT)
        for name in workers(1, 2)
    }
    memory = Memory(left=left, removed_at=LEFT_AT, scale=SizeChange(before=3, after=1, at=LEFT_AT))
    config = config_map(workers(0), memory=memory)
    touched = worlds.shown(config, at=LEFT_AT + 1.0) if refreshed else "an earlier list"
    asked = mpi_job(replicas=1, annotations={names.DRAIN_TIMEOUT: "30s"})
    return at_rest(3, job=asked, config=config, launcher=launcher(refreshed=touched))


def foreign() -> JobReport:
    pod = worker(0)
    pod["metadata"]["labels"]["replica-index"] = "0"
    config = config_map(workers(0))
    del config["metadata"]["annotations"]
    return at_rest(1, workers=[pod], config=config)


def evicted() -> worlds.Object:
    pod = worker(1, phase="Failed")
    pod["status"]["reason"] = "Evicted"
    return pod


def with_gpus(replicas: int) -> worlds.Object:
    job = mpi_job(replicas=replicas)
    asked = [{"nvidia.com/gpu": 8, "cpu": "4"}, {"amd.com/gpu": "1"}]
    template = {
        "spec": {
            "priorityClassName": "low",
            "containers": [{"resources": {"limits": limits}} for limits in asked],
        }
    }
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"] = template
    return job


SPENT = Spent(
    buckets=Buckets(starting=40.0, joining=25.0, kept=800.0, leaving=16.0), rates={"2": 410.0}
)


def counted(*, gpus: int = 0, **told: Any) -> JobReport:
    """A job of two workers, and an earlier one that has left, with what looks have found."""
    config = config_map(workers(0, 1), memory=Memory(spent=SPENT, added_at=worlds.CREATED))
    return at_rest(2, job=mpi_job(gpus=gpus), config=config, **told)


FAR = worlds.line(since=worlds.CREATED + 20.0)
LATER = worlds.line(since=worlds.CREATED + 60.0, first=worlds.CREATED + 60.0, kept=30.0, open=5.0)
OVER = mpi_job(conditions=["Succeeded"], completionTime=worlds.CREATED_TEXT)
FIRST_HOSTS = Memory(scale=SizeChange(before=0, after=2, at=worlds.CREATED))
ONCE_RENAMED = config_map(
    workers(0), memory=Memory(hosts={"train-worker-1": Host(pod="", incarnation=3)})
)
REPORTS = {
    "at rest": at_rest(2),
    "draining": leaving(),
    "draining before the launcher is refreshed": leaving(refreshed=False),
    "a worker is wanted and not there": at_rest(2, job=mpi_job(replicas=3)),
    "over and its workers are gone": at_rest(
        2, job=OVER, workers=[], launcher=launcher(phase="Succeeded")
    ),
    "first hosts are no change of size": at_rest(
        2, config=config_map(workers(0, 1), memory=FIRST_HOSTS)
    ),
    "no right to read roles": at_rest(2, role=None),
    "of another operator": foreign(),
    "a worker was evicted": at_rest(2, workers=[worker(0), evicted()]),
    "a launcher without the list": at_rest(2, launcher=launcher(mounts=False)),
    "a launcher that names the list and lacks it": at_rest(
        2, launcher=launcher(mounts=False, command=worlds.ELASTIC)
    ),
    "a launcher that has not started": at_rest(2, launcher=launcher(phase="Pending")),
    "a launcher that has failed": at_rest(2, launcher=launcher(phase="Failed")),
    "another host name": at_rest(config=config_map(["train-worker-0", "train-worker-1.r2"])),
    "once renamed": at_rest(config=ONCE_RENAMED),
    "reminded": at_rest(config=config_map(workers(0, 1), reminder="train-worker-0.r01")),
    "nothing is there or known": at_rest(1, role=None, launcher=None, config=None),
    "an unknown size": replace(at_rest(2), desired=None),
    "workers with GPUs": at_rest(2, job=with_gpus(2)),
    "workers with slices of GPUs": at_rest(
        2, job=mpi_job(gpus=4, slices={"nvidia.com/mig-1g.10gb": 2, "amd.com/cpx_nps4": 1})
    ),
    "waiting in a queue": replace(
        at_rest(2, job=with_gpus(2)),
        context="east",
        queue=QueueReport(name="team", workload="train-worker-1", place=2, says="1 more needed"),
    ),
    "a training tells how far it is": counted(gpus=4, lines=lines_of(FAR, LATER)),
    "a training tells neither its end nor its pace": counted(
        lines=lines_of(*(replace(one, total=0, step_ms=0.0, samples=0) for one in (FAR, LATER)))
    ),
    "one worker of a training tells nothing": counted(gpus=1, lines=lines_of(FAR)),
    "no worker of a training tells anything": counted(lines={}),
    "a training whose rank has ended": counted(
        lines=lines_of(replace(FAR, alive=False), replace(LATER, alive=False))
    ),
    "nobody has counted": at_rest(2, lines=lines_of(FAR)),
    "a worker whose seconds nobody knows": counted(workers=[worker(0)], lines=lines_of(FAR)),
    "a least size beside max-np": replace(at_rest(2), min_replicas=2, max_np_workers=4),
    "bounds and notices": replace(
        at_rest(1),
        min_replicas=1,
        max_replicas=8,
        notices=["NotElastic: it is not"],
        next_look=NOW + timedelta(seconds=1.5),
    ),
}

PENDING = builders.job(
    workers=(builders.worker(0), builders.worker(1), builders.pending(2)),
    config=builders.config(["j-worker-0", "j-worker-1.r2"]),
)
UNSCHEDULED = {
    "j-worker-2": PodTrouble(
        unscheduled="0/3 nodes are available: " + "3 Insufficient nvidia.com/gpu, " * 4
    )
}
FACTS = Facts(state="Running", looks=dict.fromkeys(builders.pods(0, 1), BUSY), pods=UNSCHEDULED)
NO_LOOK = dict.fromkeys(builders.pods(0, 1, 2), Look(error="a policy says no"))
NOTICED = builders.job(2, notices="SlotsUnchanged: wait\nWorkersNotReady: wait")
BLIND = builders.job(2, launcher=builders.launcher(mounts_discovery=False))
[TOLD] = notices.of_job(derive(BLIND, now=builders.NOW))
GATES = (names.GATE_SUSPENDED,)
SUSPENDED = builders.job(
    workers=(builders.pending(0, gates=GATES), builders.pending(1, gates=GATES)),
    launcher=builders.launcher(LauncherPhase.WAITING, gates=GATES),
    config=builders.config([]),
    replicas=2,
    known=False,
    suspended_by="annotation x",
)
SHORT = training(
    builders.worker(0),
    builders.worker(1),
    builders.pending(2, gates=(names.GATE_QUEUED,)),
    found=(granted(), workload("j-worker-2", workers=1, said="2 more needed")),
    size=3,
)
EXPLANATIONS = {
    "a notice that holds is said once": diagnose(
        BLIND.but(notices=f"{TOLD.line}\nWorkersNotReady: wait"),
        Facts(looks=NO_LOOK),
        now=builders.NOW,
    ),
    "a worker is not scheduled": diagnose(PENDING, FACTS, now=builders.NOW),
    "a single worker": diagnose(PENDING, FACTS, now=builders.NOW, worker="j-worker-1"),
    "no controller": diagnose(NOTICED, Facts(controller="no controller leads"), now=builders.NOW),
    "whether any trains is not known": diagnose(
        builders.job(), Facts(state="Running", looks=NO_LOOK), now=builders.NOW
    ),
    "whether the others train is not known": diagnose(
        builders.job(),
        Facts(state="Running", looks=NO_LOOK | dict.fromkeys(builders.pods(0, 1), BUSY)),
        now=builders.NOW,
    ),
    "a suspended job": diagnose(SUSPENDED, Facts(state="Suspended"), now=builders.NOW),
    "a worker of a suspended job": diagnose(
        SUSPENDED, Facts(state="Suspended"), now=builders.NOW, worker="j-worker-1"
    ),
    "a queued job": diagnose(
        waiting(2, workload(said="insufficient quota")), Facts(state="Queued"), now=builders.NOW
    ),
    "workers that wait for quota": diagnose(
        SHORT.but(notices="WorkersQueued: j-worker-2 waiting in queue team: … more needed"),
        Facts(state="Running", looks=NO_LOOK | dict.fromkeys(builders.pods(0, 1), BUSY)),
        now=builders.NOW,
    ),
    "a job that has failed": diagnose(
        builders.job(finished=True), Facts(state="Failed"), now=builders.NOW
    ),
}


def holds(command: str, world: str, *parts: list[str], report: JobReport | Explanation) -> None:
    """Compare with the stored page, or store it."""
    printed = msgspec.json.encode(report)
    assert msgspec.json.decode(printed, type=type(report)) == report
    as_json = [[msgspec.json.format(printed).decode()]] if world in WITH_JSON else []
    text = "\n\n".join("\n".join(part) for part in [*parts, *as_json]) + "\n"
    file = PAGES / command / f"{world.replace(' ', '-')}.txt"
    if os.environ.get("UPDATE_PAGES"):
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("world", REPORTS)
def test_get_shows(world: str) -> None:
    report = REPORTS[world]
    rows = (
        table.jobs([report], now=NOW, contexts=bool(report.context), namespaces=whole, wide=whole)
        for whole in (False, True)
    )
    holds("get", world, *rows, table.details(report, now=NOW), report=report)


@pytest.mark.parametrize("world", EXPLANATIONS)
def test_explain_says(world: str) -> None:
    lines = explain.text(EXPLANATIONS[world])
    assert max(map(len, lines)) <= explain.WIDTH
    holds("explain", world, lines, report=EXPLANATIONS[world])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0s"),
        (0.9, "0s"),
        (119, "119s"),
        (120, "2m"),
        (7199, "119m"),
        (7200, "2h"),
        (172_800, "2d"),
    ],
)
def test_an_age_has_one_unit(seconds: float, words: str) -> None:
    assert table.age(NOW - timedelta(seconds=seconds), now=NOW) == words


def test_the_largest_numbers_that_a_line_can_hold_are_a_row_like_any_other() -> None:
    most = 10.0**12 - 1
    line = replace(
        worlds.line(since=worlds.CREATED + 20.0),
        **{"step": 1, "total": 10**15 - 1, "samples": 10**15 - 1, "step_ms": most},
        **{"kept": most, "repeated": most, "open": most, "again": 10**15 - 1},
    )
    for told in (line, replace(line, step=10**15 - 1, total=1, step_ms=0.000001)):
        report = counted(gpus=4, lines=lines_of(told, told))
        assert report.goodput
        assert report.goodput.allocated <= 40 + 25 + 800 + 16 + 2 * 4 * 100
        assert report.progress
        assert (report.progress.percent or 0) <= 100
        assert table.jobs([report], now=NOW, namespaces=False, wide=False)
        assert table.details(report, now=NOW)
        assert msgspec.json.decode(msgspec.json.encode(report), type=JobReport) == report
