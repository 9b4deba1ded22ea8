"""Run the quick tests that need no control plane with one Python after the other, and print a table: `make matrix`.

python scripts/pythons.py [VERSION...]

uv finds each Python, or downloads it. dist/matrix gets the whole output of each version. The exit
code is 1 if a test failed, or a Python could not be had.
"""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from scripts.matrix import OUTPUT, result  # noqa: E402 - found from the root only

# What pyproject.toml allows, beyond the Python of `make test`.
VERSIONS = ("3.12", "3.13", "3.14")
PLACES = ROOT / ".venv" / "pythons"
UV = ROOT / ".venv" / "bin" / "uv"
OURS = ("--no-deps", "--no-build-isolation", "--editable", ROOT)
TESTS = ("tests/product", "-m", "not thorough and not campaign", "-n", "2", "--dist", "loadfile")


def main(versions: Sequence[str]) -> int:
    """Run all, print the table, and return the exit code."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows, failed = ["| Python | result | minutes |", "|---|---|---|"], False
    for version in versions or VERSIONS:
        started = time.monotonic()
        code, output = run(version)
        (OUTPUT / f"python{version}.log").write_text(output)
        failed |= code != 0
        minutes = (time.monotonic() - started) / 60
        rows.append(f"| {version} | {result(code, output)} | {minutes:.0f} |")
        print(rows[-1], flush=True)
    print("", *rows, sep="\n")
    return int(failed)


def run(version: str) -> tuple[int, str]:
    """Make an environment with the pinned packages and run the tests in it; return exit code and output."""
    place = PLACES / version
    python = place / "bin" / "python"
    lock = ROOT / "requirements" / "dev.txt"
    told = ""
    for command in (
        [UV, "venv", "--quiet", "--allow-existing", "--python", version, place],
        [UV, "pip", "sync", "--quiet", "--python", python, "--require-hashes", lock],
        # Some tests look for the executables that an installation makes.
        [UV, "pip", "install", "--quiet", "--python", python, *OURS],
        [python, "-m", "pytest", *TESTS],
    ):
        done = subprocess.run(
            list(map(str, command)),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        told += done.stdout
        if done.returncode:
            return done.returncode, told
    return 0, told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
