"""Changes between two reports."""

from msgspec.structs import replace

from mpijob_elastic.cli.jobs import changes
from mpijob_elastic.cli.jobs.report import JobReport
from tests.product.cli import worlds


def refreshed(report: JobReport, value: bool | None) -> JobReport:
    assert report.launcher is not None
    return replace(report, launcher=replace(report.launcher, refreshed=value))


def test_the_first_look_is_summed_up() -> None:
    assert changes.between(None, worlds.at_rest(2)) == [
        "default/train: Running, desired 2, ready 2, published 2, draining 0"
    ]


def test_nothing_new_is_no_line() -> None:
    assert changes.between(worlds.at_rest(2), worlds.at_rest(2, now=worlds.NOW + 50)) == []


def test_a_scale_out_in_the_order_in_which_it_happens() -> None:
    before, after = worlds.at_rest(2), worlds.at_rest(3)
    assert changes.between(before, after) == [
        "desired: 2 → 3",
        "Role: exec allowed into train-worker-2",
        "train-worker-2: none → Running Ready",
        "discover_hosts.sh: train-worker-0:1, train-worker-1:1 → train-worker-0:1, train-worker-1:1, train-worker-2:1",
        "train-launcher: discover_hosts.sh refreshed",
    ]


def test_workers_that_leave_are_listed_in_numeric_order() -> None:
    before, after = worlds.at_rest(12), worlds.at_rest(1)
    lines = changes.between(before, after)
    assert [line.split(":")[0] for line in lines if line.endswith("gone")] == worlds.workers(*range(1, 12))
    assert f"Role: exec no longer allowed into {', '.join(worlds.workers(*range(1, 12)))}" in lines


def test_a_worker_that_is_only_wanted_is_no_worker_yet() -> None:
    before, after = worlds.at_rest(2), worlds.at_rest(2, job=worlds.mpi_job(replicas=3))
    assert changes.between(before, after) == ["desired: 2 → 3"]


def test_the_launcher_is_refreshed_once_for_each_list() -> None:
    before = refreshed(worlds.at_rest(2), value=False)
    assert changes.between(before, refreshed(before, value=True)) == ["train-launcher: discover_hosts.sh refreshed"]
    assert changes.between(refreshed(before, value=True), refreshed(before, value=True)) == []


def test_a_launcher_comes_and_goes() -> None:
    there, gone = worlds.at_rest(2), worlds.at_rest(2, launcher=None)
    assert "train-launcher: none → Running" in changes.between(gone, there)
    assert changes.between(there, gone) == ["train-launcher: Running → gone"]


def test_a_new_state_and_a_new_notice() -> None:
    before = worlds.at_rest(1)
    after = replace(before, state="Failed", notices=["Reason: words"])
    assert changes.between(before, after) == ["state: Running → Failed", "notice: Reason: words"]
    assert changes.between(after, replace(after, notices=[])) == []
