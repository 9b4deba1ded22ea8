"""The images that there are, and that the one for Docker is the same."""

import re
from pathlib import Path

import pytest
import yaml

from lab.errors import LabError
from lab.images import build, horovod
from lab.operator import KUBECTL_DELIVERY_IMAGE, OPERATOR_IMAGE
from lab.training.job import EXAMPLE

DOCKERFILE = (horovod.FOLDER / "Dockerfile").read_text()


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(LabError, match="no image 'other'; there are kubectl-delivery, mpi-operator, horovod-elastic"):
        build.ensure("other", lambda _: None)


@pytest.mark.parametrize("name", build.REFERENCES)
def test_what_is_not_built_is_not_there(name: str, empty_cache: Path) -> None:
    assert build.built(name) is None
    assert not list(empty_cache.iterdir())


def test_packages_that_are_lacking_are_named(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.lacking("horovod-elastic-pytorch") == ["mmdebstrap"]
    assert build.lacking("kubectl-delivery") == ["busybox-static"]


def test_pods_call_the_images_as_they_are_called() -> None:
    specs = yaml.safe_load(EXAMPLE.read_text())["spec"]["mpiReplicaSpecs"]
    used = {one["image"] for spec in specs.values() for one in spec["template"]["spec"]["containers"]}
    assert used == {build.REFERENCES["horovod-elastic-pytorch"]}
    assert build.REFERENCES["kubectl-delivery"] == KUBECTL_DELIVERY_IMAGE
    assert build.REFERENCES["mpi-operator"] == OPERATOR_IMAGE


def test_the_dockerfile_makes_the_same_image() -> None:
    copied = {name for line in re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()}
    read = (horovod.PACKAGES, horovod.BUILD_PACKAGES, horovod.REQUIREMENTS, horovod.INSTALL, horovod.TRAIN)
    assert copied == {path.name for path in read}
    assert set(re.findall(r"^FROM debian:(\w+)-slim", DOCKERFILE, re.MULTILINE)) == {"bookworm"}
    environment = dict(line.split("=") for line in re.findall(r"^ENV (.*)$", DOCKERFILE, re.MULTILINE))
    assert environment == horovod.SETTINGS.environment
    assert f"CMD {list(horovod.SETTINGS.command)}".replace("'", '"') in DOCKERFILE
    assert horovod.REQUIREMENTS.read_text().startswith(f"horovod=={horovod.VERSION} --hash=sha256:")
