"""What the page on compatibility says was run, and how a run gets there."""

import re
from dataclasses import replace

import pytest

from scripts import compatibility
from scripts.compatibility import COMBINATIONS, Combination, RecordedRun

KUEUE = "tests/peers/capabilities/kueue/test_kueue.py::test_a"
PLAIN = RecordedRun(
    combination="lab", kubernetes="v1.34.4", at="2026-11-30", passed=2, failed=0, version=""
)


@pytest.mark.parametrize(
    ("test", "name"),
    [
        (KUEUE, "kueue"),
        ("tests/peers/capabilities/kueue/test_multikueue.py::test_a", "kueue-campaign"),
        ("tests/peers/test_helm_installed.py::test_a[helm-v4]", "helm-4"),
        ("tests/peers/test_helm_installed.py::test_a[helm-values]", "helm-3"),
        ("tests/peers/capabilities/gangs/test_gangs.py::test_a[coscheduling]", "coscheduling"),
        ("tests/real/test_two_jobs.py::test_volcano_takes_only", "volcano-training"),
        ("tests/real/test_lost_ranks.py::test_a", "training"),
        ("tests/lab/test_handover.py::test_a", "handover"),
        ("tests/lab/capabilities/kueue/test_a.py::test_a", "lab"),
        ("tests/product/test_docs.py::test_a", None),
    ],
)
def test_a_test_belongs_to_what_it_runs_beside(test: str, name: str | None) -> None:
    found = compatibility.of(test)
    assert (found.name if found else None) == name


def test_only_what_was_run_counts() -> None:
    ran = {KUEUE: "passed", f"{KUEUE}b": "failed", f"{KUEUE}c": "skipped", "tests/x": "passed"}
    [one] = compatibility.counted(ran, kubernetes="v1.37.2", at="2026-11-30")
    assert (one.combination, one.kubernetes, one.passed, one.failed) == ("kueue", "v1.37.2", 1, 1)
    assert one.version.startswith("v0.")


def test_a_lab_of_another_kubernetes_counts_for_that() -> None:
    test = "tests/peers/capabilities/gangs/test_kubernetes_1_36_gangs.py::test_a"
    [one] = compatibility.counted({test: "passed"}, kubernetes="v1.34.4", at="2026-11-30")
    assert one.kubernetes.startswith("v1.36.")


def test_the_newest_run_on_a_kubernetes_stays() -> None:
    newer = replace(PLAIN, at="2026-12-01", passed=3)
    other = replace(PLAIN, kubernetes="v1.28.15")
    assert compatibility.merged([PLAIN, other], [newer]) == [other, newer]


def test_runs_are_read_as_they_are_written() -> None:
    assert compatibility.written(compatibility.recorded()) == compatibility.RUNS.read_text()
    assert compatibility.merged(compatibility.recorded(), []) == compatibility.recorded()


@pytest.mark.parametrize(
    ("run", "row"),
    [
        (PLAIN, "2 pass |"),
        (replace(PLAIN, failed=1), "2 of 3 pass |"),
        (replace(PLAIN, failed=1, note="it is new"), "2 of 3 pass; it is new |"),
        (replace(PLAIN, passed=None, failed=None, note="figures"), "| figures |"),
    ],
)
def test_a_row_says_how_many_passed(run: RecordedRun, row: str) -> None:
    assert any(line.endswith(row) for line in compatibility.table([run]).splitlines())


def test_nothing_is_claimed_for_what_has_no_run() -> None:
    lines = compatibility.table([]).splitlines()
    beside = [line for line in lines if "| KEDA " in line]
    assert len(beside) == 1
    assert beside[0].endswith("| no run is recorded | - |")


@pytest.mark.parametrize("one", COMBINATIONS, ids=lambda one: one.name)
def test_its_tests_are_there_and_what_ci_builds_a_peer_for_is_not_left_to_the_campaign(
    one: Combination,
) -> None:
    files = [file for test in one.tests for file in _files(test.partition("::")[0])]
    assert files
    if not one.peers:
        return
    own = [file for file in files if compatibility.of(f"{file}::test_a{one.word}") == one]
    marked = [file for file in own if _FOR_CAMPAIGN.search((compatibility.ROOT / file).read_text())]
    assert marked == []


_FOR_CAMPAIGN = re.compile(r"^pytestmark = (.*|\[[^\]]*)pytest\.mark\.campaign", re.MULTILINE)


def _files(beginning: str) -> list[str]:
    at = compatibility.ROOT / beginning
    found = at.rglob("test_*.py") if at.is_dir() else at.parent.glob(f"{at.name}*")
    return [str(file.relative_to(compatibility.ROOT)) for file in found]
