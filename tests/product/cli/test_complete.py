"""Completion: what kubectl gets for the words that are typed."""

import asyncio
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli import complete
from tests.faults.kubeconfig import write_plain
from tests.faults.waiting import PATIENCE
from tests.product.cli import worlds
from tests.product.cli.cluster import serving

ROOT = Path(__file__).parents[3]
SCRIPT = "kubectl_complete-mpijob_elastic"


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    jobs = [
        worlds.mpi_job(),
        worlds.mpi_job(name="trial", replicas=1),
        worlds.mpi_job(name="other"),
    ]
    # Of `some`, worker 1 is parked, worker 2 is parked and still drains, worker 4 is surplus.
    jobs.append(worlds.mpi_job(name="some", replicas=4, annotations={names.PARKED: "1,2,9"}))
    placeholder = worlds.worker(1, phase="Pending", job="some")
    placeholder["spec"] |= {"nodeName": "", "schedulingGates": [{"name": names.GATE_PARKED}]}
    pods = [
        worlds.launcher(),
        worlds.worker(0),
        placeholder,
        *(worlds.worker(at, job="some") for at in (0, 2, 4)),
    ]
    world = {"mpijobs": jobs, "pods": pods, "configmaps": [], "roles": []}
    async with serving(tmp_path, {**world}) as (where, _):
        assert where.kubeconfig is not None
        yield where.kubeconfig


async def completed(kubeconfig: Path, *words: str) -> list[str]:
    """Return the lines that kubectl gets."""
    code = (
        f"from mpijob_elastic.cli import complete; complete.PATIENCE = {PATIENCE}; complete.main()"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, *words),
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    printed, complaints = await process.communicate()
    assert (process.returncode, complaints) == (0, b"")
    return printed.decode().splitlines()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["scaleout", "tr"], ["train\tRunning, 2 workers", "trial\tRunning, 1 worker"]),
        (["scaleout", "mpijob/tra"], ["mpijob/train\tRunning, 2 workers"]),
        (["get", "-n", "default", "o"], ["other\tRunning, 2 workers"]),
        (["get", "--context", "plain", "o"], ["other\tRunning, 2 workers"]),
        (["scalein", "train", "--pod", ""], ["train-worker-0\ton node-0", "train-worker-1"]),
        (["scalein", "some", "--pod", ""], ["some-worker-0\ton node-0", "some-worker-3"]),
        (["scaleout", "some", "--pod", ""], ["some-worker-1", "some-worker-2\ton node-2"]),
        (["scaleout", "train", "--pod", ""], []),
        (["attach", "some", "some-worker-4"], ["some-worker-4\ton node-4"]),
        (["explain", "train", ""], ["train-worker-0\ton node-0", "train-worker-1"]),
        (["attach", "train", "train-worker-1"], ["train-worker-1"]),
        (["delete", "train", "--y"], ["--yes\tDo not ask for confirmation."]),
    ],
)
async def test_kubectl_gets_values_with_their_texts_and_a_directive(
    kubeconfig: Path, words: list[str], lines: list[str]
) -> None:
    assert await completed(kubeconfig, *words) == [*lines, ":4"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("get", "-o", "j"), ["json", "jsonpath="]),
        (("get", "--output", "cu"), ["custom-columns="]),
        (("-n", "default", "get", "tra"), ["train"]),
        (("suspend", "train", "so"), ["some"]),
        (("set", "bounds", "tra"), ["train"]),
        (("help", "res"), ["resubmit", "resume"]),
    ],
)
async def test_kubectls_words_are_completed(
    kubeconfig: Path, words: tuple[str, ...], values: list[str]
) -> None:
    *choices, directive = await completed(kubeconfig, *words)
    assert [choice.partition("\t")[0] for choice in choices] == values
    assert directive == ":4"


async def test_a_cluster_that_is_away_offers_nothing(tmp_path: Path) -> None:
    write_plain(tmp_path / "kubeconfig", "http://127.0.0.1:1")
    assert await completed(tmp_path / "kubeconfig", "scaleout", "") == [":4"]


def test_kubectl_finds_the_executable() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts[SCRIPT].partition(":")
    assert (module, getattr(complete, function)) == (complete.__name__, complete.main)
    installed = Path(sys.executable).with_name(SCRIPT)
    assert installed.stat().st_mode & stat.S_IXUSR
