"""The image of mpijob-elastic: its locks, its list of contents, and that the Dockerfile makes the same."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.archive import File, write_layer
from lab.images.oci import Settings, architecture, digest, write_image
from lab.images.product import sbom
from lab.images.product.debian import ARCHITECTURES, LOCK, PACKAGES, Lock, snapshot
from lab.images.product.image import NAME, ROOT, SETTINGS, SOURCES, VERSION

DOCKERFILE = (ROOT / "Dockerfile").read_text()
LOCKED = Lock.parse(LOCK.read_text())
COPYRIGHT = b"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

License: Apache-2.0
"""
METADATA = "usr/local/lib/python3.11/dist-packages/some_wheel-1.2.dist-info/METADATA"


@pytest.mark.parametrize("processor", ARCHITECTURES)
def test_every_package_is_locked_for_each_processor(processor: str) -> None:
    assert [one.name for one in LOCKED.packages if one.architecture == processor] == list(PACKAGES)


def test_a_lock_is_written_as_it_is_read() -> None:
    assert LOCKED.encode() == LOCK.read_text()


def test_another_processor_is_named() -> None:
    others = tuple(one for one in LOCKED.packages if one.architecture != architecture())
    with pytest.raises(LabError, match=f"cannot be built for {architecture()}"):
        replace(LOCKED, packages=others).here()


def test_replaced_versions_are_looked_for_in_the_archive_of_the_day_of_the_lock() -> None:
    moment = LOCKED.moment
    assert re.fullmatch(r"\d{8}T\d{6}Z", moment)
    assert snapshot(moment)[0] == f"http://snapshot.debian.org/archive/debian/{moment} bookworm main"


def test_the_dockerfile_makes_the_same_image() -> None:
    def json_of(instruction: str) -> list[str]:
        found: list[str] = json.loads(re.findall(rf"^{instruction} (\[.*\])$", DOCKERFILE, re.MULTILINE)[-1])
        return found

    assert tuple(json_of("ENTRYPOINT")) == SETTINGS.entrypoint
    assert tuple(json_of("CMD")) == SETTINGS.command
    assert f"USER {SETTINGS.user}\n" in DOCKERFILE
    assert all(f"{name}={value}\n" in DOCKERFILE for name, value in SETTINGS.environment.items())
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    locks = {"requirements/build.txt", "requirements/runtime.txt"}
    assert {name for line in copied for name in line.split()} == {*SOURCES, *locks}


def test_the_list_of_contents_has_packages_and_wheels(tmp_path: Path) -> None:
    layer, archive = tmp_path / "layer.tar", tmp_path / "image.tar"
    wheel = b"Name: some-wheel\nVersion: 1.2\nSummary: Some\nLicense-Expression: MIT OR 0BSD\n\ntext"
    texts = {f"usr/share/doc/{name}/copyright": File(content=COPYRIGHT) for name in PACKAGES}
    write_layer(layer, {METADATA: File(content=wheel), **texts})
    write_image(archive, reference="name:tag", layers=[layer], settings=Settings(command=("run",)))
    packages = LOCKED.here()
    one, other = (
        sbom.write(archive, name=NAME, version=VERSION, digest=digest(archive), packages=packages) for _ in range(2)
    )
    assert one == other
    listed = json.loads(one)
    assert (listed["bomFormat"], listed["specVersion"]) == ("CycloneDX", "1.6")
    assert listed["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest(archive)[7:]}]
    found = {component["name"]: component for component in listed["components"]}
    assert set(found) == {*PACKAGES, "some-wheel"}
    assert found["some-wheel"]["purl"] == "pkg:pypi/some-wheel@1.2"
    assert found["libc6"]["hashes"] == [
        {"alg": "SHA-256", "content": one.sha256} for one in packages if one.name == "libc6"
    ]
    assert found["some-wheel"]["licenses"] == [{"expression": "MIT OR 0BSD", "acknowledgement": "declared"}]
    assert found["libssl3"]["licenses"] == [{"license": {"id": "Apache-2.0", "acknowledgement": "declared"}}]
    assert found["libc6"]["licenses"] == [{"license": {"id": "LGPL-2.1-or-later", "acknowledgement": "concluded"}}]
