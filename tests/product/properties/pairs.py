"""Two real capabilities that meet on one job, drawn pair by pair."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from random import Random

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.disruption.eviction import Eviction
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker
from tests import room_words
from tests.builders import JOB, LONG_AGO, NOW, but, pods, ref
from tests.product.properties.gated import gated
from tests.product.properties.views import MOST, lived, restarting
from tests.queues import granted, preempted, queue, workload
from tests.room_words import Draw
from tests.rooms.autoscaling import grown

PODS = (names.launcher(JOB), *pods(*range(MOST)))


def bare(view: JobView) -> JobView:
    """The job without any capability."""
    workers = tuple(but(one, disruption="", eviction=None, gates=()) for one in view.workers)
    launcher = view.launcher and but(view.launcher, disruption="", gates=())
    plain = but(replace(view, capabilities=()), asked=(), workers=workers, launcher=launcher)
    return room_words.seen_in(replace(plain, capabilities=()), {})


def kueue(view: JobView, random: Random) -> JobView:
    """Some pods have quota, some wait for it, and of some it is wanted back."""
    makes = (workload, granted, granted, preempted, lambda name: granted(name, finished=True))
    found = [random.choice(makes)(name) for name in PODS if random.random() < 0.7]
    return but(gated(view, random, names.GATE_QUEUED), queue=queue(*found))


def gangs(view: JobView, random: Random) -> JobView:
    group = (
        PodGroup(metadata=ref(JOB), min_member=random.randint(0, MOST))
        if random.random() < 0.6
        else None
    )
    gang = Gang(scheduler="volcano", queue=random.choice(["", "team"]))
    return but(view, gang=gang, serves_gangs=random.choice([None, False, True]), pod_group=group)


def autoscaling(view: JobView, random: Random) -> JobView:
    at = random.choice([LONG_AGO, NOW - 70, NOW - 10])
    if view.config:
        memory = but(view.memory, own=grown(random.randint(0, MOST), asked=view.replicas, at=at))
        view = but(view, config=but(view.config, memory=memory))
    bounds = replace(view.policy, min_replicas=1, max_replicas=MOST)
    scaling = random.choice([Scaling(scale_timeout=60.0), Scaling(autoscale=Autoscale(fill=True))])
    waits = tuple(random.choice([LONG_AGO, NOW - 5]) for _ in range(random.choice([0, 0, 2])))
    return but(view, policy=bounds, scaling=scaling, others_wait=waits)


def disruption(view: JobView, random: Random) -> JobView:
    return but(view, workers=tuple(_threatened(one, random) for one in view.workers))


def _threatened(one: Worker, random: Random) -> Worker:
    if one.facts.gates or random.random() < 0.4:
        return one
    mark = Eviction(released=random.random() < 0.5, at=random.choice([NOW, NOW - 5, LONG_AGO]))
    return but(one, eviction=mark) if random.random() < 0.5 else but(one, disruption="taint spot")


def run_policy(view: JobView, random: Random) -> JobView:
    launcher = view.launcher and but(view.launcher, failures=random.choice([0, 2, 9]))
    return but(
        view,
        launcher=launcher,
        ttl=random.choice([None, 0, 60]),
        backoff_limit=random.choice([None, 1, 3]),
    )


def suspension(view: JobView, random: Random) -> JobView:
    by = random.choice(["", "annotation x", "annotation x"])
    return but(gated(view, random, names.GATE_SUSPENDED), suspended_by=by)


OF_WORDS = tuple(words.draw for words in room_words.rooms() if words.draw)
DRAWS: Mapping[str, Draw] = {
    each.__name__: each
    for each in (suspension, run_policy, *OF_WORDS, kueue, gangs, autoscaling, disruption)
}
PAIRS = tuple(combinations(DRAWS, 2))


def drawn(pair: tuple[str, str], seed: int) -> JobView:
    """A job that was worked on, where now these two have a say; every third is run by elastic.sh."""
    random = Random(seed)
    view = bare(lived(random) if seed % 3 else restarting(random))
    for name in pair:
        view = DRAWS[name](view, random)
    return view
