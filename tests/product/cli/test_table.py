"""Reports as text."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from mpijob_elastic.cli.jobs import table
from mpijob_elastic.cli.jobs.report import Draining, Scale
from tests.product.cli import worlds

NOW = datetime.fromtimestamp(worlds.NOW, UTC)
AGO = NOW - timedelta(seconds=12)


def test_columns_are_aligned_and_end_without_blanks() -> None:
    assert table.columns(["A", "B"], [["long", "x"], ["s", ""]]) == ["A      B", "long   x", "s"]


def test_one_line_a_job() -> None:
    report = replace(worlds.at_rest(2), last_scale=Scale(before=3, after=2, at=AGO))
    assert table.jobs([report], now=NOW, namespaces=False, wide=False) == [
        "NAME    STATE     DESIRED   READY   PUBLISHED   DRAINING   ELASTIC   AGE    LAST-SCALE",
        "train   Running   2         2       2           0          yes       100s   3→2 12s ago",
    ]


def test_all_namespaces_and_everything() -> None:
    report = replace(worlds.at_rest(1), min_replicas=1, max_replicas=8, notices=["NotElastic: it is not"])
    header, row = table.jobs([report], now=NOW, namespaces=True, wide=True)
    assert header.split() == [
        *["NAMESPACE", "NAME", "STATE", "DESIRED", "READY", "PUBLISHED", "DRAINING", "ELASTIC", "AGE", "LAST-SCALE"],
        *["MIN", "MAX", "SLOTS", "DRAIN-TIMEOUT", "LAUNCHER", "NOTICE"],
    ]
    assert row.split() == [
        *["default", "train", "Running", "1", "1", "1", "0", "yes", "100s", "-"],
        *["1", "8", "1", "1m", "Running", "NotElastic"],
    ]


def test_a_job_of_another_operator_is_neither_elastic_nor_not() -> None:
    report = replace(worlds.at_rest(1), elastic=False, foreign="another's")
    assert table.jobs([report], now=NOW, namespaces=False, wide=False)[1].split()[6] == "-"
    assert "Elastic:        no: another's" in table.details(report, now=NOW)


def test_a_size_that_is_missing_is_unknown_and_no_number() -> None:
    report = replace(worlds.at_rest(2), desired=None)
    assert table.jobs([report], now=NOW, namespaces=False, wide=False)[1].split()[2] == "unknown"
    assert any("desired unknown, ready 2" in line for line in table.details(report, now=NOW))


def test_the_page_on_a_job_that_drains() -> None:
    report = worlds.at_rest(2)
    draining = Draining(since=AGO, until=NOW + timedelta(seconds=48))
    workers = [report.workers[0], replace(report.workers[1], draining=draining, published=False)]
    report = replace(
        report,
        desired=1,
        published=1,
        draining=1,
        max_replicas=4,
        workers=workers,
        hosts=report.hosts[:1],
        notices=["Reason: words"],
        next=["do this"],
        next_look=NOW + timedelta(seconds=1.5),
        last_scale=Scale(before=2, after=1, at=AGO),
    )
    assert table.details(report, now=NOW) == [
        "Job:            default/train",
        "State:          Running, 100s old",
        "Elastic:        yes",
        "Workers:        desired 1, ready 2, published 1, draining 1 (allowed: 1 to 4)",
        "Slots:          1 a worker",
        "Drain timeout:  1m",
        "Last scale:     2→1 12s ago",
        "Launcher:       train-launcher, Running, discover_hosts.sh is up to date",
        "",
        "WORKER           PHASE     READY   PUBLISHED   EXEC   DRAINING            NODE     LAST-STATE",
        "train-worker-0   Running   yes     yes         yes    -                   node-0   -",
        "train-worker-1   Running   yes     no          yes    for 12s, 48s left   node-1   -",
        "",
        "discover_hosts.sh prints:",
        "  train-worker-0:1",
        "",
        "Notices:",
        "  Reason: words",
        "",
        "Next:",
        "  do this",
        "  check again in 1.5s",
    ]


def test_what_is_not_there_or_not_known_is_shown_as_such() -> None:
    report = worlds.at_rest(1, role=None, launcher=None, config=None)
    page = table.details(report, now=NOW)
    assert "Launcher:       not created yet" in page
    assert page[10].split()[:5] == ["train-worker-0", "Running", "yes", "no", "?"]
    assert page[13] == "  -"


def test_a_host_name_that_is_not_the_pods_is_shown() -> None:
    report = worlds.at_rest(config=worlds.config_map(["train-worker-0", "train-worker-1.r2"]))
    [first, second] = [line for line in table.details(report, now=NOW) if line.startswith("train-worker")]
    assert first.split()[:4] == ["train-worker-0", "Running", "yes", "yes"]
    assert second.split()[:5] == ["train-worker-1", "Running", "yes", "as", "train-worker-1.r2"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")],
)
def test_an_age_has_one_unit(seconds: float, words: str) -> None:
    assert table.age(NOW - timedelta(seconds=seconds), now=NOW) == words
