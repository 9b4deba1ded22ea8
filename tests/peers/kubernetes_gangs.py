"""Labs whose Kubernetes has gangs of its own, and their PodGroups."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from lab.build import is_built
from lab.cluster import Cluster
from lab.options import Options
from lab.versions import KubernetesVersion
from mpijob_elastic.kube.resources import Resource
from tests.lab.job import Job, Object, State
from tests.lab.on_demand import OnDemand
from tests.peers.gpus import on_gpu

GANG = {"mpijob-elastic/gang": "kubernetes"}
LEAST = {"mpijob-elastic/min-replicas": "2", "mpijob-elastic/drain-timeout": "30s"}


@contextmanager
def lab_of(version: str, programs: OnDemand) -> Iterator[Cluster]:
    """Run a lab that serves PodGroups of Kubernetes, in place of the session's."""
    if not is_built(KubernetesVersion.parse(version)):
        build = f"python -m lab binaries --kubernetes-version {version}"
        pytest.skip(f"Kubernetes {version} is not built here: {build}")
    options = Options(kubernetes_version=version, gangs=True)
    with Cluster.start(name=f"pytest-gangs-{os.getpid()}", options=options) as running:
        yield running
        programs.keep(())


async def create(
    job: Job, pool: str, *, replicas: int, annotations: dict[str, str], **more: str
) -> None:
    """Create a job of workers with a GPU each."""
    await job.create(
        replicas=replicas,
        annotations=annotations,
        worker_spec=on_gpu(pool, **more),
        launcher_spec=more,
    )


async def pod_group(job: Job, resource: Resource) -> Object:
    """Return the spec of the job's PodGroup."""
    raw = await job.client.get(resource.path(job.namespace, job.name))
    found: Object = msgspec.json.decode(raw)["spec"]
    return found


def min_count(spec: Object) -> int:
    """Return for how many pods a PodGroup waits."""
    count: int = spec["schedulingPolicy"]["gang"]["minCount"]
    return count


def uids(state: State) -> dict[str, str]:
    """Return the uid of each worker."""
    return {name: pod["metadata"]["uid"] for name, pod in state.workers.items()}
