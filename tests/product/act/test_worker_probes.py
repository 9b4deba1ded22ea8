"""Looks into workers, against a server that speaks exec: what is asked, how much, and what is kept of the answers."""

from collections.abc import AsyncIterator, Callable
from itertools import pairwise

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mpijob_elastic import names
from mpijob_elastic.act import worker_probes, worker_scripts
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.decide.actions import ProbeWorkers
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.memory import Left, Memory, pod_fingerprint
from mpijob_elastic.model.pod import Probe, Worker
from mpijob_elastic.telemetry.metrics import Metrics
from tests.builders import NOW, but, config, job, pods, worker
from tests.doubles.shells import Asked, Shells, by_place, connected
from tests.faults.waiting import eventually
from tests.product.decide.test_ledger import told

FIRST, SECOND = pods(0, 1)
# 2→1, where j-worker-1 is out of the list.
LEFT = Memory(left={SECOND: Left(pod=pod_fingerprint(f"uid-of-{SECOND}"), at=NOW - 1)})
LEAVING = job(
    1, workers=(worker(0), worker(1, containers=("main-1",))), config=config(pods(0), memory=LEFT)
)
LEAVER = LEAVING.workers[1:2]
GONE = but(LEAVING, workers=LEAVING.workers[:1])


class World:
    """A prober, the pods it looks into, and the jobs that were woken. reconcile: what a job does as soon as it is."""

    def __init__(self, client: ApiWriter, shells: Shells) -> None:
        self.shells = shells
        self.woken: list[tuple[str, str]] = []
        self.now = NOW
        self.reconcile: Callable[[], None] = lambda: None
        self.prober = Prober(
            client, metrics=Metrics(CollectorRegistry()), now=lambda: self.now, wake=self._wake
        )

    def _wake(self, namespace: str, name: str) -> None:
        self.woken.append((namespace, name))
        self.reconcile()

    def says(self, **words: str | None) -> None:
        """Let containers say this, `first` and `second` stand for the pods, and all others that they are busy."""
        places = {"first": FIRST, "second": SECOND}
        self.shells.says = by_place(
            {places.get(place, place): word for place, word in words.items()}, "busy"
        )

    def begin(
        self, view: JobView = LEAVING, workers: tuple[Worker, ...] = LEAVER, **kind: bool
    ) -> None:
        """Begin to look into these workers, published or drained."""
        self.prober.begin(view, ProbeWorkers(workers=workers, **kind))

    async def done(self) -> None:
        """Let all pods answer, and wait until no look is under way."""
        self.shells.go.set()
        await eventually(lambda: not self.prober._asking)

    async def look(
        self, view: JobView = LEAVING, workers: tuple[Worker, ...] = LEAVER, **kind: bool
    ) -> None:
        """Look into these workers."""
        self.begin(view, workers, **kind)
        await self.done()

    def seen(self, view: JobView = LEAVING, pod: str = SECOND) -> Probe:
        """Return what is known of a pod on its occasion in that view."""
        assert view.config is not None
        key = worker(names.worker_index(pod, job="j") or 0).key
        return self.prober.seen(("default", "j"), key, view.config.occasion(pod))

    def asked(self, what: Callable[[Asked], str] = lambda asked: asked.pod) -> list[str]:
        """Return the pods that were asked."""
        return [what(asked) for asked in self.shells.asked]

    def containers(self) -> list[str]:
        """Return their containers."""
        return self.asked(lambda asked: asked.container)

    def scripts(self) -> list[str]:
        """Return what was run in them."""
        return self.asked(lambda asked: asked.command[-1])


@pytest.fixture
async def world() -> AsyncIterator[World]:
    shells = Shells(by_place({}, "busy"))
    shells.go.clear()
    async with connected(shells) as client:
        made = World(client, shells)
        yield made
        shells.go.set()
        await made.prober.close()


async def test_a_look_is_remembered_for_its_occasion_and_wakes_the_job(world: World) -> None:
    world.says(second="idle")
    await world.look()
    assert world.seen() == Probe(idle_at=NOW, asked_at=NOW, idle_since=NOW)
    assert world.prober.seen(("default", "j"), worker(1).key, "left at 1.0") == Probe()
    assert world.woken == [("default", "j")]
    assert world.containers() == ["main-1"]


SEEN = Probe(busy_seen=True, busy_at=NOW, busy_since=NOW, asked_at=NOW)


