"""Jobs that are followed, beside an API server in memory."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import job_events, rows, watch
from mpijob_elastic.cli.jobs.job_events import EventsAsked
from mpijob_elastic.cli.jobs.live import Key, Live, follow
from mpijob_elastic.cli.jobs.show import JobsAsked
from mpijob_elastic.cli.jobs.snapshot import Selection
from mpijob_elastic.cli.target import Where
from mpijob_elastic.decide import derive
from mpijob_elastic.decide.shown import shown_of
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import CONFIG_MAPS, EVENTS, MPI_JOBS, PODS, ROLES, Resource
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from tests.product.cli import worlds
from tests.product.cli.served import NAMESPACE, one_job, put_job, store

# Jobs in the order of their queue, and one in another queue.
QUEUES = {"first": "team", "second": "team", "third": "team", "alone": "other"}


def put(api: TinyApi, name: str, *, says: str = "1 more needed", reserved: bool = False) -> None:
    """Store the Workload of a job."""
    asked = {"type": "QuotaReserved", "status": str(reserved), "message": says}
    spec = {
        "queueName": QUEUES[name],
        "priority": -list(QUEUES).index(name),
        "podSets": [{"name": "w", "count": 1}],
    }
    workload = {
        **worlds.role([], job=name, namespace=NAMESPACE),
        "spec": spec,
        "status": {"conditions": [asked]},
    }
    store(api, WORKLOADS, workload)


def turns(live: Live) -> Mapping[Key, tuple[int | None, str]]:
    """Return the place of each job, and what it waits for."""
    found = {key: live.snapshot(key) for key in live.keys}
    states = {
        key: derive(snapshot.view, now=worlds.NOW) for key, snapshot in found.items() if snapshot
    }
    seen = {key: [one.turn(state) for one in shown_of(state.view)] for key, state in states.items()}
    return {key: (turn.place, turn.says) for key, of_job in seen.items() for turn in of_job if turn}


async def until(live: Live, name: str, turn: tuple[int | None, str]) -> set[str]:
    """Return the jobs with news until one has this turn."""
    news: set[str] = set()
    while turns(live).get((NAMESPACE, name)) != turn:
        news |= {job for _, job in await live.changes()}
    return news


async def test_a_job_is_followed_from_before_it_exists_until_it_is_gone() -> None:
    async with (
        TinyApi(selects=True) as api,
        reached(Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)) as (client, _),
    ):
        following = follow(client, Selection(namespace=NAMESPACE, job="train"), with_role=True)
        async with aclosing(following) as seen:
            assert await anext(seen) is None
            put_job(api, "train")
            while (found := await anext(seen)) is None:
                pass
            assert found.view.name == "train"
            api.remove(MPI_JOBS.path(NAMESPACE, "train"))
            while await anext(seen):
                pass


async def test_an_object_in_a_queue_is_news_for_its_job_and_those_behind_it() -> None:
    async with (
        TinyApi(selects=True) as api,
        reached(Where(kubeconfig=api.kubeconfig, all_namespaces=True)) as (client, _),
    ):
        for name, queue in QUEUES.items():
            job = worlds.mpi_job(name=name, namespace=NAMESPACE, replicas=1, conditions=["Created"])
            job["metadata"]["labels"] = {LABEL_QUEUE: queue}
            store(api, MPI_JOBS, job, **{names.LABEL_APP: name})
            put(api, name)
        selection = Selection(namespace=None)
        async with Live(client, selection, with_role=False) as live:
            await until(live, "third", (3, "1 more needed"))
            await until(live, "alone", (1, "1 more needed"))
            put(api, "second", says="2 more needed")
            assert await until(live, "second", (2, "2 more needed")) == {"second"}
            put(api, "first", reserved=True)
            assert await until(live, "third", (2, "1 more needed")) == {"first", "second", "third"}


def forbid_watching(api: TinyApi, kind: Resource) -> None:
    """Let this user list the objects of a resource, and not watch them."""
    usual = api.hook

    def answer(sent: Sent) -> object | None:
        if sent.query.get("watch") == "true" and sent.path == kind.path(NAMESPACE):
            raise refused(403, "Forbidden", f'User "u" cannot watch resource "{kind.plural}"')
        return usual(sent)

    api.hook = answer


async def get_w(where: Where) -> None:
    await rows.watch(where, JobsAsked(jobs=["train"]))


async def watching(where: Where) -> None:
    await watch.watch(where, job="train")


async def events_w(where: Where) -> None:
    await job_events.events(where, "train", EventsAsked(watch=True))


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (get_w, MPI_JOBS),
        (get_w, PODS),
        (get_w, CONFIG_MAPS),
        (watching, MPI_JOBS),
        (watching, PODS),
        (watching, CONFIG_MAPS),
        (events_w, EVENTS),
    ],
)
async def test_a_command_that_follows_ends_without_the_right_to_watch(
    command: Callable[[Where], Coroutine[Any, Any, None]], kind: Resource
) -> None:
    """As kubectl does, which prints what it has listed, and then ends with 1."""
    async with one_job() as api, asyncio.timeout(10.0):
        forbid_watching(api, kind)
        with pytest.raises(errors.Forbidden, match=f"cannot watch resource .{kind.plural}"):
            await command(Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE))


@pytest.mark.parametrize("refusals", [1, 2])
async def test_a_right_that_is_away_for_a_moment_ends_nothing(refusals: int) -> None:
    """As while a binding is made again."""
    refusing = [MPI_JOBS.path(NAMESPACE)] * refusals
    async with one_job() as api, asyncio.timeout(20.0):
        usual = api.hook

        def answer(sent: Sent) -> object | None:
            if sent.query.get("watch") == "true" and refusing[-1:] == [sent.path]:
                refusing.pop()
                raise refused(403, "Forbidden", "no right to watch")
            return usual(sent)

        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        selection = Selection(namespace=NAMESPACE, job="train")
        async with (
            reached(where) as (client, _),
            Live(client, selection, with_role=True) as live,
        ):
            await live.changes()
            await edited(api, live)  # so the watch is open
            api.hook = answer
            await api.end_streams()
            if refusals > 1:
                with pytest.raises(errors.Forbidden):
                    await live.changes()
                return
            while refusing:
                await asyncio.sleep(0.01)
            await edited(api, live)


async def edited(api: TinyApi, live: Live) -> None:
    """Return once an edit of the job has been seen."""
    await api.update(MPI_JOBS.path(NAMESPACE), "train", edited=len(api.writes))
    await live.changes()


async def test_roles_are_left_out_without_the_right_to_watch_them() -> None:
    async with one_job() as api, asyncio.timeout(10.0):
        forbid_watching(api, ROLES)
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        selection = Selection(namespace=NAMESPACE, job="train")
        async with (
            reached(where) as (client, _),
            Live(client, selection, with_role=True) as live,
        ):
            while (found := live.snapshot((NAMESPACE, "train"))) is None or found.role_readable:
                await live.changes()


async def test_a_queue_is_left_out_without_the_right_to_watch_its_objects() -> None:
    async with TinyApi(selects=True) as api, asyncio.timeout(10.0):
        job = worlds.mpi_job(name="first", namespace=NAMESPACE, conditions=["Created"])
        job["metadata"]["labels"] = {LABEL_QUEUE: "team"}
        store(api, MPI_JOBS, job)
        put(api, "first")
        forbid_watching(api, WORKLOADS)
        where = Where(kubeconfig=api.kubeconfig, namespace=NAMESPACE)
        async with (
            reached(where) as (client, _),
            Live(client, Selection(namespace=NAMESPACE), with_role=False) as live,
        ):
            await until(live, "first", (1, "1 more needed"))
            while turns(live).get((NAMESPACE, "first")) == (1, "1 more needed"):
                await live.changes()
