"""Caches that watch a tiny API server, and what they know of a job."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import msgspec

from mpijob_elastic.capabilities import live
from mpijob_elastic.capabilities.disruption.known_signs import signs
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.observe import views
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from tests.product.kube.watched import running as task_of


@asynccontextmanager
async def running(
    client: ApiWriter, *, node_watch: bool = True, options: Collection[str] = ()
) -> AsyncIterator[Caches]:
    caches = Caches(
        client,
        namespaces=(),
        enqueue=lambda _: None,
        random=Random(1),
        read=live.READ,
        capabilities=partial(live.seeing, options=options),
        signs=signs() if node_watch else None,
    )
    async with task_of(caches.run()):
        await caches.synced()
        yield caches


def view_of(
    caches: Caches, job: str = "train", probes: views.Probes = views.never_asked
) -> JobView:
    view = caches.view(JobKey("n", job), probes=probes)
    assert view is not None
    return view


def job_of(
    name: str,
    annotations: dict[str, str] | None = None,
    *,
    gpus: bool = True,
    labels: dict[str, str] | None = None,
) -> bytes:
    ours = {f"mpijob-elastic/{key}": text for key, text in (annotations or {}).items()}
    identity = {"name": name, "namespace": "n", "uid": "job", "resourceVersion": "1"}
    metadata = {**identity, "annotations": ours, "labels": labels or {}}
    resources = {"limits": {"nvidia.com/gpu": "1"}} if gpus else {}
    template = {
        "spec": {
            "nodeSelector": {"pool": "a"},
            "containers": [{"name": "w", "resources": resources}],
        }
    }
    worker = {"replicas": 1, "template": template}
    return msgspec.json.encode(
        {"metadata": metadata, "spec": {"mpiReplicaSpecs": {"Worker": worker}}}
    )
