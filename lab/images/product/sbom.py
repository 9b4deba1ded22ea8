"""The list of what the image holds, as CycloneDX JSON: Debian packages, wheels, and mpijob-elastic itself."""

from email.message import Message
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
from lab.images.product.debian import Package


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
        components=[*map(_debian, packages), *_wheels(archive)],
    )
    bom.register_dependency(image, bom.components)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"


def _debian(package: Package) -> Component:
    where = {"arch": package.architecture, "distro": SUITE}
    return Component(
        name=package.name,
        version=package.version,
        bom_ref=f"deb/{package.name}",
        purl=PackageURL("deb", "debian", package.name, package.version, where),
        hashes=[_sha256(package.sha256)],
    )


def _wheels(archive: Path) -> list[Component]:
    found = []
    for layer in read_layers(archive):
        for entry in layer:
            if entry.name.endswith(".dist-info/METADATA"):
                file = layer.extractfile(entry)
                assert file is not None
                found.append(_wheel(Parser().parsestr(file.read().decode())))
    return found


def _wheel(metadata: Message) -> Component:
    name, version = metadata["Name"], metadata["Version"]
    purl = PackageURL("pypi", None, name, version)
    return Component(name=name, version=version, bom_ref=f"pypi/{name}", purl=purl, description=metadata["Summary"])


def _sha256(value: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=value)
