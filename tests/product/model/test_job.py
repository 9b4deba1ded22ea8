"""Properties that a view derives from its parts, and the host list read back: exactly what we write, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.job import JobView, Published, parse_script
from mpijob_elastic.model.pod import LauncherPhase
from mpijob_elastic.model.policy import Policy
from tests.builders import but, config, failed, job, launcher, pending, pods, role, worker


@pytest.mark.parametrize(
    ("phase", "running", "may_run"),
    [
        (None, False, False),
        (LauncherPhase.WAITING, False, True),
        (LauncherPhase.DELIVERING, False, True),
        (LauncherPhase.STARTED, True, True),
        (LauncherPhase.FINISHED, False, False),
    ],
)
def test_when_the_driver_runs_or_may_run(
    phase: LauncherPhase | None, running: bool, may_run: bool
) -> None:
    view = job(launcher=launcher(phase) if phase else None)
    assert (view.driver_running, view.driver_may_run) == (running, may_run)


def test_surplus_workers_leave_from_the_highest_index_down() -> None:
    view = job(12, replicas=2)
    assert [worker.index for worker in view.surplus] == list(range(11, 1, -1))


def test_a_worker_takes_ranks_while_it_is_ready_and_stays() -> None:
    assert worker(0).ready
    for other in (pending(0), failed(0), worker(0, deleting=True), worker(0, ready_at=None)):
        assert not other.ready


@pytest.mark.parametrize(("size", "count"), [(2**31 - 1, MOST_WORKERS), (0, 0), (-1, 0)])
def test_a_size_that_is_a_typing_error_does_not_become_as_many_names(size: int, count: int) -> None:
    assert len(job(replicas=size).wanted_names) == count


@pytest.mark.parametrize(
    "view", [job(replicas=2**31 - 1), job(2, role=role(*range(MOST_WORKERS + 1)))]
)
def test_no_more_workers_are_expected_than_there_may_be(view: JobView) -> None:
    assert view.most_workers == MOST_WORKERS


def test_hosts_are_what_the_script_names() -> None:
    assert job(3).published_pods == pods(0, 1, 2)
    assert job(config=None).published_pods == job(config=config([])).published_pods == ()


STARTED, WAITING, FINISHED = LauncherPhase.STARTED, LauncherPhase.WAITING, LauncherPhase.FINISHED


@pytest.mark.parametrize(
    ("asked", "policy", "phase", "mounts", "elastic", "blind"),
    [
        (True, Policy(), None, False, True, False),
        (False, Policy(), None, False, False, False),
        # Before the start the launcher can be recreated, so the MPIJob decides.
        (True, Policy(), WAITING, False, True, False),
        (False, Policy(), WAITING, True, False, False),
        (True, Policy(), STARTED, True, True, False),
        (False, Policy(), STARTED, False, False, False),
        # An edit for the next launcher, either way.
        (True, Policy(enabled=True), STARTED, False, False, True),
        (True, Policy(), STARTED, False, False, True),
        (False, Policy(), STARTED, True, True, False),
        (False, Policy(), FINISHED, True, True, False),
        (True, Policy(), FINISHED, False, False, False),
        # This holds at once.
        (False, Policy(enabled=False), STARTED, True, False, False),
    ],
)
def test_the_launcher_decides_once_its_driver_has_started(
    asked: bool,
    policy: Policy,
    phase: LauncherPhase | None,
    mounts: bool,
    elastic: bool,
    blind: bool,
) -> None:
    pod = launcher(phase, mounts_discovery=mounts, names_discovery=False) if phase else None
    view = job(spec_elastic=asked, policy=policy, launcher=pod)
    assert (view.elastic, view.blind) == (elastic, blind)


@pytest.mark.parametrize("asked", [True, False])
def test_a_command_that_names_discovery_is_elastic_and_blind_without_the_file(asked: bool) -> None:
    view = job(spec_elastic=asked, launcher=launcher(mounts_discovery=False))
    assert (view.elastic, view.blind) == (True, True)
    assert not but(view, policy=Policy(enabled=False)).elastic


HOSTS = st.lists(st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True), unique=True)


@given(hosts=HOSTS, slots=st.integers(1, 2**31 - 1))
def test_what_we_write_is_read_back(hosts: list[str], slots: int) -> None:
    published = parse_script(names.discover_hosts(hosts, slots=slots))
    assert published == Published(hosts=tuple(hosts), slots=slots if hosts else 1)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "#!/bin/sh",
        "echo a:1\n",
        "#!/bin/bash\necho a:1\n",
        "#!/bin/sh\necho a:1",
        "#!/bin/sh\r\necho a:1\r\n",
    ],
)
def test_a_script_that_begins_or_ends_otherwise_is_not_ours(script: str) -> None:
    assert parse_script(script) is None


REPEATED = ("", "a:1\n# edited", "a:1\necho b:2", "a:1\necho a:1", "a:1;reboot")
# One line to the shell, although Python's splitlines sees two.
ONE_LINE = ("a:1\x0cecho b:1", "a:1\u2028echo b:1")


@pytest.mark.parametrize(
    "host",
    [
        *REPEATED,
        *ONE_LINE,
        "a:1 ",
        "a",
        "a:0",
        "a:01",
        "A:1",
        "-n:1",
        "a:" + "9" * 5000,
        "a" * 254 + ":1",
    ],
)
def test_a_script_with_any_other_line_is_not_ours(host: str) -> None:
    assert parse_script(f"#!/bin/sh\necho {host}\n") is None


@given(st.text() | st.text().map(lambda text: names.SCRIPT_HEADER + text))
def test_any_text_is_read_without_an_error_and_only_our_own_is_accepted(script: str) -> None:
    published = parse_script(script)
    if published is not None:
        assert rendered(published) == script


def rendered(published: Published) -> str:
    return names.discover_hosts(
        list(published.hosts), slots=published.slots, reminder=published.reminder
    )


@given(
    hosts=HOSTS.filter(bool),
    slots=st.integers(1, 2**31 - 1),
    pod=st.sampled_from(["j-worker-0", "a.b-worker-12", "x-worker-3-worker-0"]),
    number=st.integers(1, 9),
)
def test_a_line_without_slots_is_no_host(
    hosts: list[str], slots: int, pod: str, number: int
) -> None:
    name = names.reminder(pod, number)
    published = parse_script(names.discover_hosts(hosts, slots=slots, reminder=name))
    assert published == Published(hosts=tuple(hosts), slots=slots, reminder=name)


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["j-worker-0.r01:0"], id="alone"),
        pytest.param(["j-worker-0.r01:0", "j-worker-0:1"], id="not the last line"),
        pytest.param(["j-worker-0:1", "j-worker-0.r01:0", "j-worker-0.r02:0"], id="two"),
        pytest.param(["j-worker-0:1", "j-worker-0.r01:00"], id="two zeros"),
        pytest.param(["j-worker-0:1", "j-worker-0.r00:0"], id="a number too low"),
        pytest.param(["j-worker-0:1", "j-worker-0.r010:0"], id="a number too high"),
        pytest.param(["j-worker-0:1", "j-worker-0.r1:0"], id="the name of a host"),
        pytest.param(["j-worker-0:1", "j-worker-1:0"], id="the name of a pod"),
        pytest.param(["j-worker-0:1", "j-launcher.r01:0"], id="no worker"),
    ],
)
def test_any_other_line_without_slots_is_not_ours(lines: list[str]) -> None:
    script = names.SCRIPT_HEADER + "".join(f"echo {line}\n" for line in lines)
    assert parse_script(script) is None


@pytest.mark.parametrize(("size", "is_read"), [(MOST_WORKERS, True), (MOST_WORKERS + 1, False)])
def test_a_list_longer_than_any_size_is_nobodys(size: int, is_read: bool) -> None:
    script = names.discover_hosts([f"a-{index}" for index in range(size)], slots=1)
    assert (parse_script(script) is not None) is is_read