@pytest.mark.parametrize(
    ("a", "b", "answer", "asked"),
    [
        ("idle", "idle", Probe(idle_at=NOW, asked_at=NOW, idle_since=NOW), ["a", "b"]),
        ("idle", "busy", SEEN, ["a", "b"]),
        ("busy", "idle", SEEN, ["a"]),
        ("idle", None, Probe(asked_at=NOW, failed=1), ["a", "b"]),
    ],
)
async def test_where_ranks_may_be_in_two_containers_a_worker_is_idle_if_both_are(
    world: World, a: str, b: str | None, answer: Probe, asked: list[str]
) -> None:
    world.says(a=a, b=b)
    await world.look(workers=(but(LEAVER[0], containers=("a", "b")),))
    assert (world.seen(), world.containers()) == (answer, asked)


@pytest.mark.parametrize(("probed", "in_doubt"), [("main-1", True), ("sidecar", False)])
async def test_what_runs_beside_commands_of_a_kubelet_may_be_no_rank(
    world: World, probed: str, in_doubt: bool
) -> None:
    leaver = (but(LEAVER[0], probed_containers=(probed,)),)
    world.says(second="busy")
    await world.look(workers=leaver)
    assert (world.seen().busy_seen, world.seen().rank_seen) == (True, not in_doubt)


async def test_since_when_a_worker_is_idle_stays_until_something_runs(world: World) -> None:
    for at, word in ((NOW, "busy"), (NOW + 1, "idle"), (NOW + 9, "idle")):
        world.now = at
        world.says(second=word)
        await world.look()
    assert world.seen() == but(SEEN, idle_at=NOW + 9, idle_since=NOW + 1, asked_at=NOW + 9)


async def test_since_when_a_worker_is_busy_stays_until_it_is_idle(world: World) -> None:
    found = []
    for word in ("busy", None, "busy", "idle", "busy"):
        world.says(second=word)
        await world.look()
        found.append(world.seen().busy_since)
        world.now += 10
    assert found == [NOW, NOW, NOW, NOW, NOW + 40]


@pytest.mark.parametrize(
    ("word", "uid"),
    [
        *(
            pytest.param(word, f"uid-of-{SECOND}", id=f"it says {word}")
            for word in (None, "", "rubbish")
        ),
        # An exec goes by the name, and a pod may be gone for as long as our watch lags.
        pytest.param("idle", None, id="its pod is gone"),
        pytest.param("idle", "of-its-successor", id="an empty pod of the same name"),
    ],
)
async def test_what_goes_wrong_tells_nothing(
    world: World, word: str | None, uid: str | None
) -> None:
    world.says(second=word)
    world.shells.uids[SECOND] = uid
    for failed in (1, 2):
        await world.look()
        assert world.seen() == Probe(asked_at=NOW, failed=failed)
    world.says(second="idle")
    world.shells.uids.clear()
    await world.look()
    assert world.seen() == Probe(idle_at=NOW, asked_at=NOW, idle_since=NOW)


async def test_that_it_drained_is_told_and_nothing_else_of_it_changes(world: World) -> None:
    for at, word, drained in (
        (NOW, "idle", False),
        (NOW + 1, "idle", True),
        (NOW + 2, "told", True),
    ):
        world.now = at
        world.says(second=word)
        await world.look(drained=drained)
        before = Probe(
            idle_at=NOW, idle_since=NOW, asked_at=at, failed=int(word == "idle" and drained)
        )
        assert world.seen() == but(before, told=word == "told")
    world.shells.uids[SECOND] = "of-its-successor"
    await world.look(drained=True)
    assert world.seen().failed == 1
    assert world.scripts() == [worker_scripts.SCRIPT, worker_scripts.TELL, worker_scripts.TELL]


async def test_only_news_of_a_published_worker_wakes_its_job(world: World) -> None:
    view = job(1)
    for word, woken in ((None, 0), ("busy", 1), ("busy", 1), (None, 1), ("idle", 2)):
        world.now += 30
        world.says(first=word)
        await world.look(view, view.workers, published=True)
        assert len(world.woken) == woken, word


def test_the_first_line_of_a_ring_is_news() -> None:
    steps = [Probe(busy_seen=True, progress=line) for line in (None, told(NOW), told(NOW + 30))]
    again = but(steps[0], progress=told(NOW + 60, since=NOW + 50))
    news = [worker_probes._tells(*pair) for pair in pairwise([*steps, again, again])]
    assert news == [False, False, True, False]


