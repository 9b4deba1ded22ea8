"""Installed programs are used if they are what they seem and of a version that works; others are refused."""

from pathlib import Path

import pytest

from lab.programs import ALL, OF_REAL_NODE, Programs, find_installed
from lab.versions import DEFAULT_KUBERNETES

PROGRAMS = {program.name: program for program in ALL}
SUITABLE = {
    "etcd": "etcd Version: 3.6.7",
    "kube-apiserver": "Kubernetes v1.34.0",
    "kubectl": "Client Version: v1.35.2\nKustomize Version: v5.7.1",
    "kwok": "kwok version v0.8.1 go1.26.8 (linux/amd64)",
}


def install(directory: Path, name: str, says: str) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory on PATH, and no KUBEBUILDER_ASSETS."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return tmp_path / "path"


@pytest.mark.parametrize("name", SUITABLE)
def test_a_suitable_program_is_used(path: Path, name: str) -> None:
    installed = install(path, name, SUITABLE[name])
    found = find_installed(PROGRAMS[name], DEFAULT_KUBERNETES)
    assert (found.path, found.refused) == (installed, ())


@pytest.mark.parametrize(
    ("name", "says", "reason"),
    [
        ("etcd", "etcd Version: 3.4.23", "it is 3.4.23, and at least 3.5.13 is needed"),
        ("kube-apiserver", "Kubernetes v1.33.4", "it is 1.33.4, and 1.34 is needed"),
        ("kube-scheduler", "Kubernetes v1.35.0", "it is 1.35.0, and 1.34 is needed"),
        ("kubectl", "Client Version: v1.32.0", "it is 1.32.0, more than one minor version from v1.34.4"),
        ("kwok", "kwok version v0.7.0 go1.24", "it is 0.7.0, and 0.8 is needed"),
        ("kwok", "another program", "it does not answer `--version` as kwok does"),
    ],
)
def test_another_program_is_refused_with_a_reason(path: Path, name: str, says: str, reason: str) -> None:
    installed = install(path, name, says)
    found = find_installed(PROGRAMS[name], DEFAULT_KUBERNETES)
    assert found.path != installed
    assert found.refused[0] == f"{installed} is not used: {reason}"


def test_kubebuilder_assets_come_before_path(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(path, "etcd", SUITABLE["etcd"])
    preferred = install(path.with_name("assets"), "etcd", SUITABLE["etcd"])
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(preferred.parent))
    assert find_installed(PROGRAMS["etcd"], DEFAULT_KUBERNETES).path == preferred


def test_our_own_program_is_never_taken_from_elsewhere(path: Path) -> None:
    install(path, "podexec", "podexec")
    assert find_installed(PROGRAMS["podexec"], DEFAULT_KUBERNETES).path is None


def test_every_program_has_its_field() -> None:
    assert tuple(program.field for program in (*ALL, *OF_REAL_NODE)) == Programs.__struct_fields__
