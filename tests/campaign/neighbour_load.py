"""A bad neighbour: a tenant that, with the rights of its namespace alone, does what costs everybody something."""

import asyncio
import contextlib
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from bench import jobs
from lab.cluster import Cluster
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import Limits
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.campaign import neighbour_specs as specs
from tests.lab.waiting import seen

CONNECTIONS, EDITS, LARGEST, SHELLS = "idle connections", "edits", "largest specs", "hung shells"
KINDS = (CONNECTIONS, EDITS, SHELLS, LARGEST)

IDLE = 128
# Their source, so that the webhook takes them for another pod's.
ELSEWHERE = "127.0.0.2"
EDITS_A_MINUTE, SMALL_JOBS, EDITORS = 3_000, 20, 16
HUNG, HUNG_JOBS = 320, 4
# Longer than a probe waits (act/worker_probes, PROBE_TIMEOUT), and bounded so that few run at a time in a pod.
HANGS = 15
PATIENCE = 300.0
# The API server itself gives up after 60 s.
PATIENT = Limits(attempt=70.0, throttled=20.0)


@dataclass(kw_only=True)
class Neighbour:
    """The tenant; `client` has its rights. done: how often it did what, since the last `clear`."""

    cluster: Cluster
    client: ApiWriter
    namespace: str
    webhook_port: int
    random: Random
    done: Counter[str] = field(default_factory=Counter)

    async def prepare(self, kinds: Iterable[str]) -> None:
        """Create what the kinds of load need, with an operator beside it."""
        if EDITS in kinds:
            for index in range(SMALL_JOBS):
                await self._create(specs.small(f"small-{index}"))
            await self._run(2 * SMALL_JOBS)
        if LARGEST in kinds:
            for kind in specs.LARGEST:
                await self._create_largest(kind)
        if SHELLS in kinds:
            await self._hang()

    @asynccontextmanager
    async def busy(self, kinds: Iterable[str]) -> AsyncIterator[None]:
        """Do its worst during the block."""
        small = cycle([f"small-{index}" for index in range(SMALL_JOBS)])
        numbers = count()
        work: dict[str, list[Coroutine[Any, Any, None]]] = {
            CONNECTIONS: [self._idle() for _ in range(IDLE)],
            EDITS: [self._edit(EDITS, small, numbers, every=60 * EDITORS / EDITS_A_MINUTE) for _ in range(EDITORS)],
            LARGEST: [self._edit("edits of the largest", cycle(specs.LARGEST), numbers, every=0.0)],
            SHELLS: [],
        }
        for kind in set(KINDS) - set(kinds):
            for one in work.pop(kind):
                one.close()
        tasks = [asyncio.create_task(one) for all_ in work.values() for one in all_]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            assert task.cancelled(), f"the neighbour gave up: {task.exception()!r}"

    async def leave(self) -> None:
        """Delete its jobs with their objects, and wait for that."""
        timeout = f"--timeout={PATIENCE:.0f}s"
        arguments = ("delete", "mpijobs", "--all", "--cascade=foreground", "--namespace", self.namespace, timeout)
        await asyncio.to_thread(self.cluster.kubectl, *arguments)
        # Deleted in the operator's absence, so nobody makes pods of them again.

    async def _create(self, job: bytes | dict[str, Any]) -> None:
        await self.client.create_object(MPI_JOBS.path(self.namespace), body=job, limits=PATIENT)

    async def _create_largest(self, kind: str) -> None:
        refusals = []
        for size in specs.SIZES:
            body = specs.LARGEST[kind](self.random, size)
            try:
                await self._create(body)
            except errors.Conflict:  # an attempt that had no answer was stored all the same
                pass
            except errors.KubeError as error:
                refusals.append(f"{len(body) // 2**10} KiB: {error}")
                continue
            print(f"the neighbour's {kind}: {len(body) // 2**10} KiB", file=sys.stderr, flush=True)
            return
        raise AssertionError(f"the API server stores no job of the kind {kind}: {'; '.join(refusals)}")

    async def _idle(self) -> None:
        """Keep a connection that never asks anything; it is opened again when the webhook ends it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        while True:
            with contextlib.suppress(OSError):
                opening = asyncio.open_connection(
                    self.cluster.machine, self.webhook_port, ssl=context, local_addr=(ELSEWHERE, 0)
                )
                reader, writer = await opening
                self.done["connections"] += 1
                try:
                    await reader.read()
                finally:
                    writer.close()
            await asyncio.sleep(1)

    async def _edit(self, what: str, names: Iterable[str], numbers: Iterable[int], *, every: float) -> None:
        """Edit jobs in turn, each `every` so many seconds, or as soon as the API server has taken the edit before."""
        due = time.monotonic() + every * self.random.random()
        for name, number in zip(names, numbers, strict=False):
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + every, time.monotonic() - 1)
            path = MPI_JOBS.path(self.namespace, name)
            try:
                await self.client.patch_object(path, body=specs.edit(number), content_type=MERGE_PATCH, limits=PATIENT)
                self.done[what] += 1
            except errors.KubeError:
                self.done[f"{what} refused"] += 1
                await asyncio.sleep(0.1)

    async def _hang(self) -> None:
        """Let workers leave for ever, in whose containers every shell hangs."""
        each = HUNG // HUNG_JOBS
        hung = [f"hung-{index}" for index in range(HUNG_JOBS)]
        for name in hung:
            await self._create(specs.small(name, replicas=1 + each, drain_timeout="24h"))
        await self._run(HUNG + 2 * HUNG_JOBS, "hung-")
        await self._until_listed(hung, 1 + each)
        shell = _hanging_shell(self.cluster)
        command = ["/bin/sh", "-c", f"mount --bind {shell} /bin/sh"]
        slots = asyncio.Semaphore(8)

        async def overlay(name: str, index: int) -> None:
            async with slots:
                pod = f"{name}-worker-{index}"
                done = await exec_in_pod(
                    self.client, self.namespace, pod, container="worker", command=command, timeout=60
                )
                assert done.exit_code == 0, done.stderr

        await asyncio.gather(*(overlay(name, index) for name in hung for index in range(1, 1 + each)))
        for name in hung:
            await jobs.resize(self.client, self.namespace, name, replicas=1)
        await self._until_listed(hung, 1)

    async def _run(self, least: int, prefix: str = "") -> None:
        async def running() -> int:
            answer = await self.client.get(PODS.path(self.namespace))
            pods = msgspec.json.decode(answer)["items"]
            return sum(
                pod["status"].get("phase") == "Running" and pod["metadata"]["name"].startswith(prefix) for pod in pods
            )

        await seen(running, lambda found: found >= least, f"{least} running pods {prefix}", patience=PATIENCE)

    async def _until_listed(self, hung: list[str], count: int) -> None:
        async def listed() -> list[int]:
            return [len((await jobs.look(self.client, self.namespace, name)).hosts) for name in hung]

        await seen(listed, lambda found: set(found) == {count}, f"{count} hosts of each hung job", patience=PATIENCE)


def _hanging_shell(cluster: Cluster) -> Path:
    path = cluster.state_dir / "hanging-shell"
    path.write_text(f"#!/bin/bash\nexec sleep {HANGS}\n")
    path.chmod(0o755)
    return path
