"""Random sequences: the safety rules (docs/architecture.md) on everything that the API server stored of one job.

Nothing here asks `decide`. resourceVersions of one etcd are one sequence over all kinds. The
controller decides on what its watches have brought, so what it needs may be `TOLERANCE` seconds
old; what its preconditions guard may not.
"""

import asyncio
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from mpijob_elastic import capabilities, names
from mpijob_elastic.kube import errors, resources
from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.job import parse_script
from mpijob_elastic.model.job_facts import JobFacts
from tests import rules

Object = dict[str, Any]
WATCHED = (resources.MPI_JOBS, resources.PODS, resources.CONFIG_MAPS, resources.ROLES)
# Seconds by which a watch may lag on a busy machine.
TOLERANCE = 5.0
# Seconds by which the watch of a kind lags, where it is made to; what a precondition or a live read
# guards may not.
Lags = Mapping[str, float]
# Seconds that a rank has to leave at least, where its drain-timeout is not shorter: see
# decide.drain; and how much nearer two events may seem than they were, because the API server notes
# whole seconds.
LEAST_DRAIN, BLUR = 2.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Version:
    """An object after a write, or before it was `deleted`; at: when this process saw it (monotonic seconds)."""

    kind: str
    name: str
    number: int
    at: float
    deleted: bool
    content: Object


async def record(client: ApiWriter, namespace: str, into: list[Version]) -> None:
    """Follow everything in a namespace; cancel to stop."""
    async with asyncio.TaskGroup() as group:
        for resource in WATCHED:
            group.create_task(_follow(client, resource, namespace, into))


async def _follow(
    client: ApiWriter, resource: resources.Resource, namespace: str, into: list[Version]
) -> None:
    known: set[str] = set()
    while True:
        try:
            async with client.stream(
                resource.path(namespace), query={"watch": "true"}, silence=3600
            ) as lines:
                async for line in lines:
                    event = msgspec.json.decode(line)
                    metadata = event["object"].get("metadata", {})
                    if (
                        event["type"] in ("ADDED", "MODIFIED", "DELETED")
                        and metadata["resourceVersion"] not in known
                    ):
                        known.add(metadata["resourceVersion"])
                        into.append(
                            Version(
                                kind=resource.kind,
                                name=metadata["name"],
                                number=int(metadata["resourceVersion"]),
                                at=time.monotonic(),
                                deleted=event["type"] == "DELETED",
                                content=event["object"],
                            )
                        )
        except errors.KubeError:
            await asyncio.sleep(0.5)


class _Left(NamedTuple):
    """A host that is no longer listed, and since when by the API server's clock (seconds since the epoch)."""

    host: str
    at: float


@dataclass(kw_only=True)
class _Job:
    """The history of the job, up to each version."""

    name: str
    edits: set[tuple[str, str, str]]
    deleted: set[str]
    busy: AbstractSet[str]
    going: AbstractSet[str]
    lags: Lags
    past: dict[tuple[str, str], list[Version]] = field(default_factory=lambda: defaultdict(list))
    hosts: tuple[str, ...] | None = ()
    left: dict[str, _Left] = field(default_factory=dict)
    dead: set[tuple[str, str]] = field(default_factory=set)
    memory_lost: bool = False

    def last(self, kind: str, name: str) -> Version | None:
        found = self.past[kind, name]
        return found[-1] if found else None

    def recent(self, kind: str, name: str, *, at: float, lag: float = 0.0) -> list[Version]:
        """The versions that the controller may have seen as the last."""
        found = self.past[kind, name]
        replaced = [after.at for after in found[1:]] + [at]
        return [
            version
            for version, until in zip(found, replaced, strict=True)
            if until >= at - TOLERANCE - lag
        ]

    def cached(self, kind: str, name: str, *, at: float) -> list[Version]:
        """Those that it may have seen by its watch, which may lag."""
        return self.recent(kind, name, at=at, lag=self.lags.get(kind, 0.0))


def broken(
    versions: list[Version],
    *,
    job: str,
    edits: set[tuple[str, str, str]],
    deleted: set[str],
    busy: AbstractSet[str] = frozenset(),
    going: AbstractSet[str] = frozenset(),
    lags: Lags = MappingProxyType({}),
) -> list[str]:
    """Return what broke a safety rule.

    edits: versions of other writers. deleted: uids of the pods that we deleted.
    busy: uids of pods whose ranks never leave. going: names of nodes that go.
    """
    known = _Job(name=job, edits=edits, deleted=deleted, busy=busy, going=going, lags=lags)
    wrong = []
    checks = {"ConfigMap": _config, "Role": _role, "Pod": _pod, "MPIJob": _nothing}
    ours = {job, names.config_map(job), names.launcher(job)}
    for version in _in_order(versions):
        if version.name in ours or names.worker_index(version.name, job=job) is not None:
            where = f"{version.kind} {version.name}@{version.number}"
            wrong += [f"{where}: {one}" for one in checks[version.kind](known, version)]
            known.past[version.kind, version.name].append(version)
    return wrong


