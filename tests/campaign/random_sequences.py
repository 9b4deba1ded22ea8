"""Random sequences of users' operations, foreign edits and misfortune beside the real operator, as Acto makes them.

Each sequence has a job of its own. Many places play at once, each with its namespace, its
controller and its operator: the operator's queue takes ten changes a second, so one for all would
be minutes behind the steps. Every job must converge, and no safety rule may break on the way. A
sequence that fails is shrunk and printed with its seed: `KEPT` in
tests/lab/test_random_sequences.py is the place for it.
"""

import asyncio
import contextlib
import itertools
import logging
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

from lab.cluster import Cluster
from lab.install import Installed
from lab.operator.process import Operator
from mpijob_elastic.kube import errors
from tests.campaign.labs import served, user
from tests.campaign.part import Options, Outcome, say
from tests.campaign.sequence_place import (
    PATIENCE,
    Place,
    come_true,
    hot_loops,
    mounts,
    placed,
    unlike,
    watched,
)
from tests.campaign.sequence_rules import Version, broken
from tests.campaign.sequence_steps import Step, create, delete, play, sequence, template, webhook
from tests.lab.job import Job, State
from tests.lab.waiting import create_namespace

SEQUENCES = 2000
PLACES = 24
QUIET = 2.0  # seconds for which nothing may be written at the end
# Sequences that may be tried to make a failure shorter.
MOST_SHRINKS = 10
# Seconds that each of them gets: more than a healthy job needs.
SHORT_PATIENCE = 100.0


@dataclass(kw_only=True)
class Tally:
    """The results so far.

    seconds: of each sequence. taken: steps that found what they act on. violations: as in
    `Outcome`.
    """

    seconds: list[float] = field(default_factory=list)
    steps: int = 0
    taken: int = 0
    violations: list[str] = field(default_factory=list)


def run(options: Options) -> Outcome:
    """Play the sequences."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # killed controllers complain
    with surroundings() as (cluster, installed):
        tally = asyncio.run(_play_all(cluster, installed, options))
    typical = statistics.median(tally.seconds or [0.0])
    numbers = (
        f"{tally.steps} steps, of which {tally.taken} found what they act on, {PLACES} jobs at once; "
        f"a sequence took {typical:.0f} s (median), {max(tally.seconds, default=0.0):.0f} s at most"
    )
    return Outcome(runs=len(tally.seconds), violations=tuple(tally.violations), numbers=numbers)


@contextmanager
def surroundings(
    *,
    places: int = PLACES,
    gang_scheduling: str | None = None,
    beside: Callable[[Cluster], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Iterator[tuple[Cluster, Installed]]:
    """Yield a lab with the real operators and a webhook; the controllers are those of the places.

    beside: as in `served`.
    """
    with served(beside=beside) as (cluster, installed, _), ExitStack() as stack:
        for index in range(places):
            operator = Operator.start(
                cluster, namespace=namespace_of(index), gang_scheduling=gang_scheduling, qps=0
            )
            stack.enter_context(operator)
        yield cluster, installed


def namespace_of(index: int) -> str:
    """Return the namespace of a place."""
    return f"place-{index}"


async def _play_all(cluster: Cluster, installed: Installed, options: Options) -> Tally:
    tally, numbers = Tally(), options.runs(SEQUENCES)
    async with await user(cluster) as client:

        async def work(index: int) -> None:
            await asyncio.sleep(index)  # so many starts at once would take the machine's breath
            await asyncio.to_thread(create_namespace, cluster, namespace_of(index))
            async with placed(client, installed, namespace_of(index)) as place:
                for number in numbers:
                    await _judge(place, f"{options.seed}:{number}", tally)

        await asyncio.gather(*(work(index) for index in range(PLACES)))
    return tally


async def _judge(place: Place, seed: str, tally: Tally) -> None:
    steps = sequence(seed)
    began = time.monotonic()
    place.taken = 0
    wrong = await attempt(place, steps)
    tally.seconds.append(time.monotonic() - began)
    tally.steps += len(steps)
    tally.taken += place.taken
    if len(tally.seconds) % 50 == 0:
        say(f"random-sequences: {len(tally.seconds)} played")
    if wrong:
        shorter, why = await _shrink(place, steps, wrong)
        lines = "\n".join(f"    {step}," for step in shorter)
        tally.violations.append(f"seed {seed}\n  {why}\n  first seen: {wrong}\n  KEPT:\n{lines}")
        say(f"random-sequences: {tally.violations[-1]}")


async def _shrink(place: Place, steps: tuple[Step, ...], why: str) -> tuple[tuple[Step, ...], str]:
    """Return a shorter sequence that fails too, found by leaving out steps, halves first; and what is wrong with it."""
    tries, size = 0, len(steps) // 2
    while size >= 1 and tries < MOST_SHRINKS:
        for start in range(1, len(steps), size):  # the first step creates the job
            fewer = steps[:start] + steps[start + size :]
            if len(fewer) == len(steps) or tries >= MOST_SHRINKS:
                continue
            tries += 1
            if wrong := await attempt(place, fewer, patience=SHORT_PATIENCE):
                steps, why = fewer, wrong
                break
        else:
            size //= 2
    return steps, why


_jobs = itertools.count()


async def attempt(place: Place, steps: tuple[Step, ...], *, patience: float = PATIENCE) -> str:
    """Play a sequence with a new job; return what went wrong, "" if nothing did."""
    while True:
        # Where the machine is too busy to answer the users, nothing is known of the sequence.
        with contextlib.suppress(errors.Unreachable):
            return await _attempt(place, steps, patience=patience)


async def _attempt(place: Place, steps: tuple[Step, ...], *, patience: float) -> str:
    job = Job(client=place.client, namespace=place.namespace, name=f"s{next(_jobs)}")
    if place.failed():
        await place.lead()
    place.ahead = 0.0
    for done in (place.edits, place.deleted, place.deleted_by_us, place.written):
        done.clear()
    versions: list[Version] = []
    wrong: list[str] = []
    async with watched(job, versions):
        try:
            await play(place, job, steps)
            wrong += filter(
                None, [await _converged(place, job, steps[0], versions, patience=patience)]
            )
        except (AssertionError, TimeoutError, errors.ApiError) as error:
            wrong.append(f"{type(error).__name__}: {error}")
    with contextlib.suppress(errors.KubeError):
        await job.delete()
    wrong += broken(
        versions, job=job.name, edits=place.edits, deleted=place.deleted_by_us - place.deleted
    )
    wrong += hot_loops(place.written)
    return "; ".join(wrong)


async def _converged(
    place: Place, job: Job, first: Step, versions: list[Version], *, patience: float
) -> str:
    """Undo what keeps a job from its size, and wait until it is whole and nobody writes; return what is wrong."""
    with contextlib.suppress(errors.NotFound):
        await webhook(place, job, "back")
    if failed := place.failed():
        return failed
    assert isinstance(first.value, int)
    await create(place, job, first.value)
    await job.annotate(enabled=None, drain_timeout="3s")
    await template(place, job, "elastic")

    async def look(state: State) -> str:
        launcher = state.launcher
        if (
            state.launcher_runs
            and not mounts(state)
            and launcher
            and "deletionTimestamp" not in launcher["metadata"]
        ):
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                await delete(place, job, "launcher")  # as the notice advises
        return unlike(job, state)

    return await come_true(job, look, versions, quiet=QUIET, patience=patience)
