"""What the launcher's command says of a job that elastic.sh runs."""

import json

import pytest

from lab.operator import objects
from mpijob_elastic import capabilities
from mpijob_elastic.model import bounds, driver, launch_command
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.launch_command import ELASTIC_SH, Launch
from mpijob_elastic.model.mpirun_options import Mpirun, MpirunOption

MPIRUN = ["--", "mpirun", "-np", "{np}", "--hostfile", "{hostfile}", "python", "train.py"]
INNER = Mpirun(
    program="mpirun",
    options=(
        MpirunOption(name="np", words=("-np", "{np}")),
        MpirunOption(name="hostfile", words=("--hostfile", "{hostfile}")),
    ),
    ranks=(),
)
BARE = Mpirun(program="mpirun", options=(), ranks=())
COMMANDS = {
    "plain": (["/etc/mpi/elastic.sh", *MPIRUN], Launch(program=ELASTIC_SH, mpirun=INNER)),
    "options": (
        [
            *("/etc/mpi/elastic.sh", "--np", "2", "--min-np=1", "--max-np", "8"),
            *("--grace", "30", "--gather", "5", *MPIRUN),
        ],
        Launch(program=ELASTIC_SH, np=2, min_np=1, max_np=8, grace=30, gather=5, mpirun=INNER),
    ),
    "computed": (
        ["/etc/mpi/elastic.sh", "--min-np", "$LEAST", *MPIRUN],
        Launch(program=ELASTIC_SH, computed=frozenset({"min_np"}), mpirun=INNER),
    ),
    "in a script": (
        ["sh", "-c", "cd /work && exec /etc/mpi/elastic.sh --min-np 2 -- mpirun ./a.out"],
        Launch(program=ELASTIC_SH, min_np=2, mpirun=BARE),
    ),
    "by a shell": (
        ["bash", "/etc/mpi/elastic.sh", "--min-np", "2", "--", "mpirun", "./a.out"],
        Launch(program=ELASTIC_SH, min_np=2, mpirun=BARE),
    ),
    "below a first process": (
        ["tini", "--", "/etc/mpi/elastic.sh", "--", "mpirun", "./a.out"],
        Launch(program=ELASTIC_SH, mpirun=BARE),
    ),
    "only tells": (["/etc/mpi/elastic.sh", "--help"], None),
    # The script refuses it, and no other mpirun of the command follows the size.
    "after another mpirun": (
        ["sh", "-c", "mpirun --version; /etc/mpi/elastic.sh -- ./a.out"],
        Launch(program=ELASTIC_SH),
    ),
}


@pytest.mark.parametrize(("command", "expected"), COMMANDS.values(), ids=COMMANDS)
def test_the_command_is_read(command: list[str], expected: Launch | None) -> None:
    assert launch_command.parse(command) == expected


# The options, then the slots for the first start and the least slots.
LEAST = {
    "neither": ([], None, 1),
    "--np": (["--np", "4"], 4, 1),
    "--min-np": (["--min-np", "2"], 2, 2),
    "both": (["--np", "4", "--min-np", "2"], 4, 2),
    "--np below": (["--np", "1", "--min-np", "2"], 2, 2),
    "computed": (["--min-np", "$N"], None, None),
}


@pytest.mark.parametrize(("options", "first", "least"), LEAST.values(), ids=LEAST)
def test_the_least_size(options: list[str], first: int | None, least: int | None) -> None:
    found = launch_command.parse(["/etc/mpi/elastic.sh", *options, *MPIRUN])
    assert found is not None
    assert (found.first_np, found.effective_min_np) == (first, least)


def facts_of(command: list[str]) -> JobFacts:
    return capabilities.read(json.dumps(objects.mpi_job(command=command)).encode())


def test_a_job_is_elastic_by_the_driver_that_its_launcher_names() -> None:
    command = ["/etc/mpi/elastic.sh", "--np", "2", "--min-np", "1", *MPIRUN]
    facts = facts_of(command)
    assert facts.elastic
    assert facts.driver is driver.ELASTIC
    assert (facts.np_workers, facts.min_np_workers, facts.names_hostfile) == (2, 1, False)
    assert facts.unread_options == frozenset()


def test_what_cannot_be_read_is_told_of_the_driver_of_the_job() -> None:
    command = ["/etc/mpi/elastic.sh", "--np", "$N", "--min-np", "1", *MPIRUN]
    facts = facts_of(command)
    assert facts.unread_words == "elastic.sh's --np cannot be read in the launcher's command"


# Words that take more than may be kept of a job.
SCRIPT = "export A=1\n" * 10_000
LONG = {
    "a script": ["bash", "-c", SCRIPT],
    "a script in each rank": ["mpirun", "-np", "{np}", "bash", "-c", SCRIPT],
    "a variable": ["mpirun", "-x", f"A={SCRIPT}", "./a.out"],
    "hosts": ["mpirun", "-H", "a," * 50_000, "./a.out"],
    "many options": ["mpirun", *("-np", "x" * 120) * 400, "./a.out"],
    "a long folder": [f"{'/a' * 50_000}/mpirun", "./a.out"],
}


@pytest.mark.parametrize("words", LONG.values(), ids=LONG)
def test_no_command_below_elastic_sh_makes_a_job_unreadable(words: list[str]) -> None:
    facts = facts_of(["/etc/mpi/elastic.sh", "--min-np", "2", "--", *words])
    assert facts.min_np_workers == 2
    assert bounds.size(facts.launch) < 8 * 2**10