async def test_a_worker_is_asked_once_at_a_time_and_a_job_that_is_woken_may_look_again_at_once(
    world: World,
) -> None:
    """A look may take longer than the pause between two looks, and nothing else might wake the job."""

    def reconcile() -> None:
        if len(world.asked()) < 3:
            world.begin()

    world.reconcile = reconcile
    for _ in range(3):
        world.begin()
    await world.done()
    assert world.asked() == [SECOND] * 3


async def test_so_many_at_once_and_no_more(world: World) -> None:
    most = worker_probes.LEAVING_AT_ONCE // 3  # of a job alone
    size = most + 8
    left = {
        pod: Left(pod=pod_fingerprint(f"uid-of-{pod}"), at=NOW - 1) for pod in pods(*range(1, size))
    }
    everybody = tuple(worker(index) for index in range(size))
    view = job(1, workers=everybody, config=config(pods(0), memory=Memory(left=left)))
    for leaving in everybody[1:]:
        world.begin(view, (leaving,))
    await eventually(lambda: world.shells.at_once >= 2)
    await world.done()
    assert 2 <= world.shells.most_at_once <= most
    assert sorted(world.asked()) == sorted(pods(*range(1, size)))


async def test_of_too_many_published_workers_some_are_turned_away(world: World) -> None:
    most = worker_probes.MOST_WATCHED // 3  # of a job alone
    view = job(most + 5)
    world.begin(view, view.workers, published=True)
    assert len(world.prober._asking) == most


async def test_what_was_seen_goes_with_the_pod_its_occasion_or_the_job(world: World) -> None:
    await world.look()
    # Its pod is gone, but it left the list a moment ago: whether it had drained is still asked for.
    world.prober.tidy(GONE)
    assert world.seen().busy_seen
    world.prober.tidy(but(GONE, config=config(pods(0))))
    assert not world.seen().busy_seen
    published = job(2)
    await world.look(published, published.workers, published=True)
    world.prober.tidy(published)
    assert world.seen(published).busy_seen
    world.prober.tidy(LEAVING)
    assert not world.seen(published).busy_seen
    world.prober.forget(("default", "j"))
    assert not world.seen(published, FIRST).busy_seen


async def test_no_look_is_made_into_a_worker_that_has_gone_while_the_look_waited(
    world: World,
) -> None:
    """In a cluster of many workers a look waits for a minute, and each costs two connections."""
    world.begin()
    world.prober.tidy(but(GONE, config=config(pods(0))))
    await world.done()
    assert world.asked() == []
    assert not world.prober.jobs


@pytest.mark.parametrize("tidied", [False, True])
async def test_a_look_that_ends_after_its_job_is_forgotten_or_its_pod_is_tidied_leaves_nothing(
    world: World, tidied: bool
) -> None:
    world.begin()
    await eventually(lambda: world.shells.at_once >= 1)
    world.prober.tidy(but(GONE, config=config(pods(0)))) if tidied else world.prober.forget(
        ("default", "j")
    )
    await world.done()
    assert world.asked() == [SECOND]
    assert not world.prober.jobs
    assert tidied or not world.woken


async def test_a_worker_that_leaves_does_not_wait_for_its_look_as_a_published_worker(
    world: World,
) -> None:
    published = job(2)
    world.says(second="idle")
    world.begin(published, published.workers[1:2], published=True)
    await eventually(lambda: world.shells.at_once >= 1)
    await world.look()
    assert world.asked() == [SECOND] * 2
    assert world.seen().idle_at == NOW
    assert world.seen(published) == Probe(), "the answer of a past occasion is dropped"


async def test_ranks_are_ended_in_each_container_of_that_very_pod_and_nobody_is_told(
    world: World,
) -> None:
    world.says(first="told")
    for _ in range(2):
        world.prober.end(
            ("default", "j"), msgspec.structs.replace(worker(0).facts, containers=("proxy", "main"))
        )
    await world.done()
    assert sorted(world.containers()) == ["main", "proxy"]
    assert world.scripts() == [worker_scripts.END] * 2
    world.shells.uids[FIRST] = "of a successor"
    world.prober.end(("default", "j"), worker(0).facts)
    await world.done()
    assert len(world.scripts()) == 2
    assert world.woken == []
