"""The commands of docs/development.md about the lab, as somebody new types them."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import kueue
from lab.images import build
from lab.images.product import image
from lab.layout import Layout
from lab.lock import is_held
from lab.node import requirements
from tests.peers.built import peer

pytestmark = [pytest.mark.lab, pytest.mark.thorough]

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "development.md").read_text()
ADMINISTRATOR = 'eval "$(.venv/bin/python -m lab env)"'
ENDS = 120.0  # seconds


def blocks(heading: str) -> list[str]:
    """The lines to type below a heading, and further down."""
    below = PAGE.partition(f"\n{heading}\n")[2]
    return re.findall(r"^```sh\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)


BARE, PRODUCT, QUEUED = blocks("## The lab")[:3]
WITH_OPERATOR, INSTALLED = blocks("### A bare cluster")[:2]


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


@contextmanager
def kept(environment: dict[str, str], *words: str, says: str) -> Iterator[subprocess.Popen[str]]:
    """A command of the lab that stays, once it has said that it is ready."""
    command = [".venv/bin/python", "-m", "lab", *words]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert says in process.stdout.readline()
            yield process
        finally:
            process.kill()


def left_alone(environment: dict[str, str]) -> None:
    """No option makes `install` write beside the product that runs."""
    for options in ("", "--image r/ours:1 --overlay user-roles --force-conflicts --no-wait"):
        said = typed(f"{ADMINISTRATOR}; ! mpijob-elastic install {options} 2>&1", environment)
        assert "webhook and controller run outside the cluster" in " ".join(said.split())
    assert typed(f"{ADMINISTRATOR}; kubectl get deployment -A -o name", environment) == ""


@pytest.fixture
def product(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The lab with the product, ready."""
    with kept(environment, "product", says="lab default has the product") as process:
        yield process


@pytest.fixture
def kueue_is_built() -> None:
    """Skips the test where Kueue is not built."""
    peer(kueue.NAME)


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
    status = typed(".venv/bin/python -m lab status", environment)
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


@pytest.mark.peers
@pytest.mark.usefixtures("kueue_is_built")
def test_a_job_in_a_queue_grows_and_gives_back_what_another_needs(
    environment: dict[str, str],
) -> None:
    with kept(environment, "product", "--kueue", says="lab default has the product"):
        printed = typed(QUEUED, environment)
        assert "train has 4 workers, and a rank runs in each." in printed
        assert "rival has 2 workers, and a rank runs in each." in printed
        assert re.search(r"^train-launcher +team +team +True", printed, re.MULTILINE), printed
        assert re.search(r"^train-worker-3 +team +False", printed, re.MULTILINE), printed


@pytest.mark.skipif(bool(requirements.missing()), reason="no real node here")
@pytest.mark.peers
@pytest.mark.usefixtures("kueue_is_built")
def test_the_product_is_installed_in_a_bare_cluster_beside_kueue(
    environment: dict[str, str],
) -> None:
    if packages := build.lacking(image.NAME):
        pytest.skip(f"no image to install: apt-get install {' '.join(packages)}")
    try:
        printed = typed(WITH_OPERATOR, environment)
        assert re.search(r"^mpi-operator +1/1", printed, re.MULTILINE), printed
        with kept(environment, "kueue", "--namespace", "ml", says="has the queue team"):
            # As somebody who types on in that shell.
            printed = typed(f'eval "$(.venv/bin/python -m lab env)"\n{INSTALLED}', environment)
        assert "mpijob-elastic works.\n" in printed
        assert re.search(r"^train-worker-2 +team +team +True", printed, re.MULTILINE), printed
        assert "train has 1 worker; removed: 2.\n" in printed
        assert printed.endswith("lab default is down\n")
    finally:
        typed(".venv/bin/python -m lab down", environment)
