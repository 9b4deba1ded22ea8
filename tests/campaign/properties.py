"""The properties of the tests with random examples: rounds of the tests that use hypothesis, each with a new seed."""

import os
import subprocess
import sys

from tests.campaign.part import Options, Outcome

# 100 rounds of 200 examples (profile `campaign` of tests/conftest.py) for each property.
ROUNDS = 100
_TESTS = ("tests/product", "tests/modelcheck", "tests/tooling")


def run(options: Options) -> Outcome:
    """Run rounds of all properties."""
    return repeated(
        options, ROUNDS, *_TESTS, "-m", "hypothesis", numbers="200 examples for each property a run"
    )


def repeated(options: Options, usual: int, *tests: str, numbers: str) -> Outcome:
    """Run rounds of tests; a failed test is a violation, with the output that shows its example."""
    violations = []
    rounds = 0
    for number in options.runs(usual):
        rounds += 1
        seed = f"--hypothesis-seed={options.seed + number}"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *tests, "-q", "--timeout=0", seed],
            env={**os.environ, "HYPOTHESIS_PROFILE": "campaign"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            violations.append(f"{seed}\n{done.stdout}{done.stderr}")
    return Outcome(runs=rounds, violations=tuple(violations), numbers=numbers)
