"""Requirements of a real node that a machine lacks are named before anything is started, with what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.layout import Layout
from lab.node import cgroups, requirements

ROOT = Path(__file__).parents[4]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root gets as far as this")


def run(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(path), "HOME": str(path)}
    command = [sys.executable, "-m", "lab", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@root_only
@pytest.mark.parametrize("command", [("node", "check"), ("up", "--real-node")])
def test_missing_programs_are_named_with_their_packages(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = run(*command, path=tmp_path)
    assert done.returncode == 1
    assert "error: a real node cannot be had here:\n- programs are missing: run `apt-get install" in done.stderr
    for package in ("containerd", "iproute2", "mount", "runc", "util-linux"):
        assert f" {package}" in done.stderr
    assert not list(tmp_path.iterdir()), "nothing was started"


@root_only
def test_what_does_not_work_is_told_with_its_complaint(tmp_path: Path) -> None:
    for program in requirements.PACKAGES:
        (tmp_path / program).write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
        (tmp_path / program).chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    for plugin in ("bridge", "host-local", "loopback"):
        (tmp_path / plugin).touch(mode=0o755)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "CNI_PATH": str(tmp_path)}
    command = [sys.executable, "-m", "lab", "node", "check"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "- new namespaces are forbidden (not permitted): run it outside of a container" in done.stderr


def test_labs_of_the_same_name_have_groups_of_their_own(tmp_path: Path) -> None:
    one, other = (cgroups.name(Layout(tmp_path / home / "default")) for home in ("one", "other"))
    assert one != other


def test_removing_a_group_that_is_not_there_is_no_error() -> None:
    cgroups.remove("mpijob-lab-that-never-was")
