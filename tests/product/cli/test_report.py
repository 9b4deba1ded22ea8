"""The report on a job."""

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from mpijob_elastic import names
from mpijob_elastic.cli.jobs.report import Draining, JobReport, Scale
from mpijob_elastic.model.memory import Host, Left, Memory, pod_fingerprint
from mpijob_elastic.model.memory import Scale as Scaled
from tests.product.cli import worlds

LEFT_AT = worlds.NOW - 10.0


def time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def leaving(*, refreshed: bool = True) -> JobReport:
    """3→1, ten seconds after two workers left discover_hosts.sh; the launcher was touched a second later."""
    left = {name: Left(pod=pod_fingerprint(f"uid of default/{name}"), at=LEFT_AT) for name in worlds.workers(1, 2)}
    memory = Memory(left=left, removed_at=LEFT_AT, scale=Scaled(before=3, after=1, at=LEFT_AT))
    config = worlds.config_map(worlds.workers(0), memory=memory)
    touched = worlds.shown(config, at=LEFT_AT + 1.0) if refreshed else "an earlier list"
    return worlds.at_rest(
        3,
        job=worlds.mpi_job(replicas=1, annotations={names.DRAIN_TIMEOUT: "30s"}),
        config=config,
        launcher=worlds.launcher(refreshed=touched),
    )


def test_a_job_at_rest() -> None:
    report = worlds.at_rest(2)
    assert (report.state, report.desired, report.ready, report.published, report.draining) == ("Running", 2, 2, 2, 0)
    assert report.elastic
    assert report.hosts == ["train-worker-0:1", "train-worker-1:1"]
    assert report.exec_names == worlds.workers(0, 1)
    assert report.launcher is not None
    assert report.launcher.refreshed is True
    assert [(worker.node, worker.phase) for worker in report.workers] == [("node-0", "Running"), ("node-1", "Running")]
    probes = "check by exec, from time to time, that ranks run in train-worker-0, train-worker-1"
    assert report.next == ["nothing: the job is as desired", probes]
    assert report.next_look is None


def test_draining_workers_say_since_when_and_until_when() -> None:
    report = leaving()
    assert (report.desired, report.ready, report.published, report.draining) == (1, 3, 1, 2)
    expected = Draining(since=time(LEFT_AT), until=time(LEFT_AT + 31.0))
    assert [worker.draining for worker in report.workers] == [None, expected, expected]
    assert report.last_scale == Scale(before=3, after=1, at=time(LEFT_AT))
    assert report.next == ["check by exec whether ranks still run in train-worker-2, train-worker-1"]


def test_a_drain_has_no_end_before_the_launcher_was_refreshed() -> None:
    report = leaving(refreshed=False)
    assert report.launcher is not None
    assert report.launcher.refreshed is False
    assert report.workers[1].draining == Draining(since=time(LEFT_AT), until=None)
    assert report.next[0].startswith("touch train-launcher")


def test_a_worker_that_is_wanted_and_not_there_is_shown_as_missing() -> None:
    report = worlds.at_rest(2, job=worlds.mpi_job(replicas=3))
    assert [worker.phase for worker in report.workers] == ["Running", "Running", "Missing"]
    assert report.workers[2].name == "train-worker-2"
    assert report.ready == 2


def test_nobody_misses_the_workers_of_a_finished_job() -> None:
    over = worlds.mpi_job(conditions=["Succeeded"], completionTime=worlds.CREATED_TEXT)
    report = worlds.at_rest(2, job=over, workers=[])
    assert (report.state, report.workers) == ("Succeeded", [])
    assert report.next == ["nothing: the job has ended"]


def test_the_first_hosts_of_a_job_are_no_change_of_its_size() -> None:
    memory = Memory(scale=Scaled(before=0, after=2, at=worlds.CREATED))
    assert worlds.at_rest(2, config=worlds.config_map(worlds.workers(0, 1), memory=memory)).last_scale is None


def test_without_the_right_to_read_roles_the_plan_is_unknown_and_says_why() -> None:
    report = worlds.at_rest(2, role=None)
    assert report.exec_names is None
    [line] = report.next
    assert line.startswith("unknown: ")
    assert "roles.rbac.authorization.k8s.io" in line


def test_a_job_of_another_operator_is_not_ours_to_make_elastic() -> None:
    pod = worlds.worker(0)
    pod["metadata"]["labels"]["replica-index"] = "0"
    config = worlds.config_map(worlds.workers(0))
    del config["metadata"]["annotations"]
    report = worlds.at_rest(1, workers=[pod], config=config)
    assert not report.elastic
    assert "newer than v0.2.3" in report.foreign
    assert report.next == ["note on the job that another operator manages it"]


def test_how_a_worker_ended_is_shown_once_it_has() -> None:
    pod = worlds.worker(1, phase="Failed")
    pod["status"]["reason"] = "Evicted"
    report = worlds.at_rest(2, workers=[worlds.worker(0), pod])
    assert not report.workers[0].last_state
    assert "Evicted" in report.workers[1].last_state


@pytest.mark.parametrize(
    ("launcher", "phase", "refreshed"),
    [
        (worlds.launcher(mounts=False), "Running", None),
        (worlds.launcher(phase="Pending"), "Pending", None),
        (worlds.launcher(phase="Failed"), "Failed", None),
    ],
)
def test_a_launcher_that_cannot_be_refreshed_is_neither_refreshed_nor_due(
    launcher: worlds.Object, phase: str, refreshed: bool | None
) -> None:
    report = worlds.at_rest(2, launcher=launcher)
    assert report.launcher is not None
    assert (report.launcher.phase, report.launcher.refreshed) == (phase, refreshed)


def test_programs_get_camel_case_and_rfc_3339() -> None:
    printed = json.loads(msgspec.json.encode(leaving()))
    assert printed["lastScale"] == {"before": 3, "after": 1, "at": "2026-01-01T00:01:30Z"}
    assert printed["workers"][1]["draining"]["until"] == "2026-01-01T00:02:01Z"
    assert printed["drainTimeout"] == 30.0


def test_what_is_printed_can_be_read_back() -> None:
    report = leaving()
    assert msgspec.json.decode(msgspec.json.encode(report), type=JobReport) == report
    assert report.created + timedelta(seconds=100) == time(worlds.NOW)


def test_a_worker_is_shown_with_the_host_name_that_it_has() -> None:
    report = worlds.at_rest(config=worlds.config_map(["train-worker-0", "train-worker-1.r2"]))
    assert report.hosts == ["train-worker-0:1", "train-worker-1.r2:1"]
    assert [(worker.published, worker.host, worker.incarnation) for worker in report.workers] == [
        (True, "train-worker-0", 0),
        (True, "train-worker-1.r2", 2),
    ]
    assert report.next[0] == "nothing: the job is as desired"


def test_a_worker_that_is_not_published_keeps_the_number_it_had_last() -> None:
    config = worlds.config_map(["train-worker-0"], memory=Memory(hosts={"train-worker-1": Host(pod="", incarnation=3)}))
    [_, out] = worlds.at_rest(config=config).workers
    assert (out.published, out.host, out.incarnation) == (False, "", 3)