def _in_order(versions: list[Version]) -> list[Version]:
    """Return them as they were written; one that was seen after a later version was written before that was seen."""
    found, at = [], math.inf
    for version in sorted(versions, key=lambda version: version.number, reverse=True):
        at = min(at, version.at)
        found.append(replace(version, at=at))
    return found[::-1]


def _nothing(_known: _Job, _version: Version) -> Iterator[str]:
    yield from ()


def _config(known: _Job, new: Version) -> Iterator[str]:
    old = known.last("ConfigMap", new.name)
    script = new.content.get("data", {}).get(names.KEY_DISCOVER_HOSTS)
    parsed = None if script is None else parse_script(script)
    strangers = (
        [host for host in parsed.hosts if not _is_worker(host, known.name)] if parsed else []
    )
    hosts = (
        parsed.hosts if parsed and not strangers else None
    )  # a list that names strangers is garbage
    if new.deleted or old is None or _uid(old) != _uid(new):
        known.hosts, known.memory_lost = hosts or (), False
        known.left.clear()
        return
    is_edit = ("ConfigMap", new.name, str(new.number)) in known.edits
    before = known.hosts
    if is_edit:
        known.memory_lost |= _memory(old) != _memory(new)
    else:
        yield from _published(known, new, before, hosts)
    for host in set(before or ()) - set(hosts or ()):
        known.left[names.pod_of(host)] = _Left(host, _written_at(new))
    known.hosts = hosts


def _published(
    known: _Job, new: Version, before: tuple[str, ...] | None, hosts: tuple[str, ...] | None
) -> Iterator[str]:
    if hosts is None:
        yield "the host list is not in our form"
        return
    launcher = known.last("Pod", names.launcher(known.name))
    running = launcher is not None and _started(launcher)
    pods = {names.pod_of(host) for host in hosts}
    roles = known.cached("Role", names.launcher(known.name), at=new.at)
    job = rules.Job(
        elastic=all(_elastic(known, at=new.at)),
        hosts=set(before or ()),
        size=sys.maxsize,  # which is judged at deletions
        runs=running,
        ready={
            pod
            for pod in pods
            if any(_ready(one) and _owner(one) for one in known.cached("Pod", pod, at=new.at))
        },
        role={pod for role in roles for pod in _exec_names(role)},
    )
    dying = launcher is not None and not launcher.deleted and not known.memory_lost
    lost = {
        host for uid, host in known.dead if dying and launcher is not None and uid == _uid(launcher)
    }
    yield from rules.published(job, rules.Listing(hosts=set(hosts), blacklisted=lost))


def _role(known: _Job, new: Version) -> Iterator[str]:
    old = known.last("Role", new.name)
    if (
        old is None
        or new.deleted
        or _uid(old) != _uid(new)
        or ("Role", new.name, str(new.number)) in known.edits
    ):
        return
    yield from rules.granted({*_exec_names(old)}, {*_exec_names(new)})


def _pod(known: _Job, new: Version) -> Iterator[str]:
    old = known.last("Pod", new.name)
    launcher = known.last("Pod", names.launcher(known.name))
    ends = (_going(new) or new.deleted) and (
        old is None or not (_going(old) or old.deleted) or _uid(old) != _uid(new)
    )
    fails = _phase(new) == "Failed" and (old is None or _phase(old) != "Failed")
    host = next((host for host in known.hosts or () if names.pod_of(host) == new.name), None)
    # A job that is switched off keeps its names; probes of its workers find the lost rank once it
    # is on again.
    if (
        (ends or fails)
        and host
        and launcher
        and _started(launcher)
        and all(_elastic(known, at=new.at))
    ):
        known.dead.add((_uid(launcher), host))
    if ends and _uid(new) in known.busy and launcher and new.name in known.left:
        known.dead.add((_uid(launcher), known.left[new.name].host))
    is_deletion = ends and old is not None and _uid(old) == _uid(new) and _uid(new) in known.deleted
    job = known.last("MPIJob", known.name)
    if is_deletion and not _owner(new):
        yield "rule 5: a pod that no job owns is deleted"
    if is_deletion and old and job and not job.deleted and _uid(job) == _owner(new):
        check = _launcher_deleted if new.name == names.launcher(known.name) else _worker_deleted
        yield from check(known, new, old)


