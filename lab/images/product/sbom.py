"""The list of what the image holds, as CycloneDX JSON: Debian packages, wheels, and mpijob-elastic itself."""

import re
from collections.abc import Mapping
from email.parser import Parser
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

from lab.images.debian import SUITE
from lab.images.oci import EPOCH, read_layers
from lab.images.product import licences
from lab.images.product.debian import Package

_METADATA = re.compile(r".*\.dist-info/METADATA")
_COPYRIGHT = re.compile(r"usr/share/doc/[^/]+/copyright")


def write(archive: Path, *, name: str, version: str, digest: str, packages: list[Package]) -> str:
    """Return the list of an image's archive, whose wheels it names by what their layers hold.

    The text depends on nothing but the image, so no moment and no random number is in it.
    """
    image = Component(
        name=name,
        version=version,
        type=ComponentType.CONTAINER,
        bom_ref=name,
        purl=PackageURL("oci", None, name, digest, {"tag": version}),
        hashes=[_sha256(digest.removeprefix("sha256:"))],
    )
    bom = Bom(
        serial_number=uuid5(NAMESPACE_URL, digest),
        metadata=BomMetaData(component=image, timestamp=EPOCH),
        components=[
            *_debian(packages, _copyright_files(archive)),
            *map(_wheel, _texts(archive, _METADATA).values()),
        ],
    )
    bom.register_dependency(image, bom.components)
    return (
        make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"
    )


def _debian(packages: list[Package], copyright_files: Mapping[str, str]) -> list[Component]:
    return [
        Component(
            name=package.name,
            version=package.version,
            bom_ref=f"deb/{package.name}",
            purl=PackageURL(
                "deb",
                "debian",
                package.name,
                package.version,
                {"arch": package.architecture, "distro": SUITE},
            ),
            hashes=[_sha256(package.sha256)],
            licenses=licences.of_debian(package.name, copyright_files.get(package.name)),
        )
        for package in packages
    ]


def _wheel(text: str) -> Component:
    metadata = Parser().parsestr(text)
    name, version = metadata["Name"], metadata["Version"]
    return Component(
        name=name,
        version=version,
        bom_ref=f"pypi/{name}",
        purl=PackageURL("pypi", None, name, version),
        description=metadata["Summary"],
        licenses=licences.of_wheel(metadata),
    )


def _copyright_files(archive: Path) -> dict[str, str]:
    """Return the copyright files of Debian packages that have one of their own, by package."""
    return {path.split("/")[3]: text for path, text in _texts(archive, _COPYRIGHT).items()}


def _texts(archive: Path, wanted: re.Pattern[str]) -> dict[str, str]:
    """Return the files of an image by path."""
    found = {}
    for layer in read_layers(archive):
        for entry in layer:
            if entry.isfile() and wanted.fullmatch(entry.name):
                file = layer.extractfile(entry)
                assert file is not None
                found[entry.name] = file.read().decode()
    return found


def _sha256(value: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=value)
