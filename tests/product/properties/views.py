"""Any view of a job that the API server could show, and many that it should not: a hypothesis strategy.

An example costs hypothesis one draw, the seed of a view, for a view of many draws would take it
longer to make than all the rest of a test. Times lie around NOW on both sides, for every one of
them is of another clock.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from mpijob_elastic import names
from mpijob_elastic.capabilities.autoscaling.facts import Autoscale, Scaling
from mpijob_elastic.capabilities.autoscaling.growth import Ceiling
from mpijob_elastic.capabilities.avoided_nodes.losses import FORGOTTEN_AFTER
from mpijob_elastic.capabilities.disruption.eviction import Eviction
from mpijob_elastic.capabilities.gangs.facts import Gang, PodGroup
from mpijob_elastic.capabilities.kueue.facts import NO_QUEUE, Queue
from mpijob_elastic.decide import config_map, decide, derive, frozen_execs, next_memory
from mpijob_elastic.model import elastic_script, kubexec
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.history import Change
from mpijob_elastic.model.job import Config, JobView, Role, parse_script, script_fingerprint
from mpijob_elastic.model.job_facts import LIMITS
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.memory import Host, Left, Memory, Mended, Tries, pod_fingerprint
from mpijob_elastic.model.pod import Launcher, LauncherPhase, Probe, Worker
from mpijob_elastic.model.policy import Policy
from tests.builders import (
    FACTS,
    JOB,
    KUBEXEC,
    LONG_AGO,
    NOW,
    but,
    config,
    job,
    launcher,
    pods,
    ref,
    worker,
)
from tests.rooms.autoscaling import grown
from tests.rooms.avoided_nodes import lost_on
from tests.simulated_writes import apply

T = TypeVar("T")
MOST = 6
NAMES = pods(*range(MOST))
UIDS = ("a", "b")
MARKS = tuple(map(pod_fingerprint, UIDS))
TRAINING = Probe(busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 1)
LOST = Probe(
    busy_seen=True, asked_at=NOW - 1, busy_at=NOW - 90, idle_at=NOW - 1, idle_since=NOW - 60
)
OWN_SCRIPT = script_fingerprint(elastic_script.TEXT)
SCRIPTS = (None, "", "#!/bin/sh\nexit 1\n", "#!/bin/sh\necho stranger:1\n")


def _time(random: Random) -> float:
    known = [0.0, LONG_AGO, LONG_AGO, NOW, NOW + 4, NOW + 3600]
    return random.choice([*known, *(NOW + random.uniform(-90, 90) for _ in known)])


def _subset(items: Sequence[T], random: Random) -> list[T]:
    return [item for item in items if random.random() < 0.5]


def _worker(index: int, random: Random) -> Worker:
    phase = random.choice(["ready", "ready", "running", "pending", "failed", "succeeded"])
    node = "" if phase == "pending" and random.random() < 0.5 else "n"
    found = worker(
        index,
        uid=random.choice(UIDS),
        created_at=_time(random),
        node=node,
        node_gone_at=_time(random) if node and random.random() < 0.1 else 0.0,
        running=phase in ("ready", "running"),
        ready_at=_time(random) if phase == "ready" else None,
        deleting=(deleting := random.random() < 0.2),
        ends_at=random.choice([_time(random), NOW + 20]) if deleting else None,
        forced=random.random() < 0.2,
        terminated=phase in ("failed", "succeeded"),
        succeeded=phase == "succeeded",
        disruption=random.choice(["", "", "", "taint spot"]),
        opaque=random.random() < 0.1,
        probe=_probe(random),
    )
    return but(found, eviction=_eviction(found), **_signs(found))


def _eviction(pod: Worker) -> Eviction | None:
    """A mark that takes no draw of the view's own, so that views stay what they were; none comes true later."""
    random = Random(hash((pod.facts.created_at, pod.probe.asked_at, pod.probe.busy_at)))
    if random.random() < 0.8:
        return None
    return Eviction(released=random.random() < 0.5, at=min(_time(random), NOW + 4))


