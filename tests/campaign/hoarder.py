"""A bad neighbour that stores what everybody's controllers read, and has jobs that nothing can help."""

import asyncio
import json
import time
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from lab.cluster import Cluster
from lab.kueue import RELEASE
from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.kube.writer import MERGE_PATCH
from tests.campaign.neighbour import PATIENCE, PATIENT, Neighbour, Object, small
from tests.campaign.part import say
from tests.lab.definitions import served
from tests.lab.waiting import seen

LABELS, CONFIGS, FILL, WAITING = (
    "pod labels",
    "ConfigMaps",
    "a fill that no node takes",
    "waiting jobs",
)
KINDS = (LABELS, CONFIGS, FILL, WAITING)

# So many ended both webhooks before there was a bound.
LABELLED, LABELLED_BYTES, CREATED_AT_ONCE = 132, 1_300 * 2**10, 4
# Of a label in the template; no pod may have such a long one, and the operator gives its pods none
# of them.
LABEL_BYTES = 64 * 2**10
CONFIGURED, CONFIG_BYTES = 20, 1_000 * 2**10
QUEUED = 20
# What one node of the lab has is less.
TOO_MANY_GPUS = 20_000


@contextmanager
def kueue_served(cluster: Cluster) -> Iterator[None]:
    """Serve Kueue's kinds; the neighbour says what Kueue would."""
    with TemporaryDirectory() as directory, served(cluster, RELEASE, Path(directory)):
        yield


@dataclass(kw_only=True)
class Hoarder(Neighbour):
    """The tenant."""

    async def prepare(self, kinds: Iterable[str]) -> None:
        if CONFIGS in kinds:
            for name in _configured():
                await self._create(small(name))
            await self._run(2 * CONFIGURED, "configured-")
        if FILL in kinds:
            await self._create(_filling())
        if WAITING in kinds:
            for name in _waiting():
                job = small(name)
                job["metadata"]["labels"] = {LABEL_QUEUE: "nobody"}
                await self._create(job)
            await seen(
                self._workloads,
                lambda found: found >= QUEUED,
                "Workloads that wait",
                patience=PATIENCE,
            )
        if LABELS in kinds:
            began = time.monotonic()
            slots = asyncio.Semaphore(CREATED_AT_ONCE)

            async def create(index: int) -> None:
                async with slots:
                    with suppress(
                        errors.Conflict
                    ):  # an attempt that had no answer was stored all the same
                        await self._create(_labelled(f"labelled-{index}"))

            await asyncio.gather(*map(create, range(LABELLED)))
            say(
                f"{LABELLED} MPIJobs with {LABELLED_BYTES // 2**10} KiB of labels: {time.monotonic() - began:.0f} s"
            )

    def _work(self, kinds: Iterable[str]) -> list[Coroutine[Any, Any, None]]:
        work = super()._work(kinds)
        if LABELS in kinds:
            labelled = cycle([f"labelled-{index}" for index in range(LABELLED)])
            work.append(self._edit("edits of labels", labelled, count(), every=0.5))
        if CONFIGS in kinds:
            work.append(self._configure())
        if WAITING in kinds:
            work += [self._say(name) for name in _waiting()]
        return work

    async def _workloads(self) -> int:
        return len(
            msgspec.json.decode(await self.client.get(WORKLOADS.path(self.namespace)))["items"]
        )

    async def _configure(self) -> None:
        """Write to the ConfigMaps of its jobs as much as they hold, again and again."""
        for name, number in zip(cycle(_configured()), count(), strict=False):
            text = f"{number} " + self.random.choice(["\\", '"', "echo a:1\n", "x"]) * CONFIG_BYTES
            path = CONFIG_MAPS.path(self.namespace, names.config_map(name))
            await self._try("ConfigMaps", path, {"data": {"neighbour": text[:CONFIG_BYTES]}})
            await asyncio.sleep(0.5)

    async def _say(self, name: str) -> None:
        """Say each second what a Workload waits for, as Kueue does, with another number."""
        path = WORKLOADS.path(self.namespace, names.launcher(name), "status")
        for number in count(1):
            message = f"couldn't assign flavors: insufficient unused quota for nvidia.com/gpu, {number} more needed"
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            told = {
                "type": "QuotaReserved",
                "status": "False",
                "reason": "Pending",
                "message": message,
            }
            await self._try(
                "words of Kueue",
                path,
                {"status": {"conditions": [{**told, "lastTransitionTime": at}]}},
            )
            await asyncio.sleep(1)

    async def _try(self, what: str, path: str, body: Object) -> None:
        try:
            await self.client.patch_object(
                path, body=body, content_type=MERGE_PATCH, limits=PATIENT
            )
            self.done[what] += 1
        except errors.KubeError:
            self.done[f"{what} refused"] += 1


def _configured() -> list[str]:
    return [f"configured-{index}" for index in range(CONFIGURED)]


def _waiting() -> list[str]:
    return [f"waiting-{index}" for index in range(QUEUED)]


def _labelled(name: str) -> bytes:
    job = small(name)
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    labels = {
        f"neighbour-{index}": "a" * LABEL_BYTES for index in range(LABELLED_BYTES // LABEL_BYTES)
    }
    template["metadata"] = {"labels": labels}
    return json.dumps(job).encode()


def _filling() -> Object:
    job = small("filling")
    bounds = {"min-replicas": "1", "max-replicas": "8", "autoscale": "fill"}
    job["metadata"]["annotations"] |= {
        f"{names.PREFIX}{key}": value for key, value in bounds.items()
    }
    [worker] = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    worker["resources"]["limits"]["nvidia.com/gpu"] = TOO_MANY_GPUS
    return job
