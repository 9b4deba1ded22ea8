"""An HPA by the CPU of workers: real load, measured by the kubelet, served by metrics-server through a real Service."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.build import built_peer
from lab.cluster import Cluster
from lab.golang import download
from lab.images.archive import File, write_layer
from lab.images.oci import Settings, write_image
from lab.modules import PINNED
from mpijob_elastic import names
from tests.lab.hpa import Autoscaler, Seen
from tests.lab.job import Job
from tests.lab.ranks import in_pod
from tests.lab.waiting import until
from tests.real import mpijob

pytestmark = pytest.mark.usefixtures("own_node", "scale_served", "elastic", "operator")

SERVER = "metrics-server"
MODULE = f"sigs.k8s.io/{SERVER}"
REFERENCE = f"registry.k8s.io/{SERVER}/{SERVER}:v0.9.0"
# The lab's certificate authority, which signs the kubelets' certificates too.
AUTHORITY = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "hpa" / "cpu.yaml"
RESOURCES = {"requests": {"cpu": "100m"}, "limits": {"cpu": "300m"}}
BURN = "while [ -e /burning ]; do :; done"
# Of a worker's request. One of three that burns its limit is an average of 100, less on a busy machine.
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}}}


@contextmanager
def serving(cluster: Cluster, program: Path, directory: Path) -> Iterator[None]:
    """Have it serve metrics.k8s.io as long as the block lasts; `directory` takes its image."""
    cluster.load_image(_image(program, directory))
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": _manifests(cluster)})
    cluster.kubectl("apply", "-f", "-", stdin=objects)
    cluster.kubectl("wait", "--for=condition=Available", "--timeout=240s", "apiservice/v1beta1.metrics.k8s.io")
    yield
    cluster.kubectl("delete", "-f", "-", stdin=objects)


def _image(program: Path, directory: Path) -> Path:
    layer, archive = directory / "layer.tar", directory / f"{SERVER}.tar"
    write_layer(layer, {SERVER: File(content=program, mode=0o755)})
    write_image(archive, reference=REFERENCE, layers=[layer], settings=Settings(command=(), entrypoint=(f"/{SERVER}",)))
    return archive


def _manifests(cluster: Cluster) -> list[dict[str, Any]]:
    module = download(MODULE, directory=PINNED / SERVER)
    found = list(yaml.safe_load_all(cluster.kubectl("kustomize", str(Path(module["Dir"], "manifests", "base")))))
    [deployment] = (one for one in found if one["kind"] == "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    container["image"] = REFERENCE
    container["args"].append(f"--kubelet-certificate-authority={AUTHORITY}")
    return found


@pytest.fixture(scope="module")
def metrics(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """metrics-server runs; skips the test where it is not built."""
    program = built_peer(SERVER)
    if program is None:
        pytest.skip(f"{SERVER} is not built here: make test-peers")
    with serving(cluster, program, tmp_path_factory.mktemp("metrics")):
        yield


async def busy(cluster: Cluster, namespace: str, pod: str) -> None:
    """Wait until `kubectl top pods` says that a pod takes more than a tenth of a core."""

    def look() -> bool:
        lines = cluster.kubectl("top", "pods", "--no-headers", "--namespace", namespace).splitlines()
        return any(name == pod and int(cpu.removesuffix("m")) > 100 for name, cpu, _ in map(str.split, lines))

    await asyncio.to_thread(until, look)


def utilization(seen: Seen, source: str) -> int | None:
    """Return what the HPA has measured of its only metric; None before it has."""
    found: int | None = (seen.metrics or [{}])[0].get(source, {}).get("current", {}).get("averageUtilization")
    return found


def example() -> dict[str, Any]:
    """Return the metric of docs/examples/hpa/cpu.yaml."""
    [found] = yaml.safe_load(EXAMPLE.read_text())["spec"]["metrics"]
    return dict(found)


@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("metrics")
async def test_a_job_follows_the_load_of_its_workers_and_never_the_launchers(
    cluster: Cluster, namespace: str, job: Job, hpa: Autoscaler
) -> None:
    """Up by the workers' CPU as a whole, and down by that of the container that the example names."""
    launcher, first = names.launcher(job.name), names.worker(job.name, 0)
    script = f"{names.DISCOVER_HOSTS_PATH}; while true; do :; done"
    manifest = json.dumps(mpijob.job(script, resources=RESOURCES))
    await asyncio.to_thread(cluster.kubectl, "create", "--namespace", namespace, "-f", "-", stdin=manifest)
    await job.settled(1)

    await hpa.apply(1, 3, metric=CPU)
    await busy(cluster, namespace, launcher)
    calm = await hpa.until(lambda seen: utilization(seen, "resource") is not None)
    assert calm.desired == 1
    assert (utilization(calm, "resource") or 0) < 20

    in_pod(cluster, job, first, f"touch /burning; ({BURN}) > /dev/null 2>&1 &")
    await busy(cluster, namespace, first)
    await job.settled(3)

    await hpa.apply(1, 3, metric=example())
    loaded = await hpa.until(lambda seen: utilization(seen, "containerResource") is not None)
    assert (utilization(loaded, "containerResource") or 0) > 20
    in_pod(cluster, job, first, "rm /burning")
    await job.settled(1)