def _signs(pod: Worker) -> dict[str, Any]:
    """What else is known of a disruption; it takes no draw of the view's own, either."""
    random = Random(hash((pod.facts.created_at, pod.probe.busy_at, pod.index)))
    found: dict[str, Any] = {}
    if random.random() < 0.7:
        return found
    if random.random() < 0.3:
        found["unhealthy"] = "nvidia.com/gpu"
    if pod.facts.node and random.random() < 0.5:
        found["node"] = f"n{pod.index}"
    if pod.facts.disruption:
        found["can_wait"] = random.random() < 0.5
        found["disruption_from"] = random.choice([0.0, NOW - 5, NOW + 600])
    return found


def _tries(random: Random) -> Tries:
    return Tries(count=random.randint(1, 9), at=_time(random), uid=random.choice(UIDS))


def _growth(random: Random) -> dict[str, bytes]:
    return grown(random.randint(0, MOST), asked=random.randint(0, MOST), at=_time(random))


def _memory(random: Random) -> Memory:
    return Memory(
        left={
            name: Left(pod=random.choice(MARKS), at=_time(random))
            for name in _subset(NAMES, random)
        },
        added_at=_time(random),
        removed_at=_time(random),
        dropped_at=_time(random),
        replaced={name: _tries(random) for name in _subset(NAMES, random)},
        moved={name: _tries(random) for name in _subset(NAMES, random)},
        own=random.choice([{}, _growth(random)]),
        launchers=random.choice([None, _tries(random)]),
        mended=random.choice(
            [None, None, Mended(count=random.randint(1, 12), at=_time(random), writer="vi")]
        ),
        hosts={name: _host(name, random) for name in _subset(NAMES, random)},
        renamed={name: _tries(random) for name in _subset(NAMES, random)},
    )


def _host(pod: str, random: Random) -> Host:
    return Host(pod=random.choice(["", *MARKS]), incarnation=_number(random))


def _with_losses(memory: Memory) -> Memory:
    """The memory of a job that may have lost workers; like `_eviction` without a draw of the view's own."""
    random = Random(hash((memory.added_at, memory.removed_at)))
    if random.random() < 0.7:
        return memory
    nodes = {node: random.randint(1, 3) for node in _subset(["n", "n0", "n1"], random)}
    ago = random.choice([5.0, 60.0, FORGOTTEN_AFTER - 5, FORGOTTEN_AFTER + 5])
    return msgspec.structs.replace(memory, own={**memory.own, **lost_on(ago=ago, **nodes)})


def _number(random: Random) -> int:
    return random.choice([0, 0, 0, 1, 2, 19])


def _probe(random: Random) -> Probe:
    idle_at = random.choice([None, _time(random)])
    since = None if idle_at is None else idle_at - random.choice([0.0, 20.0, 40.0, 700.0])
    return Probe(
        busy_seen=random.random() < 0.5,
        idle_at=idle_at,
        asked_at=_time(random),
        busy_at=_time(random),
        idle_since=since,
    )


def _launcher(random: Random) -> Launcher:
    found = launcher(
        random.choice([LauncherPhase.STARTED, *LauncherPhase]),
        mounts_discovery=random.random() < 0.8,
        names_discovery=random.random() < 0.8,
        created_at=_time(random),
        delivering_since=random.choice([None, _time(random)]),
        refreshed=random.choice([None, "", "other@0"]),
        disruption=random.choice(["", "", "taint spot"]),
        deleting=random.random() < 0.2,
        held=_held(random) if random.random() < 0.1 else HeldExecs(),
        failures=random.choice([0, 0, 0, 1, 3]),
        deadline=random.choice([None, 1, 60]),
    )
    return but(found, ended_at=_ended_at(found))


def _ended_at(pod: Launcher) -> float | None:
    """When it ended; like `_eviction` without a draw of the view's own."""
    random = Random(hash((pod.facts.created_at, pod.facts.failures)))
    is_over = pod.phase is LauncherPhase.FINISHED and random.random() < 0.8
    return random.choice([LONG_AGO, _time(random), NOW - 29.0]) if is_over else None


def _held(random: Random) -> HeldExecs:
    execs = tuple(
        Exec(pid=pid, pod=random.choice(NAMES), started_at=_time(random)) for pid in range(3)
    )
    return HeldExecs(asked_at=_time(random), suspects=execs, frozen=tuple(_subset(execs, random)))


def _looked(view: JobView, random: Random) -> JobView:
    """The view after a look into the launcher for every reason, which found nothing or was dealt with."""
    look, _ = frozen_execs.look(derive(view, now=NOW))
    if look is None or random.random() < 0.5:
        return view
    return but(view, launcher=but(look.launcher, held=HeldExecs(asked_at=NOW, about=look.about)))


