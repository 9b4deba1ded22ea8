"""A cluster in memory for jobs that wait in a queue of Kueue: all but the controller, and the controller itself.

The API server, mpi-operator, Kueue with one quota, scheduler, kubelets, Horovod's driver and elastic.sh are
doubles, each a method that does all that is due. The webhook's answers and everything of the
controller but its execs are real.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, TypeVar

import jsonpatch
import msgspec
from prometheus_client import CollectorRegistry

from lab.operator import objects
from mpijob_elastic import capabilities, names
from mpijob_elastic.act.deletions import Deletions
from mpijob_elastic.act.driver_looks import DriverLooks
from mpijob_elastic.act.events import Events
from mpijob_elastic.act.launcher_execs import Execs
from mpijob_elastic.act.leader_writer import LeaderWriter
from mpijob_elastic.act.worker_probes import Prober
from mpijob_elastic.act.writer import Outdated, Writer
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.admission.review import CREATE, UPDATE, GroupVersionKind, Request
from mpijob_elastic.admission.size import SCALES
from mpijob_elastic.capabilities import admission, live
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.controller.ledgers import Ledgers
from mpijob_elastic.controller.per_job_state import Refusals, ScaleTimes, SeenTimes
from mpijob_elastic.controller.recheck import LiveRecheck
from mpijob_elastic.controller.reconcile import Reconciler
from mpijob_elastic.decide.actions import LookAtDriver, LookIntoLauncher, Note, ProbeWorkers
from mpijob_elastic.kube import errors, meta
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.kube.queue import WorkQueue
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS, PODS, ROLES, Resource
from mpijob_elastic.kube.store import StaleList
from mpijob_elastic.model.job import JobView, Published, parse_script
from mpijob_elastic.model.json_parts import timestamp
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.model.policy import DEFAULT_DRAIN_TIMEOUT
from mpijob_elastic.names import PARKED
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from mpijob_elastic.telemetry.metrics import Metrics
from tests.doubles.api import Object, TinyApi, merged, refused
from tests.doubles.direct import DirectClient, Sent
from tests.doubles.elastic_sh import ElasticSh
from webhook.rules import handlers

T = TypeVar("T")

NAMESPACE = "default"
# Seconds that ranks of elastic.sh get to save, less those by which this double may see them later.
SAVED_FOR = DEFAULT_DRAIN_TIMEOUT - 10.0


class Crash(Exception):
    """The controller is killed before a write."""


class Cluster(TinyApi):
    """quota: pods that Kueue admits. lagging: the kind of which watches and lists are old. crash_in: writes to go.

    slow: seconds between the starts of two pods. drivers: elastic.sh by the uid of its launcher.
    killed: workers that the controller deleted although ranks of elastic.sh had time to save. frozen: paths of objects that nobody may change.
    hanging: the kind whose writes wait for a webhook that does not answer; late: such a write takes
    place all the same, after its writer gave up. asked: the controller's writes that were not
    refused, each with its time.
    ASKS: the kind that asks for quota. OPTIONS: of the controller. watched: kinds that the controller sees.
    """

    ASKS = WORKLOADS
    OPTIONS: tuple[str, ...] = ()

    def __init__(self, quota: int) -> None:
        super().__init__(selects=True)
        self.now, self.quota = 1_800_000_000.0, quota
        self.lagging: Resource | None = None
        self.crash_in = 0
        self.slow, self._started = 0.0, 0.0
        self.frozen: set[str] = set()
        self.hanging: Resource | None = None
        self.late = False
        self.asked: list[tuple[float, Sent]] = []
        self.watched: tuple[Resource, ...] = (MPI_JOBS, PODS, CONFIG_MAPS, ROLES, self.ASKS)
        self.served: dict[Resource, tuple[int, list[bytes]]] = {}
        self.ranks: set[str] = set()
        self.drivers: dict[str, ElasticSh] = {}
        self.killed: list[str] = []
        self._left: dict[str, float] = {}
        self._begun = 0
        self._known: dict[str, tuple[bytes, Object]] = {}
        self.hook = self._before
        context = ReviewContext(
            job=self._facts, now=lambda: self.now, rooms=admission.ALL, taken=admission.TAKEN
        )
        self._mutating, self._validating = handlers.mutating(context), handlers.validating(context)

    def all(self, resource: Resource) -> list[Object]:
        start = resource.path(NAMESPACE) + "/"
        return [self._read(path) for path in sorted(self.objects) if path.startswith(start)]

    def get(self, resource: Resource, name: str) -> Object | None:
        path = resource.path(NAMESPACE, name)
        return self._read(path) if path in self.objects else None

    def _read(self, path: str) -> Object:
        """Return an object that nobody may change, decoded once for each of its versions."""
        text = self.objects.text(path)
        if self._known.get(path, (b"", {}))[0] is not text:
            self._known[path] = text, self.objects[path]
        return self._known[path][1]

    def published(self, job: str) -> Published | None:
        """Return the host list of a job."""
        config = self.get(CONFIG_MAPS, names.config_map(job))
        return parse_script(config["data"].get(names.KEY_DISCOVER_HOSTS, "")) if config else None

    def listed(self, job: str) -> set[str]:
        """Return the pods in the host list of a job."""
        script = self.published(job)
        return {names.pod_of(host) for host in script.hosts} if script else set()

    def change(self, resource: Resource, item: Object, **patch: object) -> None:
        self.put(resource.path(NAMESPACE, item["metadata"]["name"]), merged(item, patch))

    def edit(self, job: Object, **patch: object) -> None:
        """Change a job as a user does: unless the webhook refuses it."""
        after = merged(job, patch)
        request = self._request(
            MPI_JOBS, UPDATE, after, old_object=msgspec.Raw(msgspec.json.encode(job))
        )
        if handlers.answer(request, self._validating).verdict.allowed:
            self.put(MPI_JOBS.path(NAMESPACE, job["metadata"]["name"]), after)

    def scale(self, job: Object, replicas: int) -> None:
        """Set the size of a job as `kubectl scale` does: unless the webhook refuses it."""
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]

        def scale_of(size: int) -> Object:
            metadata = {"name": name, "namespace": NAMESPACE, "uid": uid}
            return {"metadata": metadata, "spec": {"replicas": size}}

        request = self._request(
            SCALES,
            UPDATE,
            scale_of(replicas),
            name=name,
            sub_resource="scale",
            old_object=msgspec.Raw(msgspec.json.encode(scale_of(size_of(job)))),
        )
        if handlers.answer(request, self._validating).verdict.allowed:
            self.change(MPI_JOBS, job, spec={"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}})

    def end(self, pod: Object) -> None:
        """Delete a pod as a user does."""
        with suppress(errors.NotFound):
            self._end_pod(Sent(method="DELETE", path=PODS.path(NAMESPACE, pod["metadata"]["name"])))

    def serve(self) -> None:
        """Have the watches tell what is stored, but for the kind that lags."""
        for resource in self.watched:
            if resource != self.lagging or resource not in self.served:
                start = resource.path(NAMESPACE) + "/"
                texts = [self.objects.text(path) for path in self.objects if path.startswith(start)]
                self.served[resource] = self.revision, texts

    def operate(self) -> None:
        """Act as mpi-operator v0.2.3: create what is missing; clean up after the launcher has ended."""
        for job in self.all(MPI_JOBS):
            name = job["metadata"]["name"]
            launcher = self.get(PODS, names.launcher(name))
            if launcher and launcher["status"].get("phase") == "Succeeded":
                if not job["status"].get("completionTime"):
                    done = [{"type": kind, "status": "True"} for kind in ("Created", "Succeeded")]
                    self.change(
                        MPI_JOBS,
                        job,
                        status={"conditions": done, "completionTime": timestamp(self.now)},
                    )
                for pod in pods_of(self, name, names.ROLE_WORKER):
                    self.end(pod)
                continue
            if job["status"].get("completionTime"):  # whoever wrote it
                for pod in pods_of(self, name, names.ROLE_WORKER):
                    self.end(pod)
                continue
            wanted = [(CONFIG_MAPS, objects.config_map(job)), (ROLES, objects.role(job))]
            wanted += [(PODS, objects.worker(job, index)) for index in range(size_of(job))]
            for resource, made in [*wanted, (PODS, objects.launcher(job))]:
                if self.get(resource, made["metadata"]["name"]) is None:
                    made.setdefault("status", {"phase": "Pending"})
                    self.put(
                        resource.path(NAMESPACE, made["metadata"]["name"]),
                        self._admitted(resource, made),
                    )

    def run(self) -> None:
        """Act as scheduler, kubelets, driver and garbage collector."""
        for pod in self.all(PODS):
            if pod["metadata"].get("deletionTimestamp"):
                self.remove(PODS.path(NAMESPACE, pod["metadata"]["name"]))
            elif not gated(pod) and pod["status"]["phase"] == "Pending" and self._may_start(pod):
                if self.now < self._started + self.slow:
                    continue
                self._started = self.now
                since = {"lastTransitionTime": timestamp(self.now)}
                state = {"running": {"startedAt": timestamp(self.now)}}
                first = {
                    "name": pod["spec"]["containers"][0]["name"],
                    "ready": True,
                    "state": state,
                }
                ready = {"type": "Ready", "status": "True", **since}
                status = {"phase": "Running", "conditions": [ready], "containerStatuses": [first]}
                self.change(PODS, pod, spec={"nodeName": "n"}, status=status)
        self._drive()
        self._collect()

    def _drive(self) -> None:
        """Act as the drivers."""
        self.ranks = {
            pod["metadata"]["uid"]
            for pod in self.all(PODS)
            if running(pod) and self._is_listed(pod)
        }
        there = {pod["metadata"]["uid"]: pod for pod in self.all(PODS) if has_elastic(pod)}
        self.drivers = {uid: one for uid, one in self.drivers.items() if uid in there}
        for uid, launcher in there.items():
            job = owner_of(launcher)
            published = self.published(job)
            if not running(launcher) or published is None:
                continue
            workers = [one for one in pods_of(self, job, names.ROLE_WORKER) if running(one)]
            pods = {one["metadata"]["name"]: one["metadata"]["uid"] for one in workers}
            if uid not in self.drivers:
                self._begun += 1
                self.drivers[uid] = ElasticSh(kind=self.quota + self._begun)
            driver = self.drivers[uid]
            driver.act(published, pods, now=self.now)
            self.ranks = self.ranks.difference(pods.values()) | {*driver.hosts.values()}

    def note_who_left(self) -> None:
        """Note since when workers with ranks of elastic.sh are not listed any more."""
        for launcher in self.all(PODS):
            driver = self.drivers.get(launcher["metadata"]["uid"])
            for host, uid in driver.hosts.items() if driver else ():
                if host in self.listed(owner_of(launcher)):
                    self._left.pop(uid, None)
                else:
                    self._left.setdefault(uid, self.now)

    def grant(self) -> None:
        """Act as Kueue: the higher priority first, then the older; less urgent quota is wanted back for more urgent."""
        found = [one for one in self.all(WORKLOADS) if not holds(one, "Finished")]
        free = self.quota - sum(asks(one) for one in found if holds(one, "QuotaReserved"))
        waiting = [one for one in found if not holds(one, "QuotaReserved")]
        for one in sorted(
            waiting,
            key=lambda one: (-one["spec"]["priority"], one["metadata"]["creationTimestamp"]),
        ):
            if asks(one) <= free:
                free -= asks(one)
                sets = [
                    {"name": pods["name"], "count": pods["count"]}
                    for pods in one["spec"]["podSets"]
                ]
                self.judge(one, QuotaReserved=True, Admitted=True, Evicted=False, assigned=sets)
                continue
            going = sum(
                asks(other)
                for other in found
                if holds(other, "Evicted") and holds(other, "QuotaReserved")
            )
            less = [
                other
                for other in found
                if holds(other, "QuotaReserved") and not holds(other, "Evicted")
            ]
            less = [other for other in less if other["spec"]["priority"] < one["spec"]["priority"]]
            if asks(one) <= free + going + sum(map(asks, less)):
                for other in sorted(less, key=lambda other: other["spec"]["priority"]):
                    if asks(one) > free + going:
                        going += asks(other)
                        self.judge(other, Evicted=True)
                return

    def judge(
        self, workload: Object, *, assigned: list[Object] | None = None, **conditions: bool
    ) -> None:
        """Set conditions of a Workload."""
        known = {one["type"]: one for one in workload.get("status", {}).get("conditions", ())}
        for kind, is_true in conditions.items():
            known[kind] = {
                "type": kind,
                "status": str(is_true),
                "reason": "Preempted",
                "message": "by Kueue",
            }
        more = {"admission": {"podSetAssignments": assigned}} if assigned else {}
        self.change(WORKLOADS, workload, status={"conditions": list(known.values()), **more})

    def _versioned(self, path: str, item: Object) -> Object:
        found = super()._versioned(path, item)
        found["metadata"].setdefault("creationTimestamp", timestamp(self.now))
        return found

    def pods_deleted(self, *, since: float) -> dict[str, list[float]]:
        """Return the times at which the controller has deleted pods, by pod."""
        found: dict[str, list[float]] = {}
        start = PODS.path(NAMESPACE) + "/"
        for at, sent in self.asked:
            if at > since and sent.method == "DELETE" and sent.path.startswith(start):
                found.setdefault(sent.name, []).append(at)
        return found

    def written(self, *, since: float) -> Counter[tuple[str, str]]:
        """Return how often the controller wrote, by method and object."""
        return Counter((sent.method, sent.path) for at, sent in self.asked if at > since)

    def _before(self, sent: Sent) -> object | None:
        """Note a write of the controller that is not refused: its queue has a back-off, which is not here."""
        if sent.method == "GET":
            return self._instead(sent)
        self._hinder(sent)
        killed = [*self._killed_by(sent)]
        answer = self._instead(sent)
        self.killed += killed
        self.asked.append((self.now, sent))
        return answer

    def _killed_by(self, sent: Sent) -> Iterator[str]:
        """Yield the ranks of elastic.sh that end by a deletion before they had their time to save."""
        name = sent.name
        pod = self.get(PODS, name) if sent.path == PODS.path(NAMESPACE, name) else None
        if sent.method != "DELETE" or pod is None:
            return
        owner = owner_of(pod)
        launcher, job = self.get(PODS, names.launcher(owner)), self.get(MPI_JOBS, owner)
        if launcher is None or job is None or job["status"].get("completionTime"):
            return
        driver = self.drivers.get(launcher["metadata"]["uid"])
        if driver is None or not running(launcher):
            return
        for one in pods_of(self, owner, names.ROLE_WORKER):
            uid = one["metadata"]["uid"]
            is_ended = name in (names.launcher(owner), one["metadata"]["name"]) and running(one)
            saved_for = self.now - self._left.get(uid, self.now)
            if is_ended and uid in driver.hosts.values() and saved_for < SAVED_FOR:
                yield f"a rank in {one['metadata']['name']} is killed {saved_for:.0f} s after it left"

    def _hinder(self, sent: Sent) -> None:
        """Refuse a write to what is frozen, and let one wait that a webhook does not answer.

        No webhook is asked about deletions.
        """
        if sent.method == "DELETE":
            return
        if sent.path.removesuffix("/status") in self.frozen:
            raise refused(422, "Invalid", "the object is immutable")
        if self.hanging is None or not sent.path.startswith(self.hanging.path(NAMESPACE)):
            return
        if not self.late:
            raise refused(504, "Timeout", "the webhook did not answer")
        if sent.method == "POST":
            self._post(sent)
        elif (path := sent.path.removesuffix("/status")) in self.objects:
            self._change(replace(sent, path=path))
        raise errors.Unreachable("timed out")

    def _instead(self, sent: Sent) -> object | None:
        """Crash the controller before a write; a pod takes its time to end, and a status is a part of its object."""
        if sent.method != "GET" and self.crash_in:
            self.crash_in -= 1
            if not self.crash_in:
                raise Crash
        if sent.method == "DELETE" and sent.path.startswith(PODS.path(NAMESPACE)):
            return self._end_pod(sent)
        if sent.path.endswith("/status"):
            path = sent.path.removesuffix("/status")
            if path not in self.objects:
                raise refused(404, "NotFound", path)
            return self._change(replace(sent, path=path))
        return None

    def _end_pod(self, sent: Sent) -> Object:
        if sent.path not in self.objects:
            raise refused(404, "NotFound", sent.path)
        options, pod = sent.body or {}, self.objects[sent.path]
        if options.get("gracePeriodSeconds") == 0 or not pod["spec"].get("nodeName"):
            return self._change(replace(sent, body=options))
        going = {
            "metadata": {
                **options.get("preconditions", {}),
                "deletionTimestamp": timestamp(self.now),
            }
        }
        return self._change(replace(sent, method="PATCH", body=going))

    def _facts(self, _namespace: str, name: str) -> Any:
        path = MPI_JOBS.path(NAMESPACE, name)
        found = [self.objects.text(path)] if path in self.objects else []
        return next(readable(capabilities.read, found), None)

    def _admitted(self, resource: Resource, made: Object) -> Object:
        patch = handlers.answer(self._request(resource, CREATE, made), self._mutating).verdict.patch
        found: Object = jsonpatch.apply_patch(made, list(patch))
        return found

    @staticmethod
    def _request(resource: Resource, operation: str, made: Object, **facts: Any) -> Request:
        kind = GroupVersionKind(group=resource.group, version=resource.version, kind=resource.kind)
        raw = msgspec.Raw(msgspec.json.encode(made))
        return Request(
            uid="u", kind=kind, operation=operation, namespace=NAMESPACE, object=raw, **facts
        )

    def _may_start(self, pod: Object) -> bool:
        """Tell whether a pod starts: a launcher waits for the workers of its hostfile."""
        job = owner_of(pod)
        config = self.get(CONFIG_MAPS, names.config_map(job))
        if pod["metadata"]["name"] != names.launcher(job) or config is None:
            return True
        hosts = [line.split()[0] for line in config["data"]["hostfile"].splitlines() if line]
        return all(running(self.get(PODS, host)) for host in hosts)

    def _is_listed(self, pod: Object) -> bool:
        job = owner_of(pod)
        return running(self.get(PODS, names.launcher(job))) and pod["metadata"][
            "name"
        ] in self.listed(job)

    def _collect(self) -> None:
        there = {
            one["metadata"]["uid"] for resource in (MPI_JOBS, PODS) for one in self.all(resource)
        }
        for resource in (PODS, CONFIG_MAPS, ROLES, self.ASKS):
            for one in self.all(resource):
                if not there & {owner["uid"] for owner in one["metadata"]["ownerReferences"]}:
                    if resource is PODS:
                        self.end(one)
                    else:
                        self.remove(resource.path(NAMESPACE, one["metadata"]["name"]))


class _Prober(Prober):
    """Looks at once, into the cluster."""

    cluster: Cluster

    def begin(self, view: JobView, action: ProbeWorkers) -> None:
        now = self.cluster.now
        for worker in action.workers:
            occasion = view.config.occasion(worker.name) if view.config else ""
            before = self.seen((view.namespace, view.name), worker.key, occasion)
            found = replace(before, asked_at=now, told=action.drained)
            if worker.ref.uid in self.cluster.ranks:
                found = replace(found, busy_seen=True, busy_at=now, idle_at=None, idle_since=None)
            else:
                found = replace(found, idle_at=now, idle_since=before.idle_since or now)
            self.jobs.setdefault((view.namespace, view.name), {})[worker.key] = occasion, found

    def end(self, job: tuple[str, str], pod: PodFacts) -> None:
        """Nothing: a pod of this cluster takes its ranks with it."""


class _DriverLooks(DriverLooks):
    """Looks at once, into the cluster."""

    cluster: Cluster

    def begin(self, view: JobView, action: LookAtDriver) -> None:
        uid, job = action.launcher.ref.uid, (view.namespace, view.name)
        before, driver = self.seen(job, uid), self.cluster.drivers.get(uid)
        if driver:
            self.jobs[job] = {uid: driver.acknowledged(before, now=self.cluster.now)}


class _Execs(Execs):
    def begin(self, view: JobView, action: LookIntoLauncher) -> None:
        """Nothing: no exec of this cluster freezes."""


class _Silent(Events):
    def emit_on(self, resource: Resource, ref: Identity, note: Note) -> None:
        """Nothing."""


class Leader:
    """A controller that has just begun to lead."""

    def __init__(self, cluster: Cluster) -> None:
        client, random, now = DirectClient(cluster.answer), Random(1), lambda: cluster.now
        metrics = Metrics(CollectorRegistry())
        self._cluster = cluster
        self._woken: set[JobKey] = set()
        self.caches = Caches(
            client,
            namespaces=(),
            enqueue=self._woken.add,
            random=random,
            read=live.READ,
            capabilities=partial(live.seeing, options=cluster.OPTIONS),
            now=now,
        )
        leader_writer = LeaderWriter(client, time_left=lambda: math.inf, metrics=metrics)
        events = _Silent(leader_writer, instance="test", now=now, random=random)
        self.prober = _Prober(client, metrics=metrics, now=now, wake=lambda *_: None)
        self.prober.cluster = cluster
        self.execs, self.drains = (
            _Execs(client, now=now, wake=lambda *_: None),
            SeenTimes(clock=now),
        )
        self.driver_looks = _DriverLooks(client, now=now, wake=lambda *_: None)
        self.driver_looks.cluster = cluster
        recheck = LiveRecheck(
            client,
            self.caches,
            probes=self.prober.seen,
            acknowledged=self.driver_looks.seen,
            timed=self.drains.timed,
            read=live.READ,
            now=now,
        )
        self.reconciler = Reconciler(
            caches=self.caches,
            queue=WorkQueue[JobKey](random=random),
            writer=Writer(
                leader_writer=leader_writer,
                seen=self.caches,
                recheck=recheck,
                execs=self.execs,
                events=events,
                metrics=metrics,
                capability_writers=live.writers(
                    client, leader_writer, self.caches, events, now, options=cluster.OPTIONS
                ),
                deletions=Deletions(clock=now),
            ),
            prober=self.prober,
            driver_looks=self.driver_looks,
            scales=ScaleTimes(metrics, clock=now),
            ledgers=Ledgers(metrics, now=now),
            drains=self.drains,
            now=now,
            refusals=Refusals(clock=now),
        )

    async def look(self) -> None:
        """Take in what the watches tell, and look at every job."""
        self._take_in()
        for key in sorted({*self._woken, *self.caches.job_keys()}):
            self._woken.discard(key)
            try:
                await self.reconciler.reconcile(key)
            except (errors.KubeError, Outdated):
                self._woken.add(key)
            self._cluster.note_who_left()

    def remembered(self) -> set[tuple[str, str]]:
        """Return the jobs of which anything is kept in memory beside the caches."""
        reconciler = self.reconciler
        kept = (
            self.prober.jobs,
            self.driver_looks.jobs,
            self.execs.jobs,
            self.drains._first,
            self.drains._lists,
            reconciler.scales._scales,
            reconciler.ledgers._ledgers,
            reconciler.writer.deletions._found,
        )
        return {(key[0], key[1]) for found in kept for key in found}

    def _take_in(self) -> None:
        caches = self.caches
        by_resource: dict[Resource, Any] = {
            MPI_JOBS: caches.jobs, PODS: caches.pods, CONFIG_MAPS: caches.configs, ROLES: caches.roles,
        }  # fmt: skip
        for served in (found.served for found in caches._by_job):
            served.known = served.resource in self._cluster.watched
            by_resource[served.resource] = served.cache
        for resource, (taken, texts) in self._cluster.served.items():
            cache = by_resource[resource]
            if taken > cache.store.position:
                listing = cache.store.begin_list()
                with suppress(StaleList):
                    cache.store.list_page(listing, str(taken), readable(cache.decode, texts))
                    cache.store.end_list(listing)


def readable(decode: Callable[[bytes], T], texts: Iterable[bytes]) -> Iterator[T]:
    """Yield the objects that can be read, as a watch does."""
    for text in texts:
        with suppress(msgspec.DecodeError):
            meta.check_cost(text)
            yield decode(text)


def pods_of(cluster: Cluster, job: str, *roles: str) -> Iterator[Object]:
    """Yield the pods of a job, by role."""
    for pod in cluster.all(PODS):
        if owner_of(pod) == job and (
            not roles or pod["metadata"]["labels"][names.LABEL_JOB_ROLE] in roles
        ):
            yield pod


def owner_of(item: Object) -> str:
    """Return the name of an object's job."""
    name: str = item["metadata"]["ownerReferences"][0]["name"]
    return name


