"""CPU and memory that a process has used."""

import os
import subprocess
import sys

import pytest

from bench.processes import Usage, parse, pin, usage

# From proc(5): fields 14 and 15 are CPU time in user and kernel mode.
STAT = "4711 (a (strange) name) S 1 4711 4711 0 -1 4194560 9 8 7 6 250 50 3 2 20 0 1 0 1 2 3 4"
STATUS = "Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t    800 kB\nVmRSS:\t    700 kB\nThreads:\t1\n"


def test_usage_is_read_from_what_the_kernel_says() -> None:
    assert parse(STAT, STATUS, ticks_a_second=100) == Usage(cpu=3.0, resident=700 * 1024, peak=800 * 1024)


def test_our_own_usage_makes_sense() -> None:
    used = usage(os.getpid())
    assert used.cpu > 0
    assert used.peak >= used.resident > 2**20


def test_a_process_that_has_ended_is_no_process() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(ProcessLookupError):
        usage(ended.pid)


def test_a_pinned_process_stays_on_its_core() -> None:
    core = min(os.sched_getaffinity(0))
    with subprocess.Popen(["sleep", "60"]) as process:
        pin(process.pid, core=core)
        assert os.sched_getaffinity(process.pid) == {core}
        process.kill()
