"""Names that must be read back exactly, however unlucky the job's own name is."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.model import kubexec
from tests.builders import NASTY_JOBS


@pytest.mark.parametrize(
    ("pod", "job"),
    [
        ("mnist10-worker-2", "mnist1"),
        ("mnist-worker-2", "mnist10"),
        ("x-worker-3-worker-1", "x"),
        ("x-worker-3", "x-worker-3"),
        ("j-worker-01", "j"),
        ("j-worker-", "j"),
        ("j-worker--1", "j"),
        ("j-worker-1a", "j"),
        ("j-worker-1\n", "j"),
        ("j-worker-\u0661", "j"),  # a digit, though not one that the operator writes
        ("j-launcher", "j"),
        ("jj-worker-1", "j"),
        ("", ""),
        (f"j-worker-{'9' * 5000}", "j"),
    ],
)
def test_what_is_no_worker_of_this_job_has_no_index(pod: str, job: str) -> None:
    assert names.worker_index(pod, job=job) is None


INDICES = st.sampled_from([0, 1, 9, 10, 12, 100_000])


@given(job=st.sampled_from(NASTY_JOBS), other=st.sampled_from(NASTY_JOBS), index=INDICES)
def test_a_worker_belongs_to_one_job_only(job: str, other: str, index: int) -> None:
    found = names.worker_index(names.worker(job, index), job=other)
    assert found == (index if job == other else None)


@pytest.mark.parametrize("job", [*NASTY_JOBS, "a.r5", "x-worker-3.r5", "x.r5-worker-0.r7"])
@pytest.mark.parametrize("index", [0, 3, 12])
@pytest.mark.parametrize("incarnation", [0, 1, 10, 100_000_000])
def test_a_host_name_gives_pod_and_incarnation_back(job: str, index: int, incarnation: int) -> None:
    pod = names.worker(job, index)
    host = names.host(pod, incarnation)
    assert (host == pod) is (incarnation == 0)
    assert (names.pod_of(host), names.incarnation_of(host)) == (pod, incarnation)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "stranger.r1",
        "j-worker-1.r0",
        "j-worker-1.r01",
        "j-worker-1.r",
        "j-worker-1.r1a",
        "j-worker-1.r1\n",
        "j-worker-1.r\u0661",
        "j-worker-01.r1",
        "j-launcher.r1",
        f"j-worker-1.r{'9' * 10}",
    ],
)
def test_what_is_no_host_name_of_ours_stands_for_itself(host: str) -> None:
    assert (names.pod_of(host), names.incarnation_of(host)) == (host, 0)


@pytest.mark.parametrize("number", [1, 2, 9])
def test_the_name_of_a_reminder_is_no_hosts_and_kubexec_takes_its_number_off(number: int) -> None:
    name = names.reminder("j-worker-3", number)
    assert (names.pod_of(name), names.incarnation_of(name)) == (name, 0)
    assert names.reminder_number(name) == number
    pod = subprocess.run(
        ["/bin/sh", "-c", f'POD_NAME=$1; {kubexec.MAPPING} echo "$POD_NAME"', "sh", name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert pod.stdout == "j-worker-3\n"


@pytest.mark.parametrize("host", ["j-worker-3", "j-worker-3.r1", "j-worker-3.r00", "j.r01", ""])
def test_any_other_name_is_no_reminders(host: str) -> None:
    assert names.reminder_number(host) == 0


def test_a_reminder_is_the_last_line_of_the_script() -> None:
    script = names.discover_hosts(["j-worker-0"], slots=2, reminder="j-worker-0.r01")
    assert script == "#!/bin/sh\necho j-worker-0:2\necho j-worker-0.r01:0\n"


def test_the_script_and_the_hostfile_are_what_the_operators_write() -> None:
    hosts = ["j-worker-0", "j-worker-1"]
    assert (
        names.discover_hosts(hosts, slots=2) == "#!/bin/sh\necho j-worker-0:2\necho j-worker-1:2\n"
    )
    assert names.hostfile(hosts, slots=2) == "j-worker-0 slots=2\nj-worker-1 slots=2\n"
