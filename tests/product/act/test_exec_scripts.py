"""The scripts that find and end execs, in real shells on real processes, and what is read from their output."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpijob_elastic.act import launcher_execs
from mpijob_elastic.cli.jobs import exec_probes
from mpijob_elastic.diagnosis.logged_ranks import Spawn
from mpijob_elastic.model.kubexec import Exec
from tests.builders import NOW, but

SHELLS = [["sh"], ["dash"], ["bash", "--posix"], ["busybox", "sh"]]
SECRET = "HOROVOD_SECRET_KEY=of nobody's business\nand more"
POD = "my--job-worker-10"
# As horovodrun builds it (horovod/runner/gloo_run.py); what a user's own variables hold is nobody's
# business either.
RANK = f"cd /data > /dev/null 2>&1 ; HOROVOD_HOSTNAME={POD}.r2 HOROVOD_RANK=12 HOROVOD_SIZE=16 env {SECRET} python3"


def answers(shell: list[str], *execs: Exec) -> list[str]:
    command = [*shell, *launcher_execs.end_command(execs)[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@contextmanager
def kubectl(
    folder: Path, shell: list[str], *words: str, runs: str = f"env {SECRET} python3 train.py"
) -> Iterator[tuple[Exec, subprocess.Popen[bytes]]]:
    """A process with the command line of kubexec.sh's kubectl, as the look finds it once it is what it is to be."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not there")
    (folder / "exec").write_text("sleep 300\n")
    command = ["/opt/kube/kubectl", "exec", *words, "--", "/bin/sh", "-c", runs]
    program = folder / "kubectl"
    if not program.is_symlink():
        program.symlink_to("/bin/sh")
    # The shell takes its first argument, the word exec, for its script.
    with subprocess.Popen(command, executable=program, cwd=folder) as process:
        try:
            output, look = "", [*shell, *launcher_execs.COMMAND[1:]]
            until = time.monotonic() + 60
            while f"\n{process.pid} " not in output:
                assert time.monotonic() < until, output
                output = subprocess.run(look, capture_output=True, text=True, check=True).stdout
            assert "SECRET" not in output
            execs = launcher_execs.parse(output, started_at=NOW) or ()
            yield next(found for found in execs if found.pid == process.pid), process
        finally:
            process.kill()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("words", [(POD,), (POD, "--container", "main")])
def test_the_scripts_find_and_end_the_exec_that_was_seen_and_no_other(
    tmp_path: Path, shell: list[str], words: tuple[str, ...]
) -> None:
    with kubectl(tmp_path, shell, *words) as (found, running):
        assert found.pod == POD
        assert found.started_at >= NOW  # no process is older than the first
        others = (
            but(found, ticks=found.ticks + 1),
            but(found, pod=POD[:-1]),
            but(found, pod=f"{POD}0"),
            but(found, pod="*"),
        )
        assert answers(shell, *others) == ["gone"] * len(others)
        assert running.poll() is None
        assert answers(shell, others[0], found, others[1]) == ["gone", "ended", "gone"]
        assert running.wait(60) == -15
        assert answers(shell, found) == ["gone"]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_the_script_ends_nothing_that_is_no_exec(tmp_path: Path, shell: list[str]) -> None:
    with kubectl(tmp_path, shell, POD) as (found, _), subprocess.Popen(["sleep", "300"]) as other:
        try:
            ticks = int(Path(f"/proc/{other.pid}/stat").read_text().rpartition(") ")[2].split()[19])
            assert answers(shell, but(found, pid=other.pid, ticks=ticks)) == ["gone"]
            assert other.poll() is None
        finally:
            other.kill()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("words", [(POD,), (POD, "--container", "main")])
