"""The cost of a pod event for the controller: decode a line of the watch, cache the pod, queue its job.

This runs the code of the controller on lines as an API server sends them, in a burst, without the
connection. `json` is the time that the standard library needs to parse the same lines.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from bench import jobs, targets
from bench.figures import measured
from bench.parts.context import Findings, Setting
from mpijob_elastic import names
from mpijob_elastic.capabilities import live
from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey

SAMPLE = Path(__file__).parents[1] / "samples" / "worker-pod.json"
JOBS, WORKERS = 200, 5
# Changes of each pod after its creation.
CHANGES = 4


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Microseconds per event: all work; only reading the facts from the object; only parsing with `json`."""

    event: float
    decoding: float
    json: float


async def run(setting: Setting) -> Findings:
    """Measure `repeat` times."""
    sample = SAMPLE.read_bytes()
    costs = []
    for turn in range(setting.repeat):
        setting.say(f"pod events, {turn + 1} of {setting.repeat}")
        costs.append(await _measure(sample))

    figure = partial(measured, ("Events", "one pod event"), ours=costs)
    return Findings(
        figures=[
            figure(
                "decoded, cached, job queued",
                "µs",
                lambda cost: cost.event,
                target=targets.POD_EVENT,
            ),
            figure("of that, facts read from the object", "µs", lambda cost: cost.decoding),
            figure("the line parsed by json alone", "µs", lambda cost: cost.json),
        ],
        notes=[
            f"A pod event of a running worker has {len(_line(msgspec.json.decode(sample), 'MODIFIED')):,} bytes."
        ],
    )


async def _measure(sample: bytes) -> Cost:
    # The mean over many events, generated from the JSON of a pod.
    lines = _lines(msgspec.json.decode(sample))
    queue = WorkQueue[JobKey](random=Random(0))
    async with ApiWriter(Access(host="http://localhost"), user_agent="bench") as client:
        caches = Caches(
            client,
            namespaces=(),
            enqueue=queue.put,
            random=Random(0),
            read=live.READ,
            capabilities=live.seeing,
        )
        pods = caches.pods
        assert isinstance(pods, WatchCache)
        begin = time.process_time()
        for line in lines:
            await pods._take(line)  # noqa: SLF001 - this step is measured, and has no public name
        event = _mean(begin, lines)
    assert len(caches.pods.store.values()) == JOBS * WORKERS
    assert queue.depth == JOBS
    objects = [
        bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])["object"]) for line in lines
    ]
    return Cost(event=event, decoding=_time(live.READ.pod, objects), json=_time(json.loads, lines))


def _time(work: Callable[[bytes], object], items: Sequence[bytes]) -> float:
    begin = time.process_time()
    for item in items:
        work(item)
    return _mean(begin, items)


def _mean(begin: float, items: Sequence[bytes]) -> float:
    return (time.process_time() - begin) / len(items) * 1_000_000


def _lines(pod: dict[str, Any]) -> list[bytes]:
    lines, version = [], 0
    for change in range(1 + CHANGES):
        for index in range(JOBS * WORKERS):
            version += 1
            lines.append(_line(_of(pod, index, version=version), "MODIFIED" if change else "ADDED"))
    return lines


def _of(pod: dict[str, Any], index: int, *, version: int) -> dict[str, Any]:
    job = f"{jobs.JOB}-{index // WORKERS}"
    metadata = pod["metadata"]
    owner = {**metadata["ownerReferences"][0], "name": job, "uid": f"job-{index // WORKERS}"}
    own = {
        "name": names.worker(job, index % WORKERS),
        "uid": f"pod-{index}",
        "resourceVersion": str(version),
        "labels": {**metadata["labels"], names.LABEL_JOB_NAME: job},
        "ownerReferences": [owner],
    }
    return {**pod, "metadata": {**metadata, **own}}


def _line(pod: dict[str, Any], kind: str) -> bytes:
    return msgspec.json.encode({"type": kind, "object": pod})
