"""The words that elastic.sh takes, and what it answers to wrong ones, in each shell."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.driver.world import DRIVER, SHELLS

DONE = ["--", "true"]
# Wrong words, and a part of the answer.
REFUSED = {
    "no command": ([], "no command after --"),
    "no command after options": (["--np", "2", "--"], "no command after --"),
    "no --": (["mpirun"], "'mpirun' is no option; write -- before the command"),
    "unknown": (["--nproc", "2", *DONE], "unknown option '--nproc'"),
    "no value": (["--np"], "--np needs a value"),
    "no number": (["--np", "two", *DONE], "--np needs a number, not 'two'"),
    "empty": (["--grace=", *DONE], "--grace needs a number, not ''"),
    "negative": (["--retries", "-1", *DONE], "--retries needs a number, not '-1'"),
    "zero": (["--min-np", "0", *DONE], "--min-np must be at least 1, not 0"),
    "too large": (["--max-np", "1000000000", *DONE], "--max-np needs a number"),
    "bounds": (["--min-np", "3", "--max-np", "2", *DONE], "--max-np is below --min-np"),
    "leading zero": (["--grace", "08", *DONE], "--grace needs a number, not '08'"),
    "start above the most": (["--np", "3", "--max-np", "2", *DONE], "--max-np is below --np"),
    "signal": (["--signal", "SAVE", *DONE], "--signal must be USR1, USR2, "),
    "operator's hostfile": (
        ["--", "mpirun", "--hostfile", "/etc/mpi/hostfile"],
        "/etc/mpi/hostfile names all workers; write {hostfile}",
    ),
    "Intel's slots": (
        ["--implementation", "intel-mpi", "--", "mpirun", "-f", "{hostfile}"],
        "write -machinefile {hostfile}",
    ),
    "implementation": (
        ["--implementation", "lam", *DONE],
        "--implementation must be open-mpi, mpich or intel-mpi, not 'lam'",
    ),
    "form": (["--", "./run.sh", "{hostfile}"], "give --implementation"),
}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    """A shell that is installed."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return SHELLS[request.param]


def run(shell: Sequence[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*shell, DRIVER, *words], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(("words", "answer"), REFUSED.values(), ids=REFUSED)
def test_wrong_words_are_refused_with_what_to_do(
    shell: list[str], words: list[str], answer: str
) -> None:
    found = run(shell, *words)
    assert found.returncode == 2
    assert answer in found.stderr
    assert found.stderr.endswith("see elastic.sh --help\n")
    assert found.stdout == ""


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_names_each_option(shell: list[str], word: str) -> None:
    found = run(shell, word)
    assert found.returncode == 0
    taken = {
        line.split(")")[0].strip()
        for line in DRIVER.read_text().splitlines()
        if line.startswith("    --") and ")" in line
    }
    options = {name for name in taken if name.startswith("--") and "*" not in name}
    assert len(options) >= 8
    for option in options:
        assert f"  {option} " in found.stdout


@pytest.mark.parametrize("name", ["USR1", "SIGUSR2", "TERM", "INT"])
def test_signals_have_names(shell: list[str], name: str) -> None:
    assert run(shell, "--signal", name, "--help").returncode == 0


def test_a_launcher_without_a_place_for_its_files_says_so(shell: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    variables = {"MPIJOB_ELASTIC_FOLDER": f"{tmp_path}/file/run", "TMPDIR": f"{tmp_path}/file"}
    found = subprocess.run(
        [*shell, DRIVER, *DONE],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert found.returncode == 2
    assert "mount an emptyDir" in found.stderr


def test_mpirun_learns_where_the_remote_shell_and_the_launcher_are(
    shell: list[str], tmp_path: Path
) -> None:
    kubexec = tmp_path / "kubexec.sh"
    kubexec.write_text("#!/bin/sh\necho clean\n")
    kubexec.chmod(0o755)
    (tmp_path / "list").write_text("#!/bin/sh\n# list 1 drain 60\necho w0:1 # first\n")
    ours = {
        "MPIJOB_ELASTIC_LIST": f"{tmp_path}/list",
        "MPIJOB_ELASTIC_KUBEXEC": f"{kubexec}",
        "MPIJOB_ELASTIC_FOLDER": f"{tmp_path}/run",
        # As the operator sets it, and as nobody does.
        "OMPI_MCA_plm_rsh_agent": "/etc/mpi/kubexec.sh",
        "HYDRA_IFACE": "",
    }
    printed = "$OMPI_MCA_plm_rsh_agent $PRTE_MCA_plm_ssh_agent $HYDRA_LAUNCHER_EXEC $HYDRA_IFACE"
    found = subprocess.run(
        [*shell, DRIVER, "--", "sh", "-c", f"echo {printed}"],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert found.returncode == 0
    # Open MPI 4.1 looks for it in workers as well, where only kubexec.sh is.
    both = f"{tmp_path}/run/agent:{kubexec}"
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()]
    interface = next((name for name, to, *_ in routes if to == "00000000"), "")
    assert found.stdout.split() == [both, both, f"{tmp_path}/run/agent", *interface.split()]