def _policy(random: Random) -> tuple[Policy, Scaling | None]:
    least, timeout = (
        random.choice([None, None, random.randint(1, MOST)]),
        random.choice([None, None, 1.0, 60.0]),
    )
    policy = Policy(
        min_replicas=least,
        drain_timeout=random.choice([0.0, 1.0, 60.0]),
        replace_failed_workers=random.choice([None, True, False]),
        enabled=random.choice([None, None, None, True, False]),
    )
    return policy, Scaling(scale_timeout=timeout) if timeout else None


def _config(random: Random) -> Config:
    hosts, slots = (
        [names.host(pod, _number(random)) for pod in _subset(NAMES, random)],
        random.randint(1, 2),
    )
    ours = names.discover_hosts(hosts, slots=slots)
    script = ours if random.random() < 0.8 else random.choice(SCRIPTS)
    memory = None if random.random() < 0.1 else _with_losses(_memory(random))
    signed = memory is not None and random.random() < 0.9
    return but(
        config([]),
        published=None if script is None else parse_script(script),
        script=script,
        hostfile=names.hostfile(_subset(NAMES, random), slots=slots),
        memory=next_memory.signed(memory, script=script or "") if memory and signed else memory,
        kubexec=random.choice([KUBEXEC, KUBEXEC, kubexec.mapped(KUBEXEC), "mine", None]),
    )


def _job(random: Random) -> JobView:
    exec_names = random.choice([NAMES, tuple(_subset(NAMES, random))])
    policy, scaling = _policy(random)
    view: JobView = but(
        JobView(facts=FACTS, replicas=0),
        replicas=random.randint(0, MOST),
        slots=random.randint(1, 2),
        spec_elastic=random.random() < 0.9 if policy.enabled is None else policy.enabled,
        np_workers=random.choice([0, 0, random.randint(0, MOST)]),
        min_np_workers=random.choice([0, 0, random.randint(0, MOST)]),
        policy=policy,
        scaling=scaling,
        clean_pod_policy=random.choice(["None", "Running", "All"]),
        deleting=random.random() < 0.05,
        finished=random.random() < 0.1,
        foreign="somebody else's" if random.random() < 0.05 else "",
        foreign_at=random.choice([math.inf, _time(random)]),
        notices="" if random.random() < 0.95 else "HandedOver: told",
        workers=tuple(_worker(index, random) for index in _subset(range(MOST), random)),
        launcher=None if random.random() < 0.1 else _launcher(random),
        config=None if random.random() < 0.05 else _config(random),
        former={pod: _probe(random) for pod in _subset(NAMES, random)},
        max_np_workers=random.choice([0, 0, random.randint(1, MOST)]),
        gloo_timeout=random.choice([0, 0, 10, 600]),
        unread_options=random.choice([frozenset(), frozenset(), frozenset(), frozenset(LIMITS)]),
        names_hostfile=random.random() < 0.1,
        gang=random.choice(
            [None, None, Gang(scheduler="volcano", queue=random.choice(["", "team"]))]
        ),
        serves_gangs=random.choice([None, False, True]),
        pod_group=PodGroup(metadata=ref(JOB), min_member=random.randint(0, MOST))
        if random.random() < 0.2
        else None,
        role=None
        if random.random() < 0.05
        else Role(metadata=ref("j-launcher"), exec_rule=1, exec_names=exec_names),
        ttl=random.choice([None, 0, 60]),
        backoff_limit=random.choice([None, None, 0, 1, 3]),
    )
    if view.facts.finished:
        view = but(view, ended_at=random.choice([None, LONG_AGO, _time(random)]))
    at = random.choice([LONG_AGO, LONG_AGO, None, _time(random)])
    if view.launcher is None or view.config is None or at is None:
        return view
    return but(view, launcher=but(view.launcher, refreshed=config_map.mark(view.config, at=at)))


def _training(view: JobView, random: Random) -> JobView:
    """The view where published workers are well, and most were seen to train a moment ago."""
    return but(view, workers=tuple(_well(view, one, random) for one in view.workers))


