"""Send AdmissionReviews straight to a webhook process: reviews per second, and the time of each.

The load runs in a process of its own; if there are two cores, server and load run on a core each. The target is about
reviews per second of the webhook's own CPU time, which does not depend on the speed of the load. It uses bare streams:
a full HTTP client needs more CPU than the webhook, and would be measured instead.
"""

import asyncio
import multiprocessing
import os
import ssl
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from bench.figures import percentile
from bench.processes import pin, usage
from lab.errors import LabError
from mpijob_elastic import names

CONNECTIONS = (1, 16, 64)
SECONDS = 5.0
HOST = "127.0.0.1"
# Part of every right answer.
EXPECTED = b"JSONPatch"


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Reviews per second of time and per second of the webhook's CPU time; 50th and 99th percentile in ms."""

    a_second: float
    a_cpu_second: float
    p50: float
    p99: float


@dataclass(frozen=True, kw_only=True)
class _Load:
    """The seconds that all and that each answer took, and the number of wrong answers."""

    seconds: float
    took: tuple[float, ...]
    wrong: int


async def run(pid: int, port: int, *, connections: int, review: bytes, seconds: float = SECONDS) -> Rate:
    """Load the webhook for `seconds`: each connection sends the next review when it has an answer.

    Raises LabError if any answer is wrong.
    """
    cores = sorted(os.sched_getaffinity(0))
    pin(pid, core=cores[0])
    before = usage(pid).cpu
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        work = process.submit(_loaded, port, connections, seconds, review, cores[-1])
        load = await asyncio.wrap_future(work)
    cpu = usage(pid).cpu - before
    if load.wrong:
        raise LabError(f"{load.wrong} of {len(load.took)} reviews over {connections} connections got a wrong answer")
    return Rate(
        a_second=len(load.took) / load.seconds,
        a_cpu_second=len(load.took) / cpu,
        p50=percentile(load.took, 50) * 1000,
        p99=percentile(load.took, 99) * 1000,
    )


def _loaded(port: int, connections: int, seconds: float, body: bytes, core: int) -> _Load:
    pin(os.getpid(), core=core)
    head = f"POST {names.PATH_MUTATE}?timeout=2s HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return asyncio.run(_load(port, connections, seconds, request))


async def _load(port: int, connections: int, seconds: float, request: bytes) -> _Load:
    opened = await asyncio.gather(*(asyncio.open_connection(HOST, port, ssl=_context()) for _ in range(connections)))
    begin = time.perf_counter()
    answers = await asyncio.gather(*(_ask(*streams, request, until=begin + seconds) for streams in opened))
    return _Load(
        seconds=time.perf_counter() - begin,
        took=tuple(duration for took, _ in answers for duration in took),
        wrong=sum(wrong for _, wrong in answers),
    )


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes, *, until: float
) -> tuple[list[float], int]:
    took: list[float] = []
    wrong = 0
    asked = time.perf_counter()
    while not took or asked < until:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        answered = time.perf_counter()
        took.append(answered - asked)
        wrong += head.split(b" ", 2)[1] != b"200" or EXPECTED not in answer
        asked = answered
    writer.close()
    return took, wrong


def _context() -> ssl.SSLContext:
    # No check of the certificate: the caller chose the port, on this machine.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
