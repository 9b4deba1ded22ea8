"""Stale, missed, crashed: Sieve's three patterns at every write, every watch and every event of a reference day.

The undisturbed day is played first and recorded. Then each day has one trouble: the controller is
killed before or after a write, a watch lags or gives nothing, an event is lost. No safety rule may
break, and the job must end as it does in the undisturbed day, with nothing left over. Many places
play at once, each with a namespace, a controller and an operator of its own; the operator makes
PodGroups.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import and_
from random import Random

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from mpijob_elastic.capabilities.disruption import known_signs
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign import reference_day
from tests.campaign.day import QUIET, Day, play
from tests.campaign.day_troubles import Crash, Cut, Missed, Setting, Stale, Trouble
from tests.campaign.labs import user
from tests.campaign.part import Options, Outcome, say
from tests.campaign.random_sequences import namespace_of, surroundings
from tests.campaign.sequence_place import Look, Place, come_true, grant_lease, watched
from tests.faults.proxy import FaultProxy
from tests.lab.job import Job, State
from tests.lab.waiting import create_namespace, seen

PLACES = 16
UNDISTURBED = 4  # days; their ends must be the same
LAGS = (0.5, 5.0, 60.0)
STEP = 25.0  # seconds after which users go on with the day
# seconds until a disturbed job must be as it should be; a lagging watch takes two minutes a change
PATIENCE = 300.0
TRIES = 3  # days may differ a little, so that a trouble does not come about
CLEAN = 90.0  # seconds until nothing is left of a deleted job


# A lab, and what is installed there.
Lab = tuple[Cluster, Installed]


@dataclass(kw_only=True)
class Lived:
    """A day that is over. ends: what was left at the end of morning and evening."""

    ends: list[dict[str, object]] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Tally:
    """The results so far. spared: how many troubles never came about."""

    runs: int = 0
    spared: int = 0
    violations: list[str] = field(default_factory=list)


def run(options: Options) -> Outcome:
    """Play reference days."""
    # The scheduler of that name is there, so pods of a gang run; and there are PodGroups.
    with surroundings(places=PLACES, gang_scheduling="default-scheduler") as lab:
        return search(lab, options, reference_day.Day, places=PLACES)


def search(
    lab: Lab, options: Options, kind: type[Day], *, places: int, most: int | None = None
) -> Outcome:
    """Play days of a kind, in so many places at once. most: with so many of the troubles, None for all."""
    for noisy in ("mpijob_elastic", "aiohttp.server", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)  # killed controllers complain
    tally = asyncio.run(_play_all(lab, options, kind, places, most))
    return Outcome(
        runs=tally.runs,
        violations=tuple(tally.violations),
        numbers=f"{tally.spared} troubles did not come about",
    )


async def _play_all(
    lab: Lab, options: Options, kind: type[Day], places: int, most: int | None
) -> Tally:
    tally = Tally()
    async with await user(lab[0]) as client:
        for index in range(places):
            await asyncio.to_thread(create_namespace, lab[0], namespace_of(index))
            await grant_lease(client, namespace_of(index))
        found: list[tuple[Trouble, Lived]] = []

        async def undisturbed(index: int) -> None:
            trouble = Trouble()
            lived = await live(
                lab, client, namespace_of(index), trouble, kind=kind, patience=PATIENCE
            )
            found.append((trouble, lived))

        await asyncio.gather(*(undisturbed(index) for index in range(UNDISTURBED)))
        first = found[0][1]
        for trouble, lived in found:
            _judge(tally, trouble, lived, first)
        events = [trouble.events for trouble, _ in found]
        troubles = _troubles(kind, events, [lived.writes for _, lived in found], options)
        say(f"stale-missed-crashed: {len(troubles)} troubles")
        left = iter(troubles)
        numbers = options.runs(most or len(troubles))

        async def work(index: int) -> None:
            for _ in numbers:
                if (trouble := next(left, None)) is None:
                    return
                for _ in range(TRIES):
                    trouble = replace(trouble)
                    lived = await live(lab, client, namespace_of(index), trouble, kind=kind)
                    if trouble.struck or lived.wrong:
                        break
                _judge(tally, trouble, lived, first)

        await asyncio.gather(*(work(index) for index in range(places)))
    return tally


def _troubles(
    day: type[Day], events: list[Counter[str]], writes: list[Counter[str]], options: Options
) -> list[Trouble]:
    """Return a trouble for each event and write that all undisturbed days had, and those of the watches.

    Their order is the seed's, so that a run that is ended early has some of each pattern.
    """
    common_events, common_writes = (reduce(and_, each) for each in (events, writes))
    del common_events[""], common_writes[""]
    troubles: list[Trouble] = [
        *(
            Crash(write=write, nth=nth, after=after)
            for write, nth in _each(common_writes)
            for after in (False, True)
        ),
        *(Stale(kind=kind, seconds=seconds) for kind in day.WATCHED for seconds in LAGS),
        *(
            Cut(kind=kind, refused=not opens, step=step)
            for kind in day.WATCHED
            for opens in (1, 0)
            for step in day.CUT_FROM
        ),
        *(Missed(event=event, nth=nth) for event, nth in _each(common_events)),
    ]
    Random(options.seed).shuffle(troubles)
    return troubles


def _each(counted: Counter[str]) -> Iterator[tuple[str, int]]:
    return ((name, nth) for name, count in counted.items() for nth in range(1, count + 1))


def _judge(tally: Tally, trouble: Trouble, lived: Lived, first: Lived) -> None:
    tally.runs += 1
    tally.spared += type(trouble) is not Trouble and not trouble.struck
    if wrong := lived.wrong + different(lived, first):
        tally.violations.append(f"{trouble}\n  " + "\n  ".join(wrong))
        say(f"stale-missed-crashed: {tally.violations[-1]}")
    if tally.runs % 20 == 0:
        say(f"stale-missed-crashed: {tally.runs} days")


def different(lived: Lived, other: Lived) -> list[str]:
    """Return how a day ended otherwise than another."""
    return [
        f"{what} is {ours.get(what)}, undisturbed {theirs.get(what)}"
        for ours, theirs in zip(lived.ends, other.ends, strict=False)
        for what in sorted(ours.keys() | theirs.keys())
        if ours.get(what) != theirs.get(what)
    ]


_pools = itertools.count()


async def live(
    lab: Lab,
    client: ApiWriter,
    namespace: str,
    trouble: Trouble,
    *,
    kind: type[Day] = reference_day.Day,
    patience: float = STEP,
) -> Lived:
    """Play a day with a trouble in a namespace without jobs, and leave it so."""
    lived, (cluster, installed) = Lived(), lab
    day = kind(
        cluster=cluster,
        job=Job(client=client, namespace=namespace, name="day"),
        pool=f"day-{next(_pools)}",
    )
    async with FaultProxy(installed.controller_kubeconfig) as proxy:
        signs = known_signs.signs()
        place = Place(namespace=namespace, client=client, kubeconfig=proxy.kubeconfig, signs=signs)
        setting = Setting(proxy=proxy, place=place, pool=day.pool, watched=day.WATCHED)
        await day.begin()
        async with watched(day.job, day.versions):
            try:
                with ExitStack() as stack:
                    trouble.inject(setting, stack)
                    await place.lead()
                    await _live(day, trouble, lived, patience=patience)
                    await seen(
                        lambda: _execs(proxy), lambda count: not count, "no exec is under way"
                    )
            except (AssertionError, TimeoutError, errors.KubeError) as error:
                lived.wrong.append(f"{type(error).__name__}: {error}")
            finally:
                lived.wrong += filter(None, [place.failed()])
                await place.end()
        lived.writes.update(setting.write(request) for request in proxy.requests)
        lived.wrong += day.broken(deleted=place.deleted_by_us, lags=trouble.lags)
    lived.wrong += await _clean(day)
    return lived


async def _live(day: Day, trouble: Trouble, lived: Lived, *, patience: float) -> None:
    for steps, until_it in ((day.morning(), day.is_whole), (day.evening(), day.has_ended)):
        await play(day, steps, until_it, patience=patience, before=trouble.before)
        trouble.ease()
        wrong = await come_true(
            day.job, partial(_rests, until_it), day.versions, quiet=QUIET, patience=PATIENCE
        )
        assert not wrong, wrong
        lived.ends.append(await day.ending())
        trouble.resume()


async def _rests(until_it: Look, state: State) -> str:
    """A controller that starts after a crash takes the phase away late."""
    return await until_it(state) or state.phase


async def _execs(proxy: FaultProxy) -> int:
    return proxy.under_way(lambda request: request.path.endswith("/exec"))


async def _clean(day: Day) -> list[str]:
    """Delete the jobs, and return what does not go with them; then take away what the day needed."""
    names = [job.name for job in day.jobs()]
    for job in day.jobs():
        with contextlib.suppress(errors.NotFound):
            await job.delete()

    async def left() -> list[str]:
        found = [key for key in await day.left() if "worker-9" not in key]
        return [key for key in found if any(f" {name}" in key for name in names)]

    wrong = []
    try:
        await seen(left, lambda found: not found, "nothing of the jobs is left", patience=CLEAN)
        await day.end()
    except (AssertionError, LabError) as error:
        wrong.append(str(error))
    return wrong
