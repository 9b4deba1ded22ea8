"""The look into a launcher: the script in real shells, on real processes, and what is read from it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpijob_elastic.act import execs
from mpijob_elastic.model.execs import Exec

NOW = 1_000_000.0
SHELLS = [["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]]
SECRET = "HOROVOD_SECRET_KEY=of nobody's business\nand more"


@contextmanager
def kubectl(folder: Path, *words: str) -> Iterator[int]:
    """A process with the command line of kubexec.sh's kubectl; its pid."""
    (folder / "exec").write_text("sleep 300\n")
    command = ["/opt/kube/kubectl", "exec", *words, "--", "/bin/sh", "-c", f"env {SECRET} python3 train.py"]
    # The shell takes its first argument, the word exec, for its script.
    with subprocess.Popen(command, executable="/bin/sh", cwd=folder) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("words", [("my--job-worker-10",), ("my--job-worker-10", "--container", "main")])
def test_the_script_finds_execs_and_prints_nothing_of_their_secrets(
    tmp_path: Path, shell: list[str], words: tuple[str, ...]
) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not there")
    with kubectl(tmp_path, *words) as pid:
        output = ""
        while f"\n{pid} " not in output:  # until the process is what it was started to be
            output = subprocess.run([*shell, *execs.COMMAND[1:]], capture_output=True, text=True, check=True).stdout
    assert "SECRET" not in output
    [found] = [one for one in execs.parse(output, now=time.time()) or () if one.pid == pid]
    assert found.pod == "my--job-worker-10"
    assert abs(found.started_at - time.time()) < 60.0


def test_what_is_printed_is_read() -> None:
    output = "uptime 500.25\n7 10025 j-worker-1\n8 20025 j-worker-2--containermain\n"
    assert execs.parse(output, now=NOW) == (
        Exec(pid=7, pod="j-worker-1", started_at=NOW - 400.0),
        Exec(pid=8, pod="j-worker-2", started_at=NOW - 300.0),
    )
    assert execs.parse("uptime 500.25\n", now=NOW) == ()


def test_what_is_no_exec_into_a_worker_is_left_out() -> None:
    lines = ["7 1 database-0", "8 1 j-worker-1--tty", "x 1 j-worker-1", "9 j-worker-1", "10 1 j-worker-"]
    assert execs.parse("uptime 500.25\n" + "".join(f"{line}\n" for line in lines), now=NOW) == ()


@pytest.mark.parametrize("output", ["", "uptime \n", "sh: not found\n", "7 1 j-worker-1\n"])
def test_what_the_script_did_not_print_says_nothing(output: str) -> None:
    assert execs.parse(output, now=NOW) is None


def test_an_uptime_of_the_container_alone_makes_no_process_older() -> None:
    assert execs.parse("uptime 3.00\n7 10025 j-worker-1\n", now=NOW) == (Exec(pid=7, pod="j-worker-1", started_at=NOW),)