def _launcher_deleted(_known: _Job, _new: Version, old: Version) -> Iterator[str]:
    job = rules.Job(elastic=True, hosts=set(), size=0)  # no sequence suspends a job
    yield from rules.launcher_deleted(job, started=_started(old))


def _worker_deleted(known: _Job, new: Version, old: Version) -> Iterator[str]:
    if {"name": names.GATE_PARKED} in old.content["spec"].get("schedulingGates", ()):
        return  # a placeholder: nothing has ever run in it
    jobs, index = _jobs(known, at=new.at), rules.index_of(new.name)
    launcher = known.last("Pod", names.launcher(known.name))
    failed, finished = _phase(old) == "Failed", any(job.finished for job in jobs)
    job = rules.Job(
        elastic=any(_elastic(known, at=new.at)),
        hosts=set() if finished else set(known.hosts or ()),
        size=sys.maxsize
        if all(index < job.replicas and index not in job.skips for job in jobs)
        else 0,
        ended=launcher is not None and _phase(launcher) in ("Succeeded", "Failed"),
        cleans=any(job.clean_pod_policy in ("Running", "All") for job in jobs),
    )
    write = rules.Deletion(
        pod=new.name,
        dead=failed,
        replaced=failed or old.content["spec"].get("nodeName") in known.going,
        in_use="" if failed or finished else _too_early(known, new, launcher, jobs),
    )
    yield from rules.deleted(job, write)


def _too_early(known: _Job, new: Version, launcher: Version | None, jobs: list[JobFacts]) -> str:
    left = known.left.get(new.name)
    if not (launcher and _started(launcher) and not _going(launcher) and left):
        return ""
    shortest = min([job.policy.drain_timeout for job in jobs], default=0.0)
    least = shortest if _uid(new) in known.busy else min(LEAST_DRAIN, shortest)
    after = _deleted_at(new) - left.at
    return (
        f"a worker is deleted {after:.0f} s after it left the list" if after < least - BLUR else ""
    )


def _jobs(known: _Job, *, at: float) -> list[JobFacts]:
    return [
        capabilities.read(msgspec.json.encode(each.content))
        for each in known.recent("MPIJob", known.name, at=at)
    ]


def _elastic(known: _Job, *, at: float) -> list[bool]:
    """Tell of each MPIJob that the controller may have seen whether it was elastic: a launcher that runs decides."""
    launcher = known.last("Pod", names.launcher(known.name))
    volumes = launcher.content["spec"].get("volumes", []) if launcher and _started(launcher) else []
    items = [item for volume in volumes for item in volume.get("configMap", {}).get("items", [])]
    reads = any(item["key"] == names.KEY_DISCOVER_HOSTS for item in items)
    return [
        job.elastic or (reads and job.policy.enabled is not False) for job in _jobs(known, at=at)
    ]


def _is_worker(host: str, job: str) -> bool:
    return names.worker_index(names.pod_of(host), job=job) is not None


def _uid(version: Version) -> str:
    return str(version.content["metadata"]["uid"])


def _owner(version: Version) -> str:
    return next(
        (str(one["uid"]) for one in version.content["metadata"].get("ownerReferences", [])), ""
    )


def _going(version: Version) -> bool:
    return "deletionTimestamp" in version.content["metadata"]


def _written_at(version: Version) -> float:
    return max(_seconds(one["time"]) for one in version.content["metadata"]["managedFields"])


def _deleted_at(version: Version) -> float:
    metadata = version.content["metadata"]
    return _seconds(metadata["deletionTimestamp"]) - float(metadata["deletionGracePeriodSeconds"])


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _phase(version: Version) -> str:
    return str(version.content.get("status", {}).get("phase", ""))


def _started(version: Version) -> bool:
    return _phase(version) == "Running" and not version.deleted


def _ready(version: Version) -> bool:
    conditions = version.content.get("status", {}).get("conditions", [])
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return is_ready and not _going(version) and not version.deleted


def _exec_names(version: Version) -> list[str]:
    rules = version.content.get("rules") or []
    return [
        name
        for rule in rules
        if rule["resources"] == ["pods/exec"]
        for name in rule.get("resourceNames", [])
    ]


def _memory(version: Version) -> str | None:
    memory: str | None = version.content["metadata"].get("annotations", {}).get(names.MEMORY)
    return memory
