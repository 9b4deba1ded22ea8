"""The commands of docs/development.md about the lab, as somebody new types them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.layout import Layout
from lab.lock import is_held

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs" / "development.md").read_text().partition("\n## The lab\n")[2]
BARE, PRODUCT = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)[:2]
ADMINISTRATOR = 'eval "$(python -m lab env)"'
ENDS = 120.0  # seconds


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Labs of its own, and the Python in which this test runs."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"XDG_STATE_HOME": str(tmp_path), "PATH": path, "PYTHONPATH": str(ROOT)}
    return {**os.environ, **own}


def typed(lines: str, environment: dict[str, str]) -> str:
    """What the lines print; none may fail."""
    done = subprocess.run(
        ["bash", "-e", "-x", "-c", lines],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_a_lab_comes_and_goes(environment: dict[str, str]) -> None:
    printed = typed(BARE, environment)
    assert re.search(r"^lab-0 +Ready", printed, re.MULTILINE)
    assert printed.endswith("lab default is down\n")


@pytest.fixture
def product(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The lab with the product, ready."""
    words = [sys.executable, "-m", "lab", "product"]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert "lab default has the product" in process.stdout.readline()
            yield process
        finally:
            process.kill()


def left_alone(environment: dict[str, str]) -> None:
    """No option makes `install` write beside the product that runs."""
    for options in ("", "--image r/ours:1 --overlay user-roles --force-conflicts --no-wait"):
        said = typed(f"{ADMINISTRATOR}; ! mpijob-elastic install {options} 2>&1", environment)
        assert "webhook and controller run outside the cluster" in " ".join(said.split())
    assert typed(f"{ADMINISTRATOR}; kubectl get deployment -A -o name", environment) == ""


def test_the_product_is_typed_with_as_both_users(
    environment: dict[str, str], product: subprocess.Popen[str], tmp_path: Path
) -> None:
    printed = typed(PRODUCT, environment)
    assert "mpijob-elastic works.\n" in printed
    assert "train has 2 workers, and a rank runs in each." in printed
    assert "train has 4 workers, and a rank runs in each." in printed
    assert '[0]<stdout>:{"event": "step", ' in printed
    assert "mpijob.kubeflow.org/train scaled\n" in printed
    assert re.search(r"^ml +train +Running|^ml +train +Scaling", printed, re.MULTILINE), printed
    left_alone(environment)
    status = typed("python -m lab status", environment)
    assert [
        name
        for name in ("operator", "webhook", "controller", "drivers")
        if f"\n  {name:<24}pid " not in status
    ] == []
    product.send_signal(signal.SIGINT)
    product.wait(ENDS)
    lab = Layout(tmp_path / "mpijob-elastic" / "lab" / "default")
    assert not is_held(lab)
    assert not lab.kubeconfig.exists()
