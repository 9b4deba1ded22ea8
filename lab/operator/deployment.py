"""mpi-operator v0.2.3 as its users install it: the manifest of its release, and so its Deployment and its rights."""

import json
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.golang import download
from lab.modules import PINNED
from lab.operator import KUBECTL_DELIVERY_IMAGE, OPERATOR_IMAGE, Release

NAME = NAMESPACE = "mpi-operator"
MODULE = "github.com/kubeflow/mpi-operator"
MANIFEST = Path("deploy", "v1", "mpi-operator.yaml")
PATIENCE = "180s"
# The manifest asks for `latest` of both.
_IMAGES = {one.partition(":")[0]: one for one in (OPERATOR_IMAGE, KUBECTL_DELIVERY_IMAGE)}


def published(release: Release = Release.V0_2_3) -> list[dict[str, Any]]:
    """Return the objects of the manifest of a release, from its Go module. Raise LabError."""
    module = download(MODULE, directory=PINNED / f"mpi-operator-{release}")
    return list(yaml.safe_load_all(Path(module["Dir"], MANIFEST).read_text()))


def manifests() -> list[dict[str, Any]]:
    """Return those objects for a lab. Raise LabError.

    The definition of MPIJobs is left out: a lab has it, and no API server of today serves the form
    it is written in. The Deployment names the images of the release, which are never pulled.
    """
    found = [one for one in published() if one["kind"] != "CustomResourceDefinition"]
    [deployment] = (one for one in found if one["kind"] == "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    container |= {
        "image": _released(container["image"]),
        "args": list(map(_released, container["args"])),
        "imagePullPolicy": "IfNotPresent",
    }
    return found


def install(cluster: Cluster) -> None:
    """Install it, and return when its pod runs; the nodes must know its image. Raise LabError."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests()})
    cluster.kubectl("apply", "-f", "-", stdin=text)
    status = ("rollout", "status", f"deployment/{NAME}", f"--timeout={PATIENCE}")
    cluster.kubectl(*status, "--namespace", NAMESPACE)


def _released(text: str) -> str:
    return _IMAGES.get(text.removesuffix(":latest"), text)
