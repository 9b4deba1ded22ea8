"""A bad neighbour: a tenant that, with the rights of its namespace alone, does what costs everybody something.

Its largest MPIJobs are the largest that the API server stores, each costly to read in another way.
"""

import asyncio
import contextlib
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from random import Random
from typing import Any

import msgspec

from bench import jobs
from lab.cluster import Cluster
from mpijob_elastic import names
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.reader import Timeouts
from mpijob_elastic.kube.resources import MPI_JOBS, PODS
from mpijob_elastic.kube.writer import MERGE_PATCH, ApiWriter
from tests.campaign.hostile_texts import compact, deep
from tests.campaign.part import say
from tests.lab.waiting import seen

CONNECTIONS, EDITS, LARGEST, SHELLS = "idle connections", "edits", "largest specs", "hung shells"
KINDS = (CONNECTIONS, EDITS, SHELLS, LARGEST)

IDLE = 128
# Their source, so that the webhook takes them for another pod's.
ELSEWHERE = "127.0.0.2"
EDITS_A_MINUTE, SMALL_JOBS, EDITORS = 3_000, 20, 16
HUNG, HUNG_JOBS = 320, 4
# Longer than a probe waits (act/worker_probes, PROBE_TIMEOUT), and bounded so that few run at a
# time in a pod.
HANGS = 15
PATIENCE = 300.0
# The API server itself gives up after 60 s.
PATIENT = Timeouts(attempt=70.0, throttled=20.0)
# What etcd takes is 1.5 MiB with all that the API server adds. The sizes that are tried, in bytes,
# largest first.
SIZES = tuple(size * 2**10 for size in (1_500, 1_400, 1_200, 1_000, 700, 500))
# A launcher's argument may be so long (MAX_ARG_STRLEN of Linux is 128 KiB).
_SCRIPT = 64 * 2**10
# All annotations of an object (apimachinery, TotalAnnotationSizeLimitB: 256 KiB).
_ANNOTATIONS = 250 * 2**10

