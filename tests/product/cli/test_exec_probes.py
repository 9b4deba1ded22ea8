"""Looks by exec: the script on real processes, and the second look."""

import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mpijob_elastic.cli.jobs import exec_probes
from mpijob_elastic.diagnosis.facts import Look
from mpijob_elastic.model.kubexec import Exec
from tests.builders import LONG_AGO, but, failed, job, ref, worker
from tests.doubles.shells import Shells, connected, prints
from tests.doubles.terminals import on_terminal
from tests.product.kube.virtual_time import run

VIEW = job(workers=(worker(0), failed(1)))
ALIVE, DEAD = (
    Exec(pid=7, pod="j-worker-0", started_at=LONG_AGO),
    Exec(pid=8, pod="j-worker-1", started_at=LONG_AGO),
)


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox"])
def test_the_script_prints_names_whatever_is_in_them(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not there")
    (tmp_path / "a) R (b c").symlink_to(shutil.which("sleep") or "")
    command = [shell, *(["sh"] if shell == "busybox" else []), "-c", exec_probes.SCRIPT]
    (tmp_path / "attached").symlink_to(shutil.which("sleep") or "")
    with (
        subprocess.Popen([tmp_path / "a) R (b c", "300"], start_new_session=True) as process,
        on_terminal(str(tmp_path / "attached"), "300"),
    ):
        try:
            printed = subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.splitlines()
        finally:
            process.kill()
    assert "a) R (b c" in printed
    assert "attached" not in printed


async def test_what_runs_in_each_container_that_may_hold_ranks_is_said() -> None:
    shells = Shells(prints("python3\n"))
    async with connected(shells) as client:
        both = but(worker(0), ref=ref("p"), containers=("a", "b"))
        looks = await exec_probes.into_workers(client, but(VIEW, namespace="n"), [both])
    assert looks == {"p": Look(processes=("python3 (x2)",))}
    assert [asked.container for asked in shells.asked] == ["a", "b"]


def answers(*found: tuple[Exec, ...]) -> Callable[[], Awaitable[tuple[Exec, ...]]]:
    rest = list(found)

    async def look() -> tuple[Exec, ...]:
        return rest.pop(0)

    return look


@pytest.mark.parametrize(
    ("first", "second", "frozen"),
    [
        ((ALIVE, DEAD), (ALIVE, DEAD), (DEAD,)),
        ((ALIVE, DEAD), (ALIVE,), ()),
        ((DEAD,), (Exec(pid=9, pod="j-worker-1", started_at=LONG_AGO),), ()),
    ],
)
def test_an_exec_is_frozen_where_it_is_found_cut_off_and_found_again(
    first: tuple[Exec, ...], second: tuple[Exec, ...], frozen: tuple[Exec, ...]
) -> None:
    assert run(exec_probes.look_for_frozen(VIEW, answers(first, second))) == frozen
