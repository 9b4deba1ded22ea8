"""The words of mpirun are read up to the program of the ranks, or not at all."""

import pytest

from mpijob_elastic.model import mpirun_options
from mpijob_elastic.model.mpirun_options import MpirunOption

# The options with their values, and the program of the ranks.
READ = {
    "no option": (["mpirun", "./a"], [], ["./a"]),
    "options of the program": (["mpirun", "./a", "-np", "3"], [], ["./a", "-np", "3"]),
    "a number": (["mpirun", "-np", "4", "./a"], [("np", "4")], ["./a"]),
    "two dashes": (["mpirun", "--np", "4", "./a"], [("np", "4")], ["./a"]),
    "an equals sign": (["mpirun", "--hostfile=h", "./a"], [("hostfile", "h")], ["./a"]),
    "switches": (
        ["mpirun", "--allow-run-as-root", "--oversubscribe", "./a"],
        [("allow-run-as-root", ""), ("oversubscribe", "")],
        ["./a"],
    ),
    "two values": (
        ["mpirun", "--mca", "btl", "tcp,self", "-x", "A=1", "./a"],
        [("mca", "tcp,self"), ("x", "A=1")],
        ["./a"],
    ),
    "hydra": (
        ["mpiexec", "-f", "hosts", "-ppn", "2", "-genv", "A", "1", "-n", "2", "./a"],
        [("f", "hosts"), ("ppn", "2"), ("genv", "1"), ("n", "2")],
        ["./a"],
    ),
}


@pytest.mark.parametrize(("command", "options", "ranks"), READ.values(), ids=READ)
def test_words_are_read(
    command: list[str], options: list[tuple[str, str]], ranks: list[str]
) -> None:
    found = mpirun_options.read(command)
    assert found is not None
    assert found.program == command[0]
    assert [(one.name, one.value) for one in found.options] == options
    assert list(found.ranks) == ranks


UNREADABLE = {
    "an option that is not known": ["mpirun", "--own", "4", "./a"],
    "an unknown option with an equals sign": ["mpirun", "--own=4", "./a"],
    "a value that is missing": ["mpirun", "-np"],
    "two values that are missing": ["mpirun", "--mca", "btl"],
    "no program": ["mpirun", "-np", "4"],
    "several programs": ["mpirun", "-np", "1", "./a", ":", "-np", "1", "./b"],
    "two dashes alone": ["mpirun", "--", "./a"],
}


@pytest.mark.parametrize("command", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_not_certain_is_not_read(command: list[str]) -> None:
    assert mpirun_options.read(command) is None


def test_a_value_behind_an_equals_sign_keeps_further_ones() -> None:
    assert MpirunOption(name="x", words=("--x=A=1",)).value == "A=1"
