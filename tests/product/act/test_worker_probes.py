"""Looks into workers, against a server that speaks exec: what is asked, how much, and what is kept of the answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from mpijob_elastic.act import worker_probes
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube.client import connect
from mpijob_elastic.model.job import JobView, Probe
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, config, job, pods, ref, worker
from tests.faults.kubeconfig import write_plain

FIRST, SECOND = pods(0, 1)


@dataclass(kw_only=True)
class Pods:
    """Answers execs.

    says: by container or pod; None where it never does. uids: of pods that are there; else as `ref` has them.
    """

    says: dict[str, str | None] = field(default_factory=dict)
    uids: dict[str, str | None] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def show(self, request: web.Request) -> web.Response:
        pod = request.match_info["pod"]
        uid = self.uids.get(pod, ref(pod).uid)
        if uid is None:
            return web.json_response({"kind": "Status", "reason": "NotFound", "message": "no"}, status=404)
        return web.json_response({"metadata": {"name": pod, "uid": uid}})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        pod = request.match_info["pod"]
        if "Upgrade" not in request.headers:  # after a refusal: which words it has
            return await self._answer(request, None)
        self.asked.append(pod)
        self.containers.append(request.query["container"])
        self.scripts.append(request.query.getall("command")[-1])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.go.wait()
            return await self._answer(request, self.says.get(request.query["container"], self.says.get(pod, "busy")))
        finally:
            self.at_once -= 1

    async def _answer(self, request: web.Request, word: str | None) -> web.StreamResponse:
        if word is None:
            return web.json_response({"kind": "Status", "reason": "Forbidden", "message": "no"}, status=403)
        socket = web.WebSocketResponse(protocols=["v5.channel.k8s.io"])
        await socket.prepare(request)
        await socket.send_bytes(b"\x01" + f"{word}\n".encode())
        await socket.send_bytes(b"\x03" + json.dumps({"status": "Success"}).encode())
        await socket.close()
        return socket


@dataclass(kw_only=True)
class World:
    """A prober, the pods it looks into, and the jobs that were woken. reconcile: what a job does as soon as it is."""

    prober: Prober
    pods: Pods
    woken: list[tuple[str, str]]
    now: list[float]
    reconcile: Callable[[], None] = lambda: None

    async def done(self) -> None:
        """Wait until no look is under way."""
        self.pods.go.set()
        async with asyncio.timeout(60):
            while self.prober._asking:
                await asyncio.sleep(0.01)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with _world(tmp_path) as world:
        yield world


@asynccontextmanager
async def _world(folder: Path) -> AsyncIterator[World]:
    served, woken, now = Pods(), list[tuple[str, str]](), [NOW]

    def wake(namespace: str, name: str) -> None:
        woken.append((namespace, name))
        made.reconcile()

    application = web.Application()
    application.router.add_get("/api/v1/namespaces/default/pods/{pod}/exec", served.serve)
    application.router.add_get("/api/v1/namespaces/default/pods/{pod}", served.show)
    runner = web.AppRunner(application, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_plain(folder / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await connect(user_agent="test", kubeconfig=folder / "kubeconfig") as client:
        prober = Prober(
            client,
            metrics=Metrics(CollectorRegistry()),
            now=lambda: now[0],
            wake=wake,
        )
        made = World(prober=prober, pods=served, woken=woken, now=now)
        try:
            yield made
        finally:
            served.go.set()
            await prober.close()
            await runner.cleanup()


def leaving() -> JobView:
    """2→1, where j-worker-1 is out of the list."""
    left = Memory(left={SECOND: Left(pod=pod_fingerprint(f"uid-of-{SECOND}"), at=NOW - 1)})
    return job(1, workers=(worker(0), worker(1, containers=("main-1",))), config=config(pods(0), memory=left))


def seen(world: World, view: JobView, pod: str) -> Probe:
    assert view.config is not None
    return world.prober.seen(ref(pod).key, view.config.occasion(pod))


async def test_a_look_is_remembered_for_its_occasion_and_wakes_the_job(world: World) -> None:
    view = leaving()
    world.pods.says = {SECOND: "idle"}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert seen(world, view, SECOND) == Probe(idle_at=NOW, asked_at=NOW, idle_since=NOW)
    assert world.prober.seen(ref(SECOND).key, "left at 1.0") == Probe()
    assert world.woken == [("default", "j")]
    assert world.pods.containers == ["main-1"]


@pytest.mark.parametrize(
    ("says", "answer", "asked"),
    [
        ({"a": "idle", "b": "idle"}, Probe(idle_at=NOW, asked_at=NOW, idle_since=NOW), ["a", "b"]),
        ({"a": "idle", "b": "busy"}, Probe(busy_seen=True, busy_at=NOW, asked_at=NOW), ["a", "b"]),
        ({"a": "busy", "b": "idle"}, Probe(busy_seen=True, busy_at=NOW, asked_at=NOW), ["a"]),
        ({"a": "idle", "b": None}, Probe(asked_at=NOW, failed=1), ["a", "b"]),
    ],
)
async def test_where_ranks_may_be_in_two_containers_a_worker_is_idle_if_both_are(
    world: World, says: dict[str, str | None], answer: Probe, asked: list[str]
) -> None:
    view = leaving()
    world.pods.says = says
    both = replace(view.workers[1], containers=("a", "b"))
    world.prober.begin(view, ProbeWorkers(workers=(both,)))
    await world.done()
    assert (seen(world, view, SECOND), world.pods.containers) == (answer, asked)


async def test_since_when_a_worker_is_idle_stays_until_something_runs(world: World) -> None:
    view = leaving()
    for at, word in ((NOW, "busy"), (NOW + 1, "idle"), (NOW + 9, "idle")):
        world.now[0], world.pods.says = at, {SECOND: word}
        world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
        await world.done()
    assert seen(world, view, SECOND) == Probe(
        busy_seen=True, busy_at=NOW, idle_at=NOW + 9, idle_since=NOW + 1, asked_at=NOW + 9
    )


@pytest.mark.parametrize("word", [None, "", "rubbish"])
async def test_what_goes_wrong_tells_nothing(world: World, word: str | None) -> None:
    view = leaving()
    world.pods.says = {SECOND: word}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert seen(world, view, SECOND) == Probe(asked_at=NOW, failed=1)
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert seen(world, view, SECOND).failed == 2
    world.pods.says = {SECOND: "idle"}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert seen(world, view, SECOND).failed == 0


@pytest.mark.parametrize("uid", [None, "of-its-successor"])
async def test_an_empty_pod_of_the_same_name_tells_nothing(world: World, uid: str | None) -> None:
    """An exec goes by the name, and a pod may be gone for as long as our watch lags."""
    view = leaving()
    world.pods.says, world.pods.uids = {SECOND: "idle"}, {SECOND: uid}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert seen(world, view, SECOND) == Probe(asked_at=NOW, failed=1)


async def test_that_it_drained_is_told_and_nothing_else_of_it_changes(world: World) -> None:
    view = leaving()
    for at, word, drained in ((NOW, "idle", False), (NOW + 1, "idle", True), (NOW + 2, "told", True)):
        world.now[0], world.pods.says = at, {SECOND: word}
        world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2], drained=drained))
        await world.done()
        before = Probe(idle_at=NOW, idle_since=NOW, asked_at=at, failed=int(word == "idle" and drained))
        assert seen(world, view, SECOND) == replace(before, told=word == "told")
    assert world.pods.scripts == [worker_probes.SCRIPT, worker_probes.TELL, worker_probes.TELL]


async def test_a_pod_of_the_same_name_is_told_nothing(world: World) -> None:
    view = leaving()
    world.pods.says, world.pods.uids = {SECOND: "told"}, {SECOND: "of-its-successor"}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2], drained=True))
    await world.done()
    assert world.pods.asked == []
    assert seen(world, view, SECOND) == Probe(asked_at=NOW, failed=1)


async def test_only_news_of_a_published_worker_wakes_its_job(world: World) -> None:
    view = job(1)
    for word, woken in ((None, 0), ("busy", 1), ("busy", 1), (None, 1), ("idle", 2)):
        world.now[0] += 30
        world.pods.says = {pods(0)[0]: word}
        world.prober.begin(view, ProbeWorkers(workers=view.workers, published=True))
        await world.done()
        assert len(world.woken) == woken, word


async def test_a_worker_is_asked_once_at_a_time(world: World) -> None:
    view = leaving()
    for _ in range(3):
        world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert world.pods.asked == [SECOND]


async def test_a_job_that_is_woken_may_look_again_at_once(world: World) -> None:
    """A look may take longer than the pause between two looks, and nothing else might wake the job."""
    view = leaving()

    def reconcile() -> None:
        if len(world.pods.asked) < 3:
            world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))

    world.reconcile = reconcile
    reconcile()
    await world.done()
    assert world.pods.asked == [SECOND] * 3


async def test_so_many_at_once_and_no_more(world: World) -> None:
    most = worker_probes.LEAVING_AT_ONCE // 3  # of a job alone
    size = most + 8
    left = {pod: Left(pod=pod_fingerprint(f"uid-of-{pod}"), at=NOW - 1) for pod in pods(*range(1, size))}
    everybody = tuple(worker(index) for index in range(size))
    view = job(1, workers=everybody, config=config(pods(0), memory=Memory(left=left)))
    for leaving in everybody[1:]:
        world.prober.begin(view, ProbeWorkers(workers=(leaving,)))
    async with asyncio.timeout(60):
        while world.pods.at_once < 2:
            await asyncio.sleep(0.01)
    await world.done()
    assert 2 <= world.pods.most_at_once <= most
    assert sorted(world.pods.asked) == sorted(pods(*range(1, size)))


async def test_of_too_many_published_workers_some_are_turned_away(world: World) -> None:
    most = worker_probes.MOST_WATCHED // 3  # of a job alone
    view = job(most + 5)
    world.prober.begin(view, ProbeWorkers(workers=view.workers, published=True))
    assert len(world.prober._asking) == most


async def test_a_worker_that_still_trains_wakes_nobody(world: World) -> None:
    view = job(2)
    for _ in range(2):
        world.prober.begin(view, ProbeWorkers(workers=view.workers, published=True))
        await world.done()
    # Once each, when it was first seen to train.
    assert world.woken == [("default", "j")] * 2
    world.pods.says = {FIRST: "idle"}
    world.prober.begin(view, ProbeWorkers(workers=view.workers[:1], published=True))
    await world.done()
    assert len(world.woken) == 3


async def test_what_was_seen_goes_with_the_pod_its_occasion_or_the_job(world: World) -> None:
    view = leaving()
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    # Its pod is gone, but it left the list a moment ago: whether it had drained is still asked for.
    gone = replace(view, workers=view.workers[:1])
    world.prober.tidy(gone)
    assert seen(world, view, SECOND).busy_seen
    world.prober.tidy(replace(gone, config=config(pods(0))))
    assert not seen(world, view, SECOND).busy_seen


async def test_what_was_seen_under_a_name_does_not_outlive_it(world: World) -> None:
    view = job(2)
    world.prober.begin(view, ProbeWorkers(workers=view.workers, published=True))
    await world.done()
    world.prober.tidy(view)
    assert seen(world, view, SECOND).busy_seen
    world.prober.tidy(leaving())
    assert not seen(world, view, SECOND).busy_seen
    world.prober.forget("default", "j")
    assert not seen(world, view, FIRST).busy_seen


async def test_a_look_that_ends_after_its_job_is_forgotten_leaves_nothing(world: World) -> None:
    view = leaving()
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    world.prober.forget("default", "j")
    await world.done()
    assert world.pods.asked == [SECOND]
    assert (world.prober._seen, world.prober._asked, world.woken) == ({}, {}, [])


async def test_a_look_that_ends_after_its_pod_is_tidied_leaves_nothing(world: World) -> None:
    view = leaving()
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    world.prober.tidy(replace(view, workers=view.workers[:1], config=config(pods(0))))
    await world.done()
    assert (world.prober._seen, world.prober._asked) == ({}, {})


async def test_a_worker_that_leaves_does_not_wait_for_its_look_as_a_published_worker(world: World) -> None:
    published, view = job(2), leaving()
    world.pods.says = {SECOND: "idle"}
    world.prober.begin(published, ProbeWorkers(workers=published.workers[1:2], published=True))
    world.prober.begin(view, ProbeWorkers(workers=view.workers[1:2]))
    await world.done()
    assert world.pods.asked == [SECOND] * 2
    assert seen(world, view, SECOND).idle_at == NOW
    assert seen(world, published, SECOND) == Probe(), "the answer of a past occasion is dropped"


async def test_ranks_are_ended_in_each_container_of_that_very_pod_and_nobody_is_told(world: World) -> None:
    world.pods.says = {FIRST: "told"}
    for _ in range(2):
        world.prober.end("default", "j", ref(FIRST), ("proxy", "main"))
    await world.done()
    assert sorted(world.pods.containers) == ["main", "proxy"]
    assert world.pods.scripts == [worker_probes.END] * 2
    world.pods.uids = {FIRST: "of a successor"}
    world.prober.end("default", "j", ref(FIRST), ("main",))
    await world.done()
    assert len(world.pods.scripts) == 2
    assert world.woken == []
