"""The types into which mpi-operator v0.2.3 decodes MPIJobs: lab/binaries/mpi-operator-v0.2.3/fields tells them."""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lab.golang import run_go
from lab.modules import PINNED
from mpijob_elastic.model import operator_types

TABLE = Path(operator_types.__file__).with_suffix(".json")


def table() -> str:
    """Return the table of `model.operator_types`. Raise LabError if Go cannot make it."""
    return _run()


def errors(jobs: Sequence[bytes]) -> list[str]:
    """Return why the operator cannot decode each of these MPIJobs, "" where it can.

    Raise LabError as `table` does.
    """
    return _run("decode", given=b"\n".join(jobs)).splitlines()


def _run(*arguments: str, given: bytes = b"") -> str:
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/fields"
        # As `lab.build` builds the operator, so most of it is in Go's cache.
        run_go(
            "build",
            "-trimpath",
            "-mod=readonly",
            "-o",
            program,
            "./fields",
            directory=PINNED / "mpi-operator-v0.2.3",
        )
        return subprocess.run(
            [program, *arguments], input=given, stdout=subprocess.PIPE, check=True
        ).stdout.decode()
