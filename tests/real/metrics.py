"""metrics-server on a real node: its own manifests, with an image of what `python -m lab peers` builds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from lab.cluster import Cluster
from lab.golang import download
from lab.images.archive import File, write_layer
from lab.images.oci import Settings, write_image
from lab.modules import PINNED

SERVER = "metrics-server"
MODULE = f"sigs.k8s.io/{SERVER}"
REFERENCE = f"registry.k8s.io/{SERVER}/{SERVER}:v0.9.0"
# The lab's certificate authority, which signs the kubelets' certificates too.
AUTHORITY = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


@contextmanager
def serving(cluster: Cluster, program: Path, directory: Path) -> Iterator[None]:
    """Have it serve metrics.k8s.io as long as the block lasts; `directory` takes its image."""
    cluster.load_image(_image(program, directory))
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": _manifests(cluster)})
    cluster.kubectl("apply", "-f", "-", stdin=objects)
    cluster.kubectl(
        "wait", "--for=condition=Available", "--timeout=240s", "apiservice/v1beta1.metrics.k8s.io"
    )
    yield
    cluster.kubectl("delete", "-f", "-", stdin=objects)


def _image(program: Path, directory: Path) -> Path:
    layer, archive = directory / "layer.tar", directory / f"{SERVER}.tar"
    write_layer(layer, {SERVER: File(content=program, mode=0o755)})
    write_image(
        archive,
        reference=REFERENCE,
        layers=[layer],
        settings=Settings(command=(), entrypoint=(f"/{SERVER}",)),
    )
    return archive


def _manifests(cluster: Cluster) -> list[dict[str, Any]]:
    module = download(MODULE, directory=PINNED / SERVER)
    found = list(
        yaml.safe_load_all(
            cluster.kubectl("kustomize", str(Path(module["Dir"], "manifests", "base")))
        )
    )
    [deployment] = (one for one in found if one["kind"] == "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    container["image"] = REFERENCE
    container["args"].append(f"--kubelet-certificate-authority={AUTHORITY}")
    return found
