"""A process is recognised by pid and start time; children end with the process that started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes import Identity

END = 30.0  # seconds
STARTS_A_CHILD = """
import sys, time
from pathlib import Path
from lab.processes import spawn
child = spawn(["sleep", "300"], log=Path(sys.argv[1]), environment={"PATH": "/usr/bin:/bin"})
print(child.pid, flush=True)
time.sleep(300)
"""


def test_this_process_is_alive() -> None:
    assert Identity.of(os.getpid()).alive()


def test_a_process_with_a_recycled_pid_is_another_one_and_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "300"]) as process:
        now = Identity.of(process.pid)
        before = Identity(pid=now.pid, started=now.started - 1)
        assert not before.alive()
        before.signal(signal.SIGKILL)
        assert before.ends_within(0)
        assert now.alive()
        now.signal(signal.SIGKILL)
        assert now.ends_within(END)
    assert process.returncode == -signal.SIGKILL
    assert not now.alive()


def test_no_process_has_no_identity() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(ProcessLookupError):
        Identity.of(process.pid)


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_A_CHILD, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as parent:
        assert parent.stdout is not None
        child = Identity.of(int(parent.stdout.readline()))
        assert child.alive()
        parent.kill()
    assert child.ends_within(END)