def test_the_look_of_users_shows_the_rank_and_nothing_else_of_a_command(
    tmp_path: Path, shell: list[str], words: tuple[str, ...]
) -> None:
    look = [*shell, "-c", exec_probes.RANKS]
    with kubectl(tmp_path, shell, *words, runs=RANK) as (found, _):
        output = subprocess.run(look, capture_output=True, text=True, check=True).stdout
        seen = exec_probes.parse_ranks(output, started_at=NOW)
        assert [spawn for spawn in seen.spawns if spawn.pid == found.pid] == [
            Spawn(pid=found.pid, rank=12, pod=POD, started_at=found.started_at)
        ]
        assert seen.at >= found.started_at
        assert not [word for word in ("SECRET", "data", "python3", "HOROVOD") if word in output]
    with kubectl(tmp_path, shell, *words, runs="orted -mca ess env") as (found, _):
        output = subprocess.run(look, capture_output=True, text=True, check=True).stdout
        assert f"\n{found.pid} " not in output


@pytest.fixture
def other_cgroup() -> Iterator[Path]:
    """The file that takes the ids of processes into a cgroup of their own, as another container's."""
    for root in (
        Path("/sys/fs/cgroup/pids"),
        Path("/sys/fs/cgroup/unified"),
        Path("/sys/fs/cgroup"),
    ):
        group = root / f"test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if not (group / "cgroup.procs").exists():
            group.rmdir()
            continue
        yield group / "cgroup.procs"
        group.rmdir()
        return
    pytest.skip("no cgroup can be made here: that takes root")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_a_launcher_that_sees_all_processes_is_asked_for_those_of_its_container(
    tmp_path: Path, shell: list[str], other_cgroup: Path
) -> None:
    with (
        kubectl(tmp_path, shell, POD, runs=RANK) as (ours, _),
        kubectl(tmp_path, shell, POD, runs=RANK) as (theirs, process),
    ):
        other_cgroup.write_text(str(theirs.pid))
        try:
            found = launcher_execs.parse(
                printed(shell, launcher_execs.SHARED_SCRIPT), started_at=NOW
            )
            ranks = exec_probes.parse_ranks(
                printed(shell, exec_probes.SHARED_RANKS), started_at=NOW
            )
            assert [(one.pid, one.ticks) for one in found if one.pid in {ours.pid, theirs.pid}] == [
                (ours.pid, ours.ticks)
            ]
            assert ours.pid in {one.pid for one in ranks.spawns}
            assert theirs.pid not in {one.pid for one in ranks.spawns}
            # The first process of the node is older than the first of any container.
            assert all(one.started_at >= NOW for one in found)
        finally:
            process.kill()
            process.wait()


def printed(shell: list[str], script: str) -> str:
    command = [*shell, "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("text", ["", "sh: not found\n", "main 1\n", f"main 1 look {'9' * 5000}\n"])
def test_what_the_look_did_not_print_says_nothing_of_ranks(text: str) -> None:
    assert exec_probes.parse_ranks(text, started_at=NOW) is None


LONG = "9" * 5000
FOUND = (
    Exec(pid=7, pod="j-worker-1", started_at=NOW + 0.25, ticks=5025),
    Exec(pid=8, pod="j-worker-2", started_at=NOW + 100.25, ticks=15025),
)


@pytest.mark.parametrize(
    ("output", "execs"),
    [
        pytest.param(
            "main 5000\n7 5025 j-worker-1\n8 15025 j-worker-2--containermain\n",
            FOUND,
            id="two execs",
        ),
        pytest.param("main 5000\n", (), id="none"),
        pytest.param(
            "main 1\n7 1 database-0\n8 1 j-worker-1--tty\nx 1 j-worker-1\n9 j-worker-1\n10 1 j-worker-\n",
            (),
            id="what is no exec into a worker is left out",
        ),
        pytest.param(
            f"main 1\n{LONG} 1 j-worker-1\n7 {LONG} j-worker-1\n7 1 j-worker-{LONG}\n",
            (),
            id="numbers without end are left out",
        ),
        *(
            pytest.param(
                text, None, id=f"what the script did not print says nothing: {text[:20]!r}"
            )
            for text in ("", "main \n", f"main {LONG}\n", "sh: not found\n", "7 1 j-worker-1\n")
        ),
    ],
)
def test_what_is_printed_is_read(output: str, execs: tuple[Exec, ...] | None) -> None:
    assert launcher_execs.parse(output, started_at=NOW) == execs
