"""The image `kubectl-delivery` of the launcher's init container: a stand-in for mpi-operator v0.2.3's.

That one copies kubectl to /opt/kube, then waits for every pod of /etc/mpi/hostfile to be Running
(cmd/kubectl-delivery and pkg/controllers/kubectl_delivery of mpi-operator).
"""

from pathlib import Path
from typing import Final

from lab.build import ensure_programs
from lab.images.archive import File, Link, write_layer
from lab.images.artifacts import Artifact, Making
from lab.images.oci import Settings, write_image
from lab.images.tools import Tool, is_static
from lab.operator import KUBECTL_DELIVERY_IMAGE
from lab.versions import DEFAULT_KUBERNETES

NAME: Final = "kubectl-delivery"
REFERENCE = KUBECTL_DELIVERY_IMAGE
BUSYBOX = Tool(program="busybox", package="busybox-static", fits=is_static)
SCRIPT = Path(__file__).parent / "kubectl-delivery.sh"
SETTINGS = Settings(command=("/kubectl-delivery.sh",))
# What the script uses, and what one wants who looks into the container.
APPLETS = ("cat", "cp", "cut", "env", "grep", "ls", "mv", "ps", "sh", "sleep")


def artifact() -> Artifact:
    """Return the image."""
    return Artifact(
        name=NAME,
        doing="packing kubectl",
        seconds=5,
        recipe=(str(DEFAULT_KUBERNETES), REFERENCE, SCRIPT.read_text(), *APPLETS, repr(SETTINGS)),
        tools=(BUSYBOX,),
        make=_make,
    )


def _make(making: Making) -> None:
    kubectl = ensure_programs(DEFAULT_KUBERNETES, making.say).kubectl
    applets = {f"bin/{name}": Link("busybox") for name in APPLETS}
    files = {
        "bin/busybox": File(content=BUSYBOX.path(), mode=0o755),
        "bin/kubectl": File(content=kubectl, mode=0o755),
        SCRIPT.name: File(content=SCRIPT, mode=0o755),
    }
    layer = making.folder / "layer.tar"
    write_layer(layer, {**applets, **files})
    write_image(making.target, reference=REFERENCE, layers=[layer], settings=SETTINGS)
