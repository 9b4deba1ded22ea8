"""Run a part of tests/lab on one version of Kubernetes after the other, and print a table: `make matrix`.

python scripts/matrix.py [VERSION...]

dist/matrix gets the whole output of each version, and docs/records/runs.json how many tests passed.
The exit code is 1 if a test failed, or a version
could not be built.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "dist" / "matrix"
# The oldest that is supported, the oldest that serves everything that we install, then up to the
# newest.
VERSIONS = ("v1.28.15", "v1.30.14", "v1.33.13", "v1.34.4", "v1.36.3", "v1.37.2")
# What depends on the version of the API server: its protocols, admission, rights, definitions, and
# one whole resize.
TESTS = (
    "test_kube_exec.py",
    "test_kube_lease.py",
    "test_kube_watch.py",
    "test_install_command.py",
    "test_install_guard.py",
    "test_install_rights.py",
    "test_webhook_admission.py",
    "test_scale_selector.py",
    "test_scenario_scaling.py",
    "test_upgrade_jobs.py",
    "test_upgrade_preflight.py",
    "capabilities/*/test_*_policy.py",
)
_RESULT = re.compile(r"(\d+ (?:passed|failed|error).*?) in [\d.]+s")


def main(versions: Sequence[str]) -> int:
    """Run all, print the table, and return the exit code."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    rows, failed = ["| Kubernetes | result | minutes |", "|---|---|---|"], False
    for version in versions or VERSIONS:
        started = time.monotonic()
        code, output = run(version)
        (OUTPUT / f"{version}.log").write_text(output)
        failed |= code != 0
        rows.append(
            f"| {version} | {result(code, output)} | {(time.monotonic() - started) / 60:.0f} |"
        )
        print(rows[-1], flush=True)
    print("", *rows, sep="\n")
    return int(failed)


def run(version: str) -> tuple[int, str]:
    """Build what is missing of a version and run the tests on it; return the exit code and the output."""
    told = ""
    files = [
        str(file) for pattern in TESTS for file in sorted((ROOT / "tests" / "lab").glob(pattern))
    ]
    for command in (["-m", "lab", "binaries"], ["-m", "pytest", *files]):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "LAB_KUBERNETES": version, "MPIJOB_ELASTIC_RECORD_RUNS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        told += done.stdout
        if done.returncode:
            return done.returncode, told
    return 0, told


def result(code: int, output: str) -> str:
    """Return what a row says: the counts of pytest, else the last line of what went wrong."""
    if found := _RESULT.findall(output):
        return str(found[-1])
    last = output.strip().splitlines()[-1:] or [""]
    return f"not run ({code}): {last[0]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