def uid_of_owner(item: Object) -> str:
    """Return the uid of an object's job."""
    uid: str = item["metadata"]["ownerReferences"][0]["uid"]
    return uid


def pods_wanted(job: Object) -> set[str]:
    """Return the names of the pods that a job asks for."""
    name = job["metadata"]["name"]
    return {names.launcher(name), *(names.worker(name, index) for index in range(size_of(job)))}


def size_of(job: Object) -> int:
    """Return the size that a job asks for."""
    size: int = job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"]
    return size


def parked(job: Object) -> set[str]:
    """Return the names of the workers below the size of a job that are parked."""
    name, text = job["metadata"]["name"], job["metadata"]["annotations"].get(PARKED, "")
    return {
        names.worker(name, int(index))
        for index in text.split(",")
        if index and int(index) < size_of(job)
    }


def has_elastic(pod: Object) -> bool:
    """Tell whether a pod is a launcher that elastic.sh was given to."""
    volumes = pod["spec"].get("volumes", ())
    items = (item for one in volumes for item in one.get("configMap", {}).get("items") or ())
    return any(item["key"] == names.KEY_ELASTIC for item in items)


def holds_place(pod: Object) -> bool:
    """Tell whether a pod is a placeholder."""
    return {"name": names.GATE_PARKED} in pod["spec"].get("schedulingGates", ())


def gated(pod: Object) -> bool:
    """Tell whether a pod is held back."""
    return bool(pod["spec"].get("schedulingGates"))


def running(pod: Object | None) -> bool:
    """Tell whether a pod runs."""
    return (
        pod is not None
        and pod["status"]["phase"] == "Running"
        and not pod["metadata"].get("deletionTimestamp")
    )


def holds(workload: Object, condition: str) -> bool:
    """Tell whether a condition of a Workload is True."""
    found = workload.get("status", {}).get("conditions", ())
    return any(one["type"] == condition and one["status"] == "True" for one in found)


def asks(workload: Object) -> int:
    """Return how many pods a Workload asks for."""
    return sum(pods["count"] for pods in workload["spec"]["podSets"])
