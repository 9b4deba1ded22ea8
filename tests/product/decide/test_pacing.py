"""When the next change may follow."""

from dataclasses import replace

import pytest

from mpijob_elastic.decide import derive, host_list
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.model.job import LauncherPhase, Worker
from mpijob_elastic.model.memory import Memory
from tests.builders import LONG_AGO, NOW, config, job, launcher, pending, pods, shown, worker


@pytest.mark.parametrize(
    ("added_at", "removed_at", "shown_at", "settled"),
    [
        (LONG_AGO, LONG_AGO, LONG_AGO, LONG_AGO),
        (NOW - 1, LONG_AGO, LONG_AGO, NOW - 1),
        (LONG_AGO, NOW - 2, LONG_AGO, NOW - 2),
        (NOW - 9, NOW - 9, NOW - 1, NOW - 1),
        # Written before the clock was set back.
        (NOW + 3600, NOW - 2, LONG_AGO, NOW - 2),
    ],
)
def test_a_change_settles_after_it_was_written_and_shown(
    added_at: float, removed_at: float, shown_at: float, settled: float
) -> None:
    view = job(config=config(pods(0), memory=Memory(added_at=added_at, removed_at=removed_at)))
    assert derive(shown(view, at=shown_at), now=NOW).settled_at == settled + SETTLE


@pytest.mark.parametrize("phase", [LauncherPhase.WAITING, LauncherPhase.DELIVERING])
def test_a_launcher_about_to_start_is_not_shown_a_removal_and_an_addition_in_one(phase: LauncherPhase) -> None:
    view = job(launcher=launcher(phase), config=config(pods(0), memory=Memory(removed_at=NOW)))
    assert derive(view, now=NOW).settled_at == NOW + SETTLE


def test_without_a_launcher_nothing_has_to_settle() -> None:
    view = job(launcher=None, config=config(pods(0), memory=Memory(added_at=NOW)))
    assert derive(view, now=NOW).settled_at == 0.0


@pytest.mark.parametrize(
    ("workers", "gathered"),
    [
        ((worker(0), worker(1), worker(2)), 0.0),
        ((worker(0), worker(1, ready_at=NOW - 1), pending(2)), NOW - 1 + host_list.GATHER),
        ((worker(0), worker(1, ready_at=NOW + 3600), pending(2)), host_list.GATHER),
        ((worker(0), worker(1, ready_at=NOW - 1)), NOW - 1 + host_list.GATHER),
        # A surplus worker that is Ready is not the worker that is missing.
        ((worker(0), worker(1, ready_at=NOW - 1), worker(3)), NOW - 1 + host_list.GATHER),
    ],
)
def test_the_first_of_a_scale_out_waits_a_moment_for_the_rest(workers: tuple[Worker, ...], gathered: float) -> None:
    view = job(workers=workers)
    assert host_list._gathered_at(derive(view, now=NOW), [workers[1].name]) == gathered


@pytest.mark.parametrize(
    ("min_np", "published", "wait"),
    [
        (0, (0,), host_list.GATHER_TO_SAVE_RESETS),
        (1, (0,), host_list.GATHER_TO_SAVE_RESETS),
        # Training waits for its least size, or has not begun: an addition costs no reset.
        (2, (0,), host_list.GATHER),
        (0, (), host_list.GATHER),
    ],
)
def test_where_resets_count_additions_are_gathered_for_longer(
    min_np: int, published: tuple[int, ...], wait: float
) -> None:
    workers = (worker(0), worker(1, ready_at=NOW - 1), pending(2))
    view = job(workers=workers, config=config(pods(*published)), counts_resets=True, min_np_workers=min_np)
    assert host_list._gathered_at(derive(view, now=NOW), [workers[1].name]) == NOW - 1 + wait
    all_ready = replace(view, workers=(*workers[:2], worker(2, ready_at=NOW)))
    assert host_list._gathered_at(derive(all_ready, now=NOW), [workers[1].name]) == 0.0
