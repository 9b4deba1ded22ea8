"""The image of mpi-operator v0.2.3: the release's own program where the release's Dockerfile puts it."""

from typing import Final

from lab import modules
from lab.build import ensure_programs
from lab.images.archive import File, write_layer
from lab.images.artifacts import Artifact, Making
from lab.images.oci import Settings, write_image
from lab.operator import OPERATOR_IMAGE
from lab.versions import DEFAULT_KUBERNETES

NAME: Final = "mpi-operator"
REFERENCE = OPERATOR_IMAGE
PROGRAM = "opt/mpi-operator.v1"
SETTINGS = Settings(command=("--help",), entrypoint=(f"/{PROGRAM}",))


def artifact() -> Artifact:
    """Return the image."""
    return Artifact(
        name=NAME,
        doing="packing mpi-operator",
        seconds=5,
        recipe=(
            REFERENCE,
            PROGRAM,
            repr(SETTINGS),
            modules.fingerprint(modules.PINNED / "mpi-operator-v0.2.3"),
        ),
        make=_make,
    )


def _make(making: Making) -> None:
    program = ensure_programs(DEFAULT_KUBERNETES, making.say).mpi_operator_v0_2_3
    layer = making.folder / "layer.tar"
    write_layer(layer, {PROGRAM: File(content=program, mode=0o755)})
    write_image(making.target, reference=REFERENCE, layers=[layer], settings=SETTINGS)
