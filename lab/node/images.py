"""Images on a node: from archives of this machine, never from a registry."""

import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.images.archive import File, write_layer
from lab.images.oci import Settings, write_image
from lab.node import containerd, namespaces

PAUSE = "mpijob-elastic.local/pause:1"


def load(node: int, archive: Path) -> None:
    """Make the images of an archive known on a node, which `node` holds (see entering). Raise LabError."""
    with archive.open("rb") as file:
        command = namespaces.inside(node, containerd.ask("images", "import", "-"))
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"{archive} cannot be loaded into a real node: {done.stderr.strip()}")


def write_pause(program: Path, archive: Path) -> None:
    """Write the image of pods' sandboxes."""
    layer = archive.with_name("pause-layer.tar")
    write_layer(layer, {"pause": File(content=program, mode=0o755)})
    write_image(archive, reference=PAUSE, layers=[layer], settings=Settings(command=("/pause",)))
