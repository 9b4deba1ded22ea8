"""A machine that is capable by half is told what it lacks, and the tests that need a node are skipped by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PODS = "tests/real/test_node_pods.py"

pytestmark = pytest.mark.usefixtures("own_node")


def without(capability: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python as root without a capability, as in a container."""
    dropped = (f"--bounding-set=-{capability}", f"--inh-caps=-{capability}")
    line = ["setpriv", *dropped, sys.executable, *command]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True)
def capable(real_node: None) -> None:
    """Only a machine that has everything can be deprived of one thing."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is missing, with which capabilities are dropped")


@pytest.mark.parametrize(
    ("capability", "told"),
    [
        (
            "net_admin",
            "- a network bridge does not work here (RTNETLINK answers: Operation not permitted): run it outside",
        ),
        (
            "sys_admin",
            "- new namespaces are forbidden (unshare: unshare failed: Operation not permitted): run it outside",
        ),
    ],
)
def test_a_missing_capability_shows_in_what_does_not_work(capability: str, told: str) -> None:
    done = without(capability, "-m", "lab", "node", "check")
    assert done.returncode == 1
    assert told in done.stderr


def test_tests_are_skipped_by_name_with_the_reason() -> None:
    done = without("net_admin", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", PODS)
    assert done.returncode == 0, done.stdout
    assert "4 skipped" in done.stdout.splitlines()[-1]
    assert "no real node here: a network bridge does not work here" in done.stdout
