"""elastic.sh with real MPI implementations: what each change of the hosts, and each end, comes to."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.driver.world import World, until, world_of

PAIRS = [("dash", "open-mpi"), ("busybox", "mpich"), ("bash", "mpich")]


@pytest.fixture(params=PAIRS, ids="-".join)
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """A job with three workers, and no host in the list."""
    shell, mpi = request.param
    with world_of(tmp_path, shell_name=shell, mpi=mpi) as made:
        made.add("w0", "w1", "w2")
        yield made


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[World]:
    """The same for what no shell and no MPI decides."""
    with world_of(tmp_path, shell_name="dash", mpi="mpich") as made:
        made.add("w0", "w1", "w2")
        yield made


def goes_on(world: World, start: int) -> None:
    """See that all ranks of a start saved the same step, and that the next start begins there."""
    saved = {note.step for note in world.of(start, "saved")}
    assert len(world.of(start, "saved")) == len(world.of(start, "starts"))
    first = world.of(start + 1, "starts")[0].step
    # Each rank of this program counts for itself; rank 0 saves.
    assert first in saved


def test_each_change_is_one_restart_and_loses_no_step(world: World) -> None:
    sizes = [["w0", "w1"], ["w0", "w1", "w2"], ["w0"], ["w0", "w1", "w2"]]
    world.start()
    world.waits()
    for start, names in enumerate(sizes, start=1):
        world.publish(*names)
        world.runs_on(*names, start=start)
        time.sleep(0.5)
    for start in (1, 2, 3):
        goes_on(world, start)
    assert [note.ranks for note in world.notes if note.what == "starts" and note.rank == 0] == [
        2,
        3,
        1,
        3,
    ]


def test_a_host_that_is_another_pod_is_a_change_and_a_list_of_the_same_hosts_is_none(
    plain: World,
) -> None:
    plain.publish("w0", "w1")
    plain.start()
    plain.runs_on("w0", "w1", start=1)
    plain.publish("w0", "w1")
    plain.runs_on("w0", "w1", start=1)
    assert not plain.tells_of(2)
    plain.publish("w0", "w1", generations={"w1": "second"})
    plain.runs_on("w0", "w1", start=2)


def test_a_stop_loses_nothing_and_the_job_goes_on_when_it_has_hosts_again(world: World) -> None:
    world.publish("w0", "w1")
    world.start()
    world.runs_on("w0", "w1", start=1)
    world.publish()
    world.waits()
    assert world.ranks() == []
    world.publish("w2")
    world.runs_on("w2", start=2)
    goes_on(world, 1)


def test_sigterm_lets_the_ranks_save(world: World) -> None:
    world.publish("w0", "w1")
    world.start()
    world.runs_on("w0", "w1", start=1)
    world.terminate()
    assert world.code() == 143
    assert len(world.of(1, "saved")) == 2


def test_sigterm_ends_a_driver_that_waits(plain: World) -> None:
    plain.start()
    plain.waits()
    plain.terminate()
    assert plain.code() == 143


def test_a_program_that_is_done_ends_the_driver_with_0(world: World) -> None:
    world.publish("w0", "w1")
    world.start(steps=5)
    assert world.code() == 0
    assert {note.start for note in world.notes} == {1}
    assert world.acknowledged == f"list {world.number}\nstate waiting\n"


def test_a_program_that_fails_is_tried_again_and_its_code_is_the_drivers(world: World) -> None:
    world.publish("w0", "w1")
    world.start("--retries", "1", steps=3, code=7)
    assert world.code() == 7
    assert {note.start for note in world.notes} == {1, 2}


def test_a_killed_rank_starts_again(world: World) -> None:
    world.publish("w0", "w1", "w2")
    world.start()
    world.runs_on("w0", "w1", "w2", start=1)
    until(lambda: len(world.ranks()) == 3, "three ranks")
    killed = world.ranks()
    os.kill(killed[0], signal.SIGKILL)
    world.runs_on("w0", "w1", "w2", start=2)
    assert not {*killed} & {*world.ranks()}


def test_a_lost_worker_is_no_failure_of_the_program(world: World) -> None:
    """The worker may leave the list much later, and mpirun of Open MPI 5 ends with 0."""
    world.publish("w0", "w1", "w2")
    world.start("--retries", "0")
    world.runs_on("w0", "w1", "w2", start=1)
    world.remove("w2")
    world.says("w2 cannot be reached")
    world.runs_on("w0", "w1", start=2)
    world.publish("w0", "w1")
    world.runs_on("w0", "w1", start=2)
    assert not world.tells_of(3)


def test_a_failure_on_a_host_that_leaves_does_not_count(plain: World) -> None:
    plain.publish("w0", "w1")
    plain.start("--retries", "0", steps=3, code=7)
    plain.says("start 1 ended with 7")
    plain.publish("w0")
    plain.says("w1 has left the list")
    assert plain.code() == 7
    assert {note.start for note in plain.notes} == {1, 2}


def test_ranks_that_ignore_the_signal_are_ended_after_the_grace_period(world: World) -> None:
    world.publish("w0", "w1")
    world.start("--grace", "2", hears="deaf")
    world.runs_on("w0", "w1", start=1)
    world.publish("w0")
    world.says("still running after 2 s")
    world.runs_on("w0", start=2)
    assert len(world.ranks()) == 1


def test_ranks_without_a_handler_end_and_start_again(world: World) -> None:
    world.publish("w0", "w1")
    world.start("--retries", "0", hears="nothing")
    world.runs_on("w0", "w1", start=1)
    world.publish("w0")
    world.runs_on("w0", start=2)


def test_a_change_while_mpirun_starts_the_ranks_ends_it(world: World) -> None:
    (world.folder / "slow").touch()
    world.publish("w0", "w1")
    world.start()
    world.runs_on("w0", "w1")
    world.publish("w0", "w1", "w2")
    world.says("not all ranks have started: SIGTERM")
    (world.folder / "slow").unlink()
    world.runs_on("w0", "w1", "w2", start=2)


def test_only_what_an_earlier_start_left_is_ended(plain: World) -> None:
    left = plain.run_in("w0", "MPIJOB_ELASTIC_RUN=former.3. sleep 1000")
    foreign = plain.run_in("w0", "sleep 1000")
    plain.publish("w0")
    plain.start()
    plain.runs_on("w0", start=1)
    assert left.wait(timeout=10) != 0
    assert foreign.poll() is None
    foreign.kill()


def test_a_host_that_cannot_be_reached_joins_once_it_can(plain: World) -> None:
    plain.hide("w1")
    plain.publish("w0", "w1")
    plain.start()
    plain.says("nothing is started in w1")
    plain.runs_on("w0", start=1)
    assert plain.acknowledged.endswith("left w1\n")
    plain.show("w1")
    plain.runs_on("w0", "w1", start=2)


def test_a_host_that_an_earlier_driver_could_not_reach_stays_acknowledged(plain: World) -> None:
    """Its worker has left the list, and something may run there until it answers."""
    file = plain.folder / "run" / "acknowledged"
    file.parent.mkdir(exist_ok=True)
    file.write_text("list 1\nstate running\nw0:1 w0\nleft w1\n")
    plain.hide("w1")
    plain.publish("w0")
    plain.start()
    plain.runs_on("w0", start=1)
    assert plain.acknowledged.endswith("left w1\n")


def test_bounds(plain: World) -> None:
    plain.publish("w0")
    plain.start("--np", "2", "--min-np", "1", "--max-np", "2")
    plain.says("waits for 2 slots")
    plain.publish("w0", "w1")
    plain.runs_on("w0", "w1", start=1)
    plain.publish("w0", "w1", "w2")
    plain.runs_on("w0", "w1", start=1)
    plain.publish("w0")
    plain.runs_on("w0", start=2)


def test_below_the_least_it_waits(plain: World) -> None:
    plain.publish("w0", "w1")
    plain.start("--min-np", "2")
    plain.runs_on("w0", "w1", start=1)
    plain.publish("w0")
    plain.waits()
    assert plain.ranks() == []


def test_slots_are_ranks(world: World) -> None:
    world.publish("w0", "w1", slots=2)
    world.start()
    world.runs_on("w0", "w1")
    until(lambda: len(world.of(1, "starts")) == 4, "four ranks", shown=lambda: world.log)


SCRIPT = 'echo begins; "$@"; code=$?; echo done; exit $code'


def scripted(world: World) -> list[str]:
    """Return a command that runs mpirun within a script, which forwards no signal."""
    return ["sh", "-c", SCRIPT, "sh", *world.mpirun]


def test_a_script_that_runs_mpirun_is_signalled_as_mpirun_is(world: World) -> None:
    world.publish("w0", "w1")
    world.start("--implementation", world.mpi.name, command=scripted(world))
    world.runs_on("w0", "w1", start=1)
    world.publish("w0")
    world.runs_on("w0", start=2)
    goes_on(world, 1)


def test_a_script_that_is_ended_in_its_start_leaves_no_mpirun(world: World) -> None:
    (world.folder / "slow").touch()
    world.publish("w0", "w1")
    world.start("--implementation", world.mpi.name, command=scripted(world))
    world.runs_on("w0", "w1")
    world.publish("w0")
    world.says("not all ranks have started: SIGTERM")
    (world.folder / "slow").unlink()
    world.runs_on("w0", start=2)
    time.sleep(6)  # longer than a slow start takes
    assert len(world.ranks()) == 1
    assert [note.start for note in world.notes][-1] == 2


def test_sigterm_while_ranks_save_starts_nothing_more(world: World) -> None:
    world.publish("w0", "w1")
    world.start("--grace", "5", hears="deaf")
    world.runs_on("w0", "w1", start=1)
    world.publish("w0")
    world.says("SIGUSR1, at most 5 s")
    world.terminate()
    assert world.code() == 143
    assert not world.tells_of(2)
    assert world.ranks() == []


def test_a_host_that_joins_later_is_asked_for_what_was_left_there(plain: World) -> None:
    left = plain.run_in("w1", "MPIJOB_ELASTIC_RUN=former.3. sleep 1000")
    plain.publish("w0")
    plain.start()
    plain.runs_on("w0", start=1)
    plain.publish("w0", "w1")
    plain.runs_on("w0", "w1", start=2)
    assert left.wait(timeout=10) != 0


def test_children_of_what_is_left_end_too(plain: World) -> None:
    """A process may have emptied its environment, as programs do that change their title."""
    script = "MPIJOB_ELASTIC_RUN=former.3. sh -c 'env -i /bin/sleep 1000; exit 0'"
    left = plain.run_in("w0", script)
    plain.publish("w0")
    time.sleep(0.5)
    plain.start()
    plain.runs_on("w0", start=1)
    assert left.wait(timeout=10) != 0
    found = plain.run_in(
        "w0",
        'for p in /proc/[0-9]*; do read -r l < $p/cmdline; [ "$l" = /bin/sleep1000 ] && exit 7; done; exit 0',
    )
    assert found.wait(timeout=10) == 0


FORMS = {
    "open-mpi": "w0 slots=2\nw1 slots=2\n",
    "mpich": "w0:2\nw1:2\n",
}


@pytest.mark.parametrize(("implementation", "form"), FORMS.items(), ids=FORMS)
def test_the_hostfile_has_the_form_of_the_mpi(plain: World, implementation: str, form: str) -> None:
    plain.publish("w0", "w1", slots=2)
    plain.start("--implementation", implementation, command=["cat", "{hostfile}"])
    assert plain.code() == 0
    assert form in plain.log


def test_ranks_that_wait_for_a_host_that_is_lost_are_not_given_the_whole_grace_period(
    plain: World,
) -> None:
    plain.publish("w0", "w1", "w2")
    plain.start("--grace", "600", hears="deaf")
    plain.runs_on("w0", "w1", "w2", start=1)
    plain.hide("w2")
    plain.publish("w0", "w1")
    plain.says("w2 is lost")
    plain.runs_on("w0", "w1", start=2)
    # A worker that leaves is waited for, until another pod has its name.
    plain.publish("w0")
    plain.says("list 4 has 1 slot: SIGUSR1")
    time.sleep(5)
    assert not plain.tells_of(3)
    plain.publish("w0", "w1", generations={"w1": "second"})
    plain.says("w1 is lost")
    plain.runs_on("w0", "w1", start=3)


def test_ranks_save_when_the_lines_of_their_hosts_change(world: World) -> None:
    world.publish("w0", "w1")
    world.start()
    world.runs_on("w0", "w1", start=1)
    world.publish_unnumbered("w0", "w1")
    world.runs_on("w0", "w1", start=2)
    goes_on(world, 1)
    world.number = 7
    world.publish("w0", "w1", slots=2)
    until(lambda: len(world.of(2, "saved")) == 2, "they save again", shown=lambda: world.log)


def test_ranks_save_before_a_new_host_has_answered(plain: World) -> None:
    plain.add("w5")
    plain.hang("w5")
    plain.publish("w0", "w1")
    plain.start()
    plain.runs_on("w0", "w1", start=1)
    plain.publish("w0", "w5")
    plain.says("nothing is started in w5")
    signalled, waited = (
        next(index for index, line in enumerate(plain.said) if text in line)
        for text in ("SIGUSR1", "nothing is started in w5")
    )
    assert signalled < waited
    assert len(plain.of(1, "saved")) == 2


def test_what_a_former_driver_could_not_end_is_acknowledged_until_it_ends(plain: World) -> None:
    (plain.folder / "run").mkdir()
    (plain.folder / "run" / "acknowledged").write_text("list 90\nstate waiting\nleft w9\n")
    plain.publish("w0")
    plain.start()
    plain.runs_on("w0", start=1)
    assert "left w9\n" in plain.acknowledged