def _well(view: JobView, one: Worker, random: Random) -> Worker:
    if one.name not in view.host_of:
        return one
    probe = random.choice([TRAINING, TRAINING, TRAINING, LOST, _probe(random)])
    return but(one, running=True, ready_at=LONG_AGO, terminated=False, deleting=False, probe=probe)


def _by_elastic(view: JobView, random: Random) -> JobView:
    """The view where elastic.sh runs the job, with whatever list and acknowledgement.

    Seldom only the next launcher is to run it, or only the last one did.
    """
    view = but(view, names_elastic=random.random() < 0.95)
    view = but(view, gather=random.choice([None, None, 0.0, 30.0]))
    number = random.choice([1, 7, 8])
    if view.launcher:
        held = but(view.launcher, mounts_elastic=random.random() < 0.95)
        view = but(view, launcher=but(held, acknowledged=_acknowledged(number, random)))
    if view.config and random.random() < 0.95:
        view = but(view, config=_numbered(view.config, number, random))
    return view


def _acknowledged(number: int, random: Random) -> Acknowledgement:
    if random.random() < 0.2:
        return Acknowledgement()
    return Acknowledgement(
        asked_at=_time(random),
        failed=random.choice([0, 0, 0, 1, 5]),
        number=random.choice([-1, 0, number - 1, number, number, number + 1, int(NOW)]),
        busy=frozenset(_subset(NAMES, random)),
    )


def _numbered(before: Config, number: int, random: Random) -> Config:
    """The ConfigMap with a list for elastic.sh of the same hosts, which have the names of their pods."""
    listed = before.published and before.facts.script not in SCRIPTS
    hosts = {pod: random.choice(MARKS) for pod in before.host_of} if listed else {}
    drain = random.choice([0, 1, 60])
    ours = names.numbered_hosts(hosts, slots=random.randint(1, 2), number=number, drain=drain)
    script = ours if listed else before.facts.script
    memory, known = before.memory, before.memory
    if memory:
        left = {pod: _with_list(one, number, random) for pod, one in memory.left.items()}
        known = msgspec.structs.replace(memory, left=left, hosts={})
    if known and before.signed:
        known = next_memory.signed(known, script=script or "")
    return but(
        before,
        script=script,
        published=None if script is None else parse_script(script),
        memory=known,
        elastic=random.choice([OWN_SCRIPT, OWN_SCRIPT, OWN_SCRIPT, "", "0123456789ab"]),
    )


def _with_list(one: Left, number: int, random: Random) -> Left:
    return msgspec.structs.replace(one, list=random.choice([0, number, number, max(1, number - 1)]))


def lived(random: Random) -> JobView:
    """A view that we have worked on for a while, before something else happened."""
    return _worked_on(_job(random), random)


def restarting(random: Random) -> JobView:
    """The same of a job that elastic.sh runs."""
    return _worked_on(_by_elastic(_job(random), random), random)


def _worked_on(view: JobView, random: Random) -> JobView:
    for _ in range(random.choice([0, 0, 1, 2, 4])):
        then = _time(random)
        for action in decide(view, now=then).actions[: random.randint(1, 3)]:
            view = apply(view, action, now=then)
    if random.random() < 0.2:
        view = _training(view, random)
    replicas = random.choice([view.replicas, view.replicas, random.randint(0, MOST)])
    view = _looked(but(view, replicas=replicas, selector_due=random.random() < 0.2), random)
    return _suspended(view, random) if view.facts.elastic and random.random() < 0.15 else view


def _suspended(view: JobView, random: Random) -> JobView:
    """The view while the job is being suspended or resumed."""
    gates = random.choice(
        [(names.GATE_SUSPENDED,), (names.GATE_SUSPENDED,), ("theirs", names.GATE_SUSPENDED)]
    )
    if (held := view.launcher) and random.random() < 0.5:
        held = but(held, phase=LauncherPhase.WAITING, gates=gates, delivering_since=None)
    waiting = [_held_back(one, gates) if random.random() < 0.5 else one for one in view.workers]
    by = random.choice(["", "annotation x", "annotation x"])
    return but(view, launcher=held, workers=tuple(waiting), suspended_by=by)


def _held_back(one: Worker, gates: tuple[str, ...]) -> Worker:
    return but(
        one, gates=gates, running=False, ready_at=None, terminated=False, node="", node_gone_at=0.0
    )