Object = dict[str, Any]


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
                await self._create(small(f"small-{index}"))
            await self._run(2 * SMALL_JOBS)
        if LARGEST in kinds:
            for kind in SPECS:
                await self._create_largest(kind)
        if SHELLS in kinds:
            await self._hang()

    @asynccontextmanager
    async def busy(self, kinds: Iterable[str]) -> AsyncIterator[None]:
        """Do its worst during the block."""
        tasks = [asyncio.create_task(one) for one in self._work(kinds)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            assert task.cancelled(), f"the neighbour gave up: {task.exception()!r}"

    def _work(self, kinds: Iterable[str]) -> list[Coroutine[Any, Any, None]]:
        """Return what it does again and again."""
        small, numbers = cycle([f"small-{index}" for index in range(SMALL_JOBS)]), count()
        every = 60 * EDITORS / EDITS_A_MINUTE
        work: list[Coroutine[Any, Any, None]] = []
        if CONNECTIONS in kinds:
            work += [self._idle() for _ in range(IDLE)]
        if EDITS in kinds:
            work += [self._edit(EDITS, small, numbers, every=every) for _ in range(EDITORS)]
        if LARGEST in kinds:
            work += [self._edit("edits of the largest", cycle(SPECS), numbers, every=0.0)]
        return work

    async def leave(self) -> None:
        """Delete its jobs with their objects, and wait for that."""
        timeout = f"--timeout={PATIENCE:.0f}s"
        arguments = (
            "delete",
            "mpijobs",
            "--all",
            "--cascade=foreground",
            "--namespace",
            self.namespace,
            timeout,
        )
        await asyncio.to_thread(self.cluster.kubectl, *arguments)
        # Deleted in the operator's absence, so nobody makes pods of them again.

    async def _create(self, job: bytes | Object) -> None:
        await self.client.create_object(MPI_JOBS.path(self.namespace), body=job, limits=PATIENT)

    async def _create_largest(self, kind: str) -> None:
        refusals = []
        for size in SIZES:
            body = SPECS[kind](self.random, size)
            try:
                with contextlib.suppress(
                    errors.Conflict
                ):  # an attempt that had no answer was stored all the same
                    await self._create(body)
            except errors.KubeError as error:
                refusals.append(f"{len(body) // 2**10} KiB: {error}")
                continue
            say(f"the neighbour's {kind}: {len(body) // 2**10} KiB")
            return
        raise AssertionError(
            f"the API server stores no job of the kind {kind}: {'; '.join(refusals)}"
        )

    async def _idle(self) -> None:
        """Keep a connection that never asks anything; it is opened again when the webhook ends it."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        where: Object = {
            "host": self.cluster.machine,
            "port": self.webhook_port,
            "local_addr": (ELSEWHERE, 0),
        }
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(**where, ssl=context)
                self.done["connections"] += 1
                with contextlib.closing(writer):
                    await reader.read()
            await asyncio.sleep(1)

    async def _edit(
        self, what: str, jobs: Iterable[str], numbers: Iterable[int], *, every: float
    ) -> None:
        """Edit jobs in turn, each `every` so many seconds, or as soon as the API server has taken the edit before."""
        due = time.monotonic() + every * self.random.random()
        for job, number in zip(jobs, numbers, strict=False):
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + every, time.monotonic() - 1)
            path = MPI_JOBS.path(self.namespace, job)
            # An annotation that the controller must look at each time.
            body = {"metadata": {"annotations": {names.DRAIN_TIMEOUT: f"{number % 600}s"}}}
            try:
                await self.client.patch_object(
                    path, body=body, content_type=MERGE_PATCH, limits=PATIENT
                )
                self.done[what] += 1
            except errors.KubeError:
                self.done[f"{what} refused"] += 1
                await asyncio.sleep(0.1)

    async def _hang(self) -> None:
        """Let workers leave for ever, in whose containers every shell hangs."""
        each = HUNG // HUNG_JOBS
        hung = [f"hung-{index}" for index in range(HUNG_JOBS)]
        for name in hung:
            await self._create(small(name, replicas=1 + each, drain_timeout="24h"))
        await self._run(HUNG + 2 * HUNG_JOBS, "hung-")
        await self._until_listed(hung, 1 + each)
        shell = self.cluster.state_dir / "hanging-shell"
        shell.write_text(f"#!/bin/bash\nexec sleep {HANGS}\n")
        shell.chmod(0o755)
        command = ["/bin/sh", "-c", f"mount --bind {shell} /bin/sh"]
        slots = asyncio.Semaphore(8)

        async def overlay(pod: str) -> None:
            async with slots:
                done = await exec_in_pod(
                    self.client,
                    self.namespace,
                    pod,
                    container="worker",
                    command=command,
                    timeout=60,
                )
                assert done.exit_code == 0, done.stderr

        await asyncio.gather(
            *(overlay(names.worker(name, index)) for name in hung for index in range(1, 1 + each))
        )
        for name in hung:
            await jobs.resize(self.client, self.namespace, name, replicas=1)
        await self._until_listed(hung, 1)

    async def _run(self, least: int, prefix: str = "") -> None:
        async def running() -> int:
            pods = msgspec.json.decode(await self.client.get(PODS.path(self.namespace)))["items"]
            mine = [pod for pod in pods if pod["metadata"]["name"].startswith(prefix)]
            return sum(pod["status"].get("phase") == "Running" for pod in mine)

        await seen(
            running,
            lambda found: found >= least,
            f"{least} running pods {prefix}",
            patience=PATIENCE,
        )

    async def _until_listed(self, hung: list[str], hosts: int) -> None:
        async def listed() -> list[int]:
            return [
                len((await jobs.look(self.client, self.namespace, name)).hosts) for name in hung
            ]

        await seen(
            listed,
            lambda found: set(found) == {hosts},
            f"{hosts} hosts of each hung job",
            patience=PATIENCE,
        )


def small(name: str, *, replicas: int = 1, drain_timeout: str = "1s") -> Object:
    return jobs.manifest(name, replicas=replicas, drain_timeout=drain_timeout)


def _scripts(random: Random, size: int) -> bytes:
    """Shell text in every container of the launcher, so that the launcher pod is as large."""
    job = small("scripts")
    line = random.choice(["a;", "horovodrun ", "echo 'x';", "$(a) "])
    pod = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    script = ["sh", "-c", line * (_SCRIPT // len(line))]
    image = pod["containers"][0]["image"]
    pod["containers"] += [
        {"name": f"c{n}", "image": image, "command": script} for n in range(size // _SCRIPT)
    ]
    return compact(job)


def _fields(random: Random, size: int) -> bytes:
    unit = random.choice([b"{}", b'""', b"null", b'{"name":"a"}'])
    return _with("fields", b"[%s]" % b",".join([unit] * (size // (len(unit) + 1))))


def _towers(random: Random, size: int) -> bytes:
    """Lists in lists, as deep as Python's decoder does not follow and the API server does, side by side."""
    depth = random.randrange(2_000, 9_000)
    return _with(
        "towers",
        b"[%s]" % b",".join(b"[" * depth + b"]" * depth for _ in range(size // (2 * depth))),
    )


def _objects(random: Random, size: int) -> bytes:
    """Objects in objects, which the API server repeats in managedFields."""
    tower = b""
    while not tower.startswith(b"{"):
        tower = deep(random, random.randrange(1_000, 3_000))
    return _with(
        "objects",
        b"{%s}" % b",".join(b'"k%d":%s' % (n, tower) for n in range(size // 3 // len(tower))),
    )


def _texts(random: Random, size: int) -> bytes:
    job = small("texts")
    text = random.choice(["\\", '"', "\x1b[2J", "horovodrun"])
    job["metadata"]["annotations"]["neighbour/text"] = text * (_ANNOTATIONS // len(text))
    return _with("texts", compact("a" * (size - len(compact(job)))), job)


def _with(name: str, value: bytes, job: Object | None = None) -> bytes:
    """Return a job with a field in its spec that no program knows, and that the API server stores all the same."""
    job = job or small(name)
    job["spec"]["unknown"] = "\x00HERE"
    return compact(job).replace(b'"\\u0000HERE"', value)


# Each makes a job of its name and about that many bytes.
SPECS: Mapping[str, Callable[[Random, int], bytes]] = {
    "scripts": _scripts,
    "fields": _fields,
    "towers": _towers,
    "objects": _objects,
    "texts": _texts,
}
