"""The view of a world that decide gets, at a moment called NOW."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import msgspec

from mpijob_elastic import names
from mpijob_elastic.capabilities import told
from mpijob_elastic.decide import config_map, derive, frozen_execs, lost_ranks, next_memory
from mpijob_elastic.model import elastic_script, kubexec, memory
from mpijob_elastic.model import job as model
from mpijob_elastic.model import pod as pod_facts
from mpijob_elastic.model.acknowledgement import Acknowledgement
from mpijob_elastic.model.job import ConfigFacts, parse_script, script_fingerprint
from mpijob_elastic.model.kubexec import HeldExecs
from mpijob_elastic.model.launch_command import Launch
from mpijob_elastic.model.pod import LauncherFacts, PodFacts
from tests.builders import FACTS, JOB, KUBEXEC, LONG_AGO, NOW, but, pods, ref, role
from tests.modelcheck.world import (
    DELIVERING,
    FAILED,
    FINISHED,
    FREE,
    LONGEST_DRAIN,
    LONGEST_IDLE,
    NEVER,
    READY,
    TICK,
    Config,
    Launcher,
    Left,
    Looked,
    Name,
    Pod,
    Probe,
    Seen,
    Setup,
    Tries,
    Watch,
    World,
    members,
    numbers,
)

NOBODY = 9
OWN_SCRIPT = script_fingerprint(elastic_script.TEXT)
DRAIN = int(LONGEST_DRAIN * TICK)
# Seconds since a launcher ended: longer than anything waits for the operator.
ENDED_FOR = 60.0
PHASES = tuple(pod_facts.LauncherPhase)
GATES = (names.GATE_SUSPENDED,)
# When a launcher at the gate was created: long ago, but later than the pods that were there before.
HELD_SINCE = NOW - 2 * lost_ranks.REFORM
# What is kept of a look that showed it, long enough after the launcher knew.
DRAINED = pod_facts.Probe(busy_seen=True, idle_at=NOW)


def at(age: int) -> float:
    """Return the time `age` ticks ago, 0 for NEVER."""
    return 0.0 if age == NEVER else NOW - age * TICK


def uid(index: int, number: int) -> str:
    """Return the uid of a pod by its number under its worker name; no two pods share a uid."""
    return f"{index}.{number}"


@cache
def fingerprint(index: int, number: int) -> str:
    """Return the uid of this pod as the memory keeps it."""
    return memory.pod_fingerprint(uid(index, number))


@cache
def numbers_of(index: int) -> Mapping[str, int]:
    """Return the number of each pod under a worker name, by its fingerprint."""
    return {fingerprint(index, number): number for number in range(NOBODY)}


def number(uid_: str) -> int:
    """Return the number of a pod under its name; NOBODY if it was gone already."""
    return int(uid_.partition(".")[2] or NOBODY)


def view(seen: Seen, world: World, *, setup: Setup) -> model.JobView:
    """Return the view of what is seen of a world."""
    config = world.config
    shown = config_map_of(config)
    looks = [_probe(probe, watch) for probe, watch in zip(world.probes, world.watch, strict=True)]
    placed = [
        _worker(index, pod, probe)
        for index, (pod, probe) in enumerate(zip(seen.pods, looks, strict=True))
        if pod
    ]
    facts = msgspec.structs.replace(
        FACTS,
        elastic=seen.job.elastic,
        policy=replace(
            setup.policy if seen.job.elastic else replace(setup.policy, enabled=False),
            suspend=seen.job.stops,
            parked=frozenset(seen.job.skips) or None,
        ),
        clean_pod_policy=setup.clean_pod_policy,
        finished=seen.job.over,
        replicas=seen.job.replicas,
        notices="Suspended: by a field" if seen.job.told else "",
        # No driver of this world loses a word, so none is reminded (decide/reminders).
        launch=Launch(program="mpirun"),
        names_elastic=setup.elastic_sh,
        gather=TICK if setup.elastic_sh else None,
    )
    found = model.JobView(
        facts=facts,
        replicas=facts.workers,
        workers=tuple(pod for pod in placed if names.GATE_PARKED not in pod.facts.gates),
        placeholders=tuple(pod for pod in placed if names.GATE_PARKED in pod.facts.gates),
        former={names.worker(JOB, index): DRAINED for index in members(world.drained)},
        launcher=seen.launcher
        and but(
            _launcher(seen, seen.launcher, shown, config.dropped_age),
            mounts_elastic=setup.elastic_sh,
            acknowledged=_acknowledged(world.looked),
        ),
        config=shown,
        role=role(*members(world.role)),
    )
    found = told(found)
    return _looked(found) if any(pod and pod.lost_age != NEVER for pod in seen.pods) else found


def _looked(view: model.JobView) -> model.JobView:
    """Return the view after a look for execs into nodes that are gone, which found none."""
    look, _ = frozen_execs.look(derive(view, now=NOW))
    return (
        but(view, launcher=but(look.launcher, held=HeldExecs(asked_at=NOW, about=look.about)))
        if look
        else view
    )


def has_drained(world: World, index: int, *, setup: Setup) -> bool:
    """Return True if exec has shown that the worker which left the list had drained."""
    seen = view(Seen(world.job, world.pods, world.launcher), world, setup=setup)
    worker = seen.worker(names.worker(JOB, index))
    left = seen.memory.left.get(names.worker(JOB, index))
    if worker is None or left is None or left.pod != worker.fingerprint:
        return False
    drain = derive(seen, now=NOW).by_name[worker.name].drain
    return drain is not None and drain.drained


def _acknowledged(looked: Looked | None) -> Acknowledgement:
    if looked is None:
        return Acknowledgement()
    busy = frozenset(pods(*members(looked.busy)))
    return Acknowledgement(asked_at=at(looked.asked_age), number=looked.number, busy=busy)


def _worker(index: int, pod: Pod, probe: pod_facts.Probe) -> pod_facts.Worker:
    facts = PodFacts(
        metadata=ref(names.worker(JOB, index), uid=uid(index, pod.uid)),
        role=names.ROLE_WORKER,
        phase={READY: "Running", FAILED: "Failed"}.get(pod.phase, "Pending"),
        containers=("main",),
        created_at=HELD_SINCE if pod.before else _long_ago(pod.created_age),
        node=""
        if pod.gated or pod.placeholder
        else "n",  # its containers may run there before the kubelet has said so
        gates=(*(GATES if pod.gated else ()), *((names.GATE_PARKED,) if pod.placeholder else ())),
        node_gone_at=0.0 if pod.lost_age == NEVER else _long_ago(pod.lost_age),
        ready_at=at(pod.ready_age) if pod.phase == READY else None,
        deleting=pod.going,
        ends_at=NOW + pod.gentle * TICK if pod.going else None,
        disruption="taint" if pod.doomed else "",
        grouped=True,
    )
    return pod_facts.Worker(facts=facts, index=index, containers=("main",), probe=probe)


def _long_ago(age: int) -> float:
    # The longest age stands for all that are longer.
    return NOW - lost_ranks.REFORM if age >= LONGEST_DRAIN else at(age)


def _probe(probe: Probe | None, watch: Watch | None) -> pod_facts.Probe:
    if watch is not None:
        return _watched(watch)
    if probe is None:
        return pod_facts.Probe()
    return pod_facts.Probe(
        busy_seen=probe.busy_seen,
        idle_at=None if probe.idle_age == NEVER else at(probe.idle_age),
        asked_at=at(probe.asked_age),
    )


def _watched(watch: Watch) -> pod_facts.Probe:
    if watch.idle_age == NEVER:
        return pod_facts.Probe(busy_seen=True, busy_at=NOW, asked_at=NOW)
    # The longest age stands for all that are longer.
    since = (
        NOW - lost_ranks.NEVER_TRAINED_AFTER
        if watch.idle_age >= LONGEST_IDLE
        else at(watch.idle_age)
    )
    return pod_facts.Probe(
        busy_seen=watch.busy_seen,
        busy_at=since if watch.busy_seen else 0.0,
        idle_since=since,
        idle_at=NOW,
        asked_at=NOW,
    )


def _launcher(
    seen: Seen, launcher: Launcher, config: model.Config, dropped_age: int
) -> pod_facts.Launcher:
    facts = LauncherFacts(
        metadata=ref(names.launcher(JOB), uid=str(launcher.uid)),
        role=names.ROLE_LAUNCHER,
        phase="",
        containers=("main",),
        launcher_phase=PHASES[launcher.phase],
        # No look of this world is older than its driver.
        started_at=LONG_AGO if PHASES[launcher.phase] is pod_facts.LauncherPhase.STARTED else None,
        mounts_discovery=True,
        created_at=_created_at(seen, launcher, dropped_age),
        gates=GATES if launcher.gated else (),
        delivering_since=at(launcher.delivering_age) if launcher.phase == DELIVERING else None,
        refreshed=None
        if launcher.shown_age == NEVER
        else config_map.mark(config, at=at(launcher.shown_age)),
        deleting=launcher.going,
        grouped=True,
    )
    return pod_facts.Launcher(
        facts=facts, ended_at=NOW - ENDED_FOR if launcher.phase == FINISHED else None
    )


def _created_at(seen: Seen, launcher: Launcher, dropped_age: int) -> float:
    if launcher.gated or seen.job.stops:
        return HELD_SINCE if launcher.gated else at(launcher.age)
    return at(dropped_age) if launcher.older else NOW


def config_map_of(config: Config) -> model.Config:
    """Return the ConfigMap that the controller reads."""
    hosts = sorted(map(numbers, members(config.hosts)))
    script = names.discover_hosts(
        [names.host(names.worker(JOB, index), number) for index, number in hosts], slots=1
    )
    if config.number:
        named = {
            names.worker(JOB, index): fingerprint(index, name.uid)
            for index, name in enumerate(config.names)
            if name
        }
        script = names.numbered_hosts(named, slots=1, number=config.number, drain=DRAIN)
    facts = ConfigFacts(
        metadata=ref(names.config_map(JOB)),
        script=script,
        hostfile=names.hostfile(list(pods(*members(config.hostfile))), slots=1),
        kubexec=kubexec.mapped(KUBEXEC) if config.maps else KUBEXEC,
        elastic=OWN_SCRIPT,
    )
    return model.Config(
        facts=facts,
        published=parse_script(script),
        memory=next_memory.signed(_memory(config), script=script) if config.known else None,
    )


def _memory(config: Config) -> memory.Memory:
    return memory.Memory(
        left={names.worker(JOB, i): _left(i, left) for i, left in enumerate(config.left) if left},
        added_at=at(config.changed_age),
        removed_at=at(config.changed_age),
        dropped_at=at(config.dropped_age),
        replaced={
            names.worker(JOB, i): _tries(i, tries)
            for i, tries in enumerate(config.replaced)
            if tries
        },
        moved={
            names.worker(JOB, i): _tries(i, tries) for i, tries in enumerate(config.moved) if tries
        },
        hosts={}
        if config.number
        else {names.worker(JOB, i): _name(i, name) for i, name in enumerate(config.names) if name},
        renamed={
            names.worker(JOB, i): _tries(i, tries)
            for i, tries in enumerate(config.renamed)
            if tries
        },
    )


def _left(index: int, left: Left) -> memory.Left:
    return memory.Left(
        pod=fingerprint(index, left.uid),
        at=at(left.age),
        known_at=at(left.known_age),
        list=left.list,
    )


def _name(index: int, name: Name) -> memory.Host:
    pod = "" if name.uid == FREE else fingerprint(index, name.uid)
    return memory.Host(pod=pod, incarnation=name.number, reformed=name.reformed)


def _tries(index: int, tries: Tries) -> memory.Tries:
    return memory.Tries(count=tries.times, at=at(tries.age), uid=uid(index, tries.uid))