def cutting_off(random: Random) -> JobView:
    """A view of a job that trained on all its workers, before nodes of some were deleted."""
    size = random.randint(2, MOST)
    gone_at = random.choice([NOW - 1, NOW - 30, LONG_AGO])
    workers = [but(_worker(index, random), node="n", node_gone_at=0.0) for index in range(size)]
    well = [worker(index, uid="a", node="n") for index in range(size)]
    found = [random.choice([*two, two[1], two[1]]) for two in zip(workers, well, strict=True)]
    memory = Memory(
        elders=random.choice([(), tuple(_subset(NAMES, random))]),
        hosts={one.name: Host(pod=one.fingerprint) for one in well},
    )
    view = job(
        size,
        replicas=random.choice([size, size, random.randint(0, MOST)]),
        workers=tuple(
            but(one, node_gone_at=gone_at) if random.random() < 0.4 else one for one in found
        ),
        config=config(NAMES[:size], memory=memory),
        min_np_workers=random.choice([0, 1, 2]),
        gloo_timeout=random.choice([0, 10]),
    )
    held = random.choice([HeldExecs(), HeldExecs(), _held(random)])
    return _looked(
        but(
            view,
            launcher=launcher(refreshed=view.launcher and view.launcher.facts.refreshed, held=held),
        ),
        random,
    )


def filling(random: Random) -> JobView:
    """A view of a job that takes what lies idle."""
    view, least = lived(random), random.randint(1, 3)
    bounded = but(view.policy, min_replicas=least, max_replicas=random.randint(least, MOST))
    config, memory = view.config, view.memory
    if config and random.random() < 0.8:
        at = random.choice([LONG_AGO, NOW - 70, NOW - 10])
        memory = msgspec.structs.replace(memory, own=_stopped(view, at, bounded.max_replicas))
        config = but(config, memory=memory)
    waiting = [
        random.choice([LONG_AGO, NOW - 30, NOW - 5]) for _ in range(random.choice([0, 0, 1, 4]))
    ]
    return but(
        view,
        policy=bounded,
        scaling=Scaling(autoscale=Autoscale(fill=True), sized_by_us=True),
        config=config,
        queue=random.choice([None, NO_QUEUE, NO_QUEUE, Queue(name="team")]),
        others_wait=tuple(waiting),
    )


def _stopped(view: JobView, at: float, most: int | None) -> dict[str, bytes]:
    """A record of sizes, often with one at which the job stops; without a draw of the view's own."""
    random = Random(hash((view.memory.added_at, view.memory.removed_at)))
    found = Ceiling(
        size=random.choice([max(view.replicas - 1, 0), random.randint(0, MOST)]),
        tried=random.choice([view.replicas, random.randint(0, MOST)]),
        gain=random.choice([-0.5, 0.01, 0.9]),
        at=random.choice([NOW - 60, LONG_AGO, NOW + 3600]),
        most=random.choice([most or 1, MOST]),
        launcher=pod_fingerprint(view.launcher.ref.uid) if view.launcher else "",
    )
    sizes = {"grown_from": random.choice([0, 2]), "typed": random.choice([0, 2])}
    return grown(0, asked=view.replicas, at=at, ceiling=found, **sizes)


def losing(random: Random) -> JobView:
    """A view of a job that takes what lies idle, and has lost workers."""
    view = filling(random)
    if view.config is None:
        return view
    changes = [
        Change(
            at=NOW - random.choice([70.0, 290.0, 310.0]),
            cause=random.choice(["node", "failure"]),
            before=random.randint(1, MOST),
            after=0,
        )
        for _ in range(random.randint(1, 2))
    ]
    removed_at = max(change.at for change in changes)
    memory = msgspec.structs.replace(view.memory, removed_at=removed_at)
    history = msgspec.json.encode(changes)
    return but(view, config=but(view.config, memory=memory, history=history))


losses = st.integers(0, 2**63).map(lambda seed: losing(Random(seed)))
fills = st.integers(0, 2**63).map(lambda seed: filling(Random(seed)))
cut_off = st.integers(0, 2**63).map(lambda seed: cutting_off(Random(seed)))
horovods = st.integers(0, 2**63).map(lambda seed: lived(Random(seed)))
restarts = st.integers(0, 2**63).map(lambda seed: restarting(Random(seed)))
jobs = horovods | restarts
