"""Random sequences of users' operations, foreign edits and misfortune beside the real operator, as Acto makes them.

Each sequence has a job of its own. Many places play at once, each with its namespace, its controller and its operator:
the operator's queue takes ten changes a second, so one for all would be minutes behind the steps. Every job must
converge, and no safety rule may break on the way. A sequence that fails is shrunk and printed with its seed:
`KEPT` in tests/lab/test_random_sequences.py is the place for it.
"""

import asyncio
import contextlib
import itertools
import logging
import secrets
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from lab.cluster import Cluster
from lab.install import Installed, install_into
from lab.operator.process import Operator
from lab.options import Options as LabOptions
from lab.registration import called
from lab.replicas import Webhook
from mpijob_elastic import names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.campaign.part import Options, Outcome
from tests.campaign.sequence_place import Place, placed
from tests.campaign.sequence_play import PATIENCE, converged, play
from tests.campaign.sequence_rules import Version, broken, record
from tests.campaign.sequence_steps import Step, sequence
from tests.lab.job import Job
from tests.lab.waiting import seen, until

SEQUENCES = 2000
PLACES = 24
NODES = 10  # kwok lets each hold 110 pods
# Sequences that may be tried to make a failure shorter.
MOST_SHRINKS = 10
# Seconds that each of them gets: more than a healthy job needs.
SHORT_PATIENCE = 100.0


@dataclass(kw_only=True)
class Tally:
    """The results so far.

    seconds: of each sequence. taken: steps that found what they act on. violations: as in `Outcome`.
    """

    seconds: list[float] = field(default_factory=list)
    steps: int = 0
    taken: int = 0
    violations: list[str] = field(default_factory=list)


def run(options: Options) -> Outcome:
    """Play the sequences."""
    logging.getLogger("mpijob_elastic").setLevel(logging.CRITICAL)  # killed controllers complain
    began = time.monotonic()
    with surroundings(f"campaign-{secrets.token_hex(3)}") as (cluster, installed):
        tally = asyncio.run(_play_all(cluster, installed, options))
    minutes = (time.monotonic() - began) / 60
    typical = statistics.median(tally.seconds) if tally.seconds else 0.0
    longest = max(tally.seconds, default=0.0)
    numbers = (
        f"{tally.steps} steps, of which {tally.taken} found what they act on, {PLACES} jobs at once, "
        f"{minutes:.0f} minutes; a sequence took {typical:.0f} s (median), {longest:.0f} s at most"
    )
    return Outcome(runs=len(tally.seconds), violations=tuple(tally.violations), numbers=numbers)


@contextmanager
def surroundings(
    name: str, *, places: int = PLACES, gang_scheduling: str | None = None
) -> Iterator[tuple[Cluster, Installed]]:
    """Yield a lab with the real operators and a webhook; the controllers are those of the places."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster.start(name=name, options=LabOptions(nodes=NODES)))
        installed = install_into(cluster)
        stack.enter_context(Webhook.start(cluster, installed))
        for index in range(places):
            operator = Operator.start(cluster, namespace=namespace_of(index), gang_scheduling=gang_scheduling, qps=0)
            stack.enter_context(operator)
        until(lambda: called(cluster))
        yield cluster, installed


def namespace_of(index: int) -> str:
    """Return the namespace of a place."""
    return f"place-{index}"


async def _play_all(cluster: Cluster, installed: Installed, options: Options) -> Tally:
    tally, numbers = Tally(), options.runs(SEQUENCES)
    async with await connect(user_agent="mpijob-elastic-campaign-user", kubeconfig=cluster.kubeconfig) as client:

        async def work(index: int) -> None:
            await asyncio.sleep(index)  # so many starts at once would take the machine's breath
            namespace = namespace_of(index)
            await create_namespace(client, namespace)
            async with placed(client, installed, namespace) as place:
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
        print(f"random-sequences: {len(tally.seconds)} played", file=sys.stderr, flush=True)
    if wrong:
        shorter, why = await _shrink(place, steps, wrong)
        lines = "\n".join(f"    {step}," for step in shorter)
        tally.violations.append(f"seed {seed}\n  {why}\n  first seen: {wrong}\n  KEPT:\n{lines}")
        print(f"random-sequences: {tally.violations[-1]}", file=sys.stderr, flush=True)


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
    place.edits.clear()
    place.deleted.clear()
    place.deleted_by_us.clear()
    versions: list[Version] = []
    watching = asyncio.create_task(record(place.client, place.namespace, versions))
    wrong = []
    stranger = await create_stranger(job)
    try:
        await play(place, job, steps)
        await converged(place, job, steps[0], versions, patience=patience)
    except (AssertionError, TimeoutError, errors.ApiError) as error:
        wrong.append(f"{type(error).__name__}: {error}")
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        for path in (resources.MPI_JOBS.path(job.namespace, job.name), stranger):
            with contextlib.suppress(errors.KubeError):
                await place.client.delete_object(path)
    wrong += broken(versions, job=job.name, edits=place.edits, deleted=place.deleted_by_us - place.deleted)
    return "; ".join(wrong)


async def create_stranger(job: Job) -> str:
    """Create a pod that looks like a worker of the job, and that no job owns; return its path."""
    name = f"{job.name}-worker-9"
    labels = {
        names.LABEL_GROUP_NAME: names.GROUP,
        names.LABEL_JOB_NAME: job.name,
        names.LABEL_JOB_ROLE: names.ROLE_WORKER,
    }
    spec = {"containers": [{"name": "worker", "image": "horovod:test"}], "terminationGracePeriodSeconds": 1}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}
    await job.client.create_object(resources.PODS.path(job.namespace), body=body)
    return resources.PODS.path(job.namespace, name)


async def create_namespace(client: ApiWriter, name: str) -> None:
    """Create a namespace in which pods can be created."""
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await client.create_object(resources.NAMESPACES.path(), body=body)
    # Admission refuses pods before the namespace has it.
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await seen(lambda: client.find(account), lambda found: found is not None, f"{account} in {name}")
