"""Puts the image and its list of contents into dist/: `make image`."""

import shutil

from lab.display import progress
from lab.images import build
from lab.images.oci import digest, read_layers
from lab.images.product import sbom
from lab.images.product.debian import LOCK, Lock
from lab.images.product.image import NAME, REFERENCE, ROOT, VERSION


def main() -> None:
    """Build what is missing or out of date, and print where the image is, its size and its digest."""
    with progress() as say:
        built = build.ensure(NAME, say)
    archive = ROOT / "dist" / f"{NAME}-{VERSION}.oci.tar"
    archive.parent.mkdir(exist_ok=True)
    shutil.copyfile(built, archive)
    packages = Lock.parse(LOCK.read_text()).here()
    listed = sbom.write(
        archive, name=NAME, version=VERSION, digest=digest(archive), packages=packages
    )
    (archive.parent / f"{NAME}-{VERSION}.cdx.json").write_text(listed)
    unpacked = sum(entry.size for layer in read_layers(archive) for entry in layer)
    size = archive.stat().st_size
    print(
        f"{archive.relative_to(ROOT)}: {REFERENCE}, {size / 1e6:.0f} MB, {unpacked / 1e6:.0f} MB unpacked"
    )
    print(digest(archive))


if __name__ == "__main__":
    main()
