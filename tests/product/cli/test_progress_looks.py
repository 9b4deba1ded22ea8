"""Looks for lines of progress: what they find, and that a pod can neither delay nor break a list."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mpijob_elastic.cli.jobs import progress_looks
from mpijob_elastic.cli.jobs.progress_looks import FoundLines
from mpijob_elastic.model import progress
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import LauncherPhase
from tests.builders import but, job, launcher, pending, worker
from tests.doubles.api import refused
from tests.doubles.shells import (
    STATUS,
    STDOUT,
    SUCCESS,
    Asked,
    DirectShells,
    Message,
    Shells,
    connected,
    prints,
    says,
)
from tests.product.kube.virtual_time import run

LINE = "alive v1 7 99 1200 128 2 1300.000 312.5 0 1100.000 1150.000 60.0 3.0 10 10.0 4000\n"
ENDED = LINE.replace("alive", "ended")


@pytest.mark.parametrize("shell", ["sh", "bash", "busybox"])
def test_the_script_prints_the_line_and_whether_its_process_lives(
    tmp_path: Path, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not there")
    command = [shell, *(["sh"] if shell == "busybox" else []), "-c", progress_looks.SCRIPT]
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    file = tmp_path / "line"
    file.write_text(LINE.replace("alive v1 7 99", f"v1 {os.getpid()} {ticks}"))
    for written, alive in ((file.read_text(), True), (LINE.replace("alive ", ""), False)):
        file.write_text(written)
        printed = subprocess.run(
            command,
            env={**os.environ, progress.VARIABLE: str(file)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        found = progress.parse(printed.strip(), asked_at=1301.0)
        assert found is not None
        assert (found.alive, found.step, found.total) == (alive, 1200, 4000)


RUNS = job(2)
STARTS = job(2, launcher=launcher(LauncherPhase.WAITING))


@pytest.mark.parametrize(
    ("view", "first", "all_listed"),
    [
        pytest.param(RUNS, [0], [0, 1], id="a job that trains"),
        pytest.param(RUNS.pod(0, ready_at=None), [1], [1], id="its first worker is not Ready"),
        pytest.param(RUNS.pod(0, opaque=True), [1], [1], id="a look cannot tell its ranks apart"),
        pytest.param(STARTS, [], [0, 1], id="no driver yet"),
        pytest.param(job(2, finished=True), [], [0, 1], id="a job that has finished"),
        pytest.param(RUNS.plain(), [], [], id="not elastic"),
        pytest.param(job(2, foreign="other"), [], [], id="of another operator"),
        pytest.param(job(workers=(pending(0), pending(1))), [], [], id="no worker is Ready"),
    ],
)
def test_a_list_looks_into_one_worker_and_the_page_of_a_job_into_all(
    view: JobView, first: list[int], all_listed: list[int]
) -> None:
    assert [one.index for one in progress_looks.first(view)] == first
    assert [one.index for one in progress_looks.listed(view)] == all_listed


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("", id="nobody wrote"),
        pytest.param("alive v1\x1b[2J", id="another text"),
        pytest.param(LINE * 9, id="too much"),
        pytest.param(LINE.replace("1150", "1099"), id="impossible times"),
    ],
)
async def test_what_is_no_line_is_none(answer: str) -> None:
    async with connected(Shells(prints(answer))) as client:
        assert await progress_looks.look(client, [worker(0)]) == FoundLines(lines={})


async def test_a_container_that_shows_the_process_counts() -> None:
    async def talk(asked: Asked) -> AsyncIterator[Message]:
        yield STDOUT, LINE if asked.container == "b" else ENDED
        yield STATUS, SUCCESS

    async with connected(Shells(talk)) as client:
        found = await progress_looks.look(client, [but(worker(0), containers=("a", "b", "c"))])
    [line] = found.lines.values()
    assert line.alive


async def test_a_worker_that_cannot_be_looked_into_hides_no_other() -> None:
    async def talk(asked: Asked) -> AsyncIterator[Message]:
        if asked.pod.endswith("0"):
            raise refused(500, "InternalError", "no")
        yield STDOUT, LINE
        yield STATUS, SUCCESS

    async with connected(Shells(talk)) as client:
        found = await progress_looks.look(client, [worker(0), worker(1)])
    assert (list(found.lines), found.refused) == ([worker(1).ref.uid], "")


async def test_a_refusal_ends_the_looks_into_its_namespace() -> None:
    async def talk(asked: Asked) -> AsyncIterator[Message]:
        raise refused(403, "Forbidden", "no")
        yield STATUS, SUCCESS

    shells = Shells(talk)
    async with connected(shells) as client:
        found = await progress_looks.look(client, [worker(index) for index in range(60)])
    assert found == FoundLines(lines={}, refused=worker(0).ref.namespace)
    assert len(shells.asked) <= progress_looks.AT_ONCE


def test_looks_are_bounded_in_number_and_time() -> None:
    shells = Shells(says((STDOUT, LINE), (STATUS, SUCCESS)))
    workers = [worker(index) for index in range(200)]
    found = run(progress_looks.look(DirectShells(shells), workers))
    assert len(found.lines) == len(shells.asked) == progress_looks.MOST

    hangs = Shells(prints(LINE))
    hangs.go.clear()
    assert run(progress_looks.look(DirectShells(hangs), workers)) == FoundLines(lines={})
    assert hangs.most_at_once == progress_looks.AT_ONCE
    assert max(asked.at for asked in hangs.asked) <= progress_looks.IN_ALL
