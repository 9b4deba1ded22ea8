"""Hostile objects: reviews and watch lines with anything in the place of any value.

A review must get an answer, without a fault of ours, and a patch only where it is due. A watch line
or a page must cost at most its own object: it is read or counted as unreadable, its neighbours
stay, and the plan for its job is made. The commands and the page show every other job as before
(`hostile_shown`). What is kept of an object or an output is bounded. Each case
may take 5 ms of the event loop's thread for each 100 KiB, 10,000 values or 2,000 execs, measured as
CPU time of that thread, best of three.
"""

import asyncio
import base64
import copy
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, cast

import jsonpatch

from lab.operator import objects
from mpijob_elastic import capabilities, names
from mpijob_elastic.act import launcher_execs
from mpijob_elastic.admission import review as reviews
from mpijob_elastic.admission.interface import ReviewContext
from mpijob_elastic.admission.review import Malformed
from mpijob_elastic.capabilities import live
from mpijob_elastic.capabilities.disruption.hook import Evictions
from mpijob_elastic.capabilities.et_operator.facts import SCALE_INS, SCALE_OUTS, TRAINING_JOBS
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.decide import decide
from mpijob_elastic.kube import envelopes
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.watch import WatchCache
from mpijob_elastic.model import bounds
from mpijob_elastic.model.bounds import BYTES_AN_EXEC, MOST_EXECS
from mpijob_elastic.model.job import script_fingerprint
from mpijob_elastic.model.memory import Memory, render_memory
from mpijob_elastic.observe import views
from mpijob_elastic.observe.caches import Caches
from mpijob_elastic.observe.watching import JobKey
from tests.campaign import hostile_texts as texts
from tests.campaign.hostile_shown import Shown
from tests.campaign.part import Options, Outcome, say
from tests.doubles.direct import DirectClient, Sent
from tests.json_places import places
from tests.product.webhook.objects import ELASTIC, Object, mpi_job, review
from webhook.rules import handlers

# A run is a batch of so many cases; all runs together make more than a million.
BATCH = 10_000
RUNS = 105
# One case in so many fills an object.
LARGE = 150
SIZES = (100 * 2**10, 400 * 2**10, 1_500 * 2**10)
# CPU milliseconds for each 100 KiB of a case or each 10,000 values in it, or less.
BUDGET = 5.0
A_PART, VALUES_A_PART = 100 * 2**10, 10_000
# Two jobs are put together twice and shown in five ways, which takes as long as so many parts.
SHOWN_PARTS = 12.0
# Execs of a launcher that may take as long: a job of 1,000 workers has as many.
EXECS_A_PART = 2_000
# What a patch may touch: of launchers (files, a folder, variables), of workers (main process and
# grace), of placeholders (gates and resources), of ConfigMaps, of a status.
PATCHED = re.compile(
    r"add /spec/volumes/\d+(/configMap/items/\d+)?|add /spec/containers/\d+/(volumeMounts|env)(/\d+)?"
    r"|add /spec(/initContainers/\d+|/containers/\d+)?/securityContext.*"
    r"|replace /spec/containers/\d+/(command|args)|add /spec/terminationGracePeriodSeconds"
    r"|add /spec/schedulingGates|(add|replace) /spec/(initContainers|containers)/\d+/resources"
    r"|add /data/(discover_hosts\.sh|elastic\.sh|hostfile\.hydra)|replace /data/hostfile|add /status/replicaStatuses/Worker/selector"
)
OURS = {"items", "securityContext", "command", "args", "terminationGracePeriodSeconds"}
OURS |= {"discover_hosts.sh", "hostfile", "selector", "schedulingGates", "resources"}
OURS |= {"volumes", "volumeMounts", "env", "elastic.sh", "hostfile.hydra"}


def run(options: Options) -> Outcome:
    """Run batches of cases."""
    logging.disable(logging.CRITICAL)
    try:
        return asyncio.run(_run(options))
    finally:
        logging.disable(logging.NOTSET)


@dataclass
class Tally:
    """The results so far; slowest: CPU milliseconds, and bytes, of the slowest case."""

    runs: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    worst_rate: float = 0.0

    def blame(self, what: str, text: bytes) -> None:
        shown = text if len(text) < 3000 else text[:1500] + b" ... " + text[-1500:]
        self.violations.append(f"{what} ({len(text)} bytes): {shown.decode(errors='replace')}")


async def _run(options: Options) -> Outcome:
    tally, shown = Tally(), Shown()
    for number in options.runs(RUNS):
        random = Random(f"{options.seed} {number}")
        stage, reviewed = Stage(tally), list(_reviews(random))
        PODS.sent.clear()
        tally.runs += BATCH
        for _ in range(BATCH):
            kind = random.random()
            if kind < 0.45:
                await _review(random, reviewed, tally)
            elif kind < 0.5:
                await _show(random, shown, tally)
            elif kind < 0.52:
                await _output(random, tally)
            else:
                await stage.line(random)
        if number % 10 == 9:
            say(f"hostile-objects: {tally.runs:,} inputs, {len(tally.violations)} violations")
        if len(tally.violations) > 20:
            break
    slowest, size = tally.slowest
    found = ", ".join(f"{count:,} {what}" for what, count in sorted(tally.cases.items()))
    cost = f"slowest {slowest:.1f} ms of CPU ({size / 1024:,.0f} KiB), most {tally.worst_rate:.1f} ms a part"
    return Outcome(runs=tally.runs, violations=tuple(tally.violations), numbers=f"{found}; {cost}")


async def _timed(
    case: Callable[[], Awaitable[None]], sent: bytes, tally: Tally, more: float = 0.0
) -> bool:
    """Run a case; return False if it was too slow each of three times."""
    size, values = len(sent), sum(map(sent.count, (b",", b"{", b"[")))
    parts = max(1.0, size / A_PART, values / VALUES_A_PART, more)
    for _ in range(3):
        before = time.thread_time()
        await case()
        spent = 1000 * (time.thread_time() - before)
        rate = spent / parts
        if rate <= BUDGET:
            tally.slowest = max(tally.slowest, (spent, size))
            tally.worst_rate = max(tally.worst_rate, rate)
            return True
    return False


Spots = list[tuple[bytes, bytes]]


def _spoiled(random: Random, found: Spots) -> bytes:
    before, after = random.choice(found)
    large = random.randrange(LARGE) == 0
    return (
        before
        + (texts.filling(random, random.choice(SIZES)) if large else texts.fragment(random))
        + after
    )


# ---- Reviews

JOB = mpi_job(
    replicas=3,
    command=ELASTIC,
    annotations={"mpijob-elastic/min-replicas": "2"},
    conditions=["Created"],
)
COUNTED = {
    **JOB,
    "status": {**JOB["status"], "replicaStatuses": {"Launcher": {}, "Worker": {"active": 3}}},
}
SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": JOB["metadata"],
    "spec": {"replicas": 3},
}
EVICTION = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "train-worker-0", "namespace": "default"},
    "deleteOptions": {"gracePeriodSeconds": 5, "dryRun": [], "preconditions": {"uid": "w"}},
}
# A job with a parked worker, its size as the subresource scale has it, and the worker's placeholder.
PARKS = mpi_job(
    name="parks",
    replicas=3,
    command=ELASTIC,
    annotations={names.PARKED: "2"},
    conditions=["Created"],
)
PARKS_SCALE = {**SCALE, "metadata": PARKS["metadata"]}
PLACEHOLDER = objects.worker(PARKS, 2)
PLACEHOLDER["spec"]["schedulingGates"] = [{"name": names.GATE_PARKED}]
JOBS = {"train": JOB, "parks": PARKS}
CONTEXT = ReviewContext(
    job=lambda _namespace, name: capabilities.read(texts.compact(JOBS.get(name, JOB))),
    now=lambda: 1e9,
)
TABLES = (handlers.mutating(CONTEXT), handlers.validating(CONTEXT))


def _reviews(random: Random) -> Iterator[Spots]:
    """Yield the spots of each kind of review, as it is sent and with a value spoiled already."""
    grown = mpi_job(
        replicas=5, slots=2, command=["sh", "-c", "exec horovodrun -np 2 x"], conditions=["Created"]
    )
    documents = [
        review(objects.launcher(JOB)),
        review(objects.worker(JOB, 0)),
        review(objects.config_map(JOB)),
        review(COUNTED, old=JOB, subResource="status"),
        review(JOB),
        review(grown, old=JOB, dryRun=True),
        review({**SCALE, "spec": {"replicas": 5}}, old=SCALE, subResource="scale", name="train"),
        review(EVICTION, subResource="eviction"),
        review(PARKS, old=JOB),
        review(objects.worker(PARKS, 2)),
        review(
            {**PARKS_SCALE, "spec": {"replicas": 2}},
            old=PARKS_SCALE,
            subResource="scale",
            name="parks",
        ),
    ]
    for document in copy.deepcopy(documents):
        yield texts.spots(document)
        *parents, last = random.choice(list(places(document["request"]["object"])))
        part: Any = document["request"]["object"]
        for step in parents:
            part = part[step]
        part[last] = random.choice(texts.VALUES)
        yield texts.spots(document)


async def _review(random: Random, reviewed: list[Spots], tally: Tally) -> None:
    sent, table = _spoiled(random, random.choice(reviewed)), random.choice(TABLES)
    answered: list[bytes] = []

    async def case() -> None:
        answered.clear()
        try:
            request = reviews.parse(sent)
        except Malformed:
            return
        is_eviction = request.sub_resource == "eviction"
        if is_eviction:
            answer = await EVICTIONS.answer(request, within=1.0)
        else:
            answer = handlers.answer(request, table)
        answered.append(reviews.answer(request, answer.verdict))

    try:
        fast = await _timed(case, sent, tally)
    except Exception as error:  # noqa: BLE001 - what is looked for
        tally.blame(f"a review failed with {error!r}", sent)
        return
    if not fast:
        tally.blame("a review is slow", sent)
    tally.cases["reviews" if answered else "malformed reviews"] += 1
    if answered and b'"patch"' in answered[0]:
        tally.cases["patches"] += 1
        problem = _foreign(sent, answered[0], check_whole=random.randrange(20) == 0)
        if problem:
            tally.blame(problem, sent)


async def _pod(sent: Sent) -> bytes:
    """Find one worker and one launcher, and drop what is written."""
    return LAUNCHER if sent.path.endswith("-launcher") else WORKER


def _foreign(sent: bytes, answered: bytes, *, check_whole: bool) -> str:
    """Return what is wrong with a patch, "" if nothing is."""
    operations = json.loads(base64.b64decode(json.loads(answered)["response"]["patch"]))
    for operation in operations:
        if not PATCHED.fullmatch(f"{operation['op']} {operation['path']}"):
            return f"a foreign patch: {operation}"
    if check_whole and len(sent) < 50_000:
        obj = json.loads(sent)["request"]["object"]
        owners = obj["metadata"].get("ownerReferences", ())
        is_job = obj.get("kind") == "MPIJob" or "replicaStatuses" in obj.get("status", {})
        if not is_job and not any(
            owner["kind"] == "MPIJob" and owner["controller"] for owner in owners
        ):
            return f"a patch of what no MPIJob controls: {operations}"
        try:
            changed = jsonpatch.make_patch(obj, jsonpatch.apply_patch(obj, operations)).patch
        except RecursionError:  # of the library, which the product does not use so
            return ""
        if not all(OURS & set(change["path"].split("/")) for change in changed):
            return f"a patch changes more than it says: {changed}"
    return ""


# ---- What the commands and the page show


async def _show(random: Random, shown: Shown, tally: Tally) -> None:
    number, sent = shown.spoiled(random, _spoiled)
    problems: list[str] = []

    async def case() -> None:
        problems.append(shown.show(number, sent))

    try:
        fast = await _timed(case, sent, tally, SHOWN_PARTS)
    except Exception as error:  # noqa: BLE001 - what is looked for
        tally.blame(f"an object cannot be shown: {error!r}", sent)
        return
    tally.cases["shown"] += 1
    if not fast:
        tally.blame("an object is slow to show", sent)
    if any(problems):
        tally.blame(problems[0], sent)


# ---- What a launcher prints


async def _output(random: Random, tally: Tally) -> None:
    text = texts.output(random, BYTES_AN_EXEC * MOST_EXECS)
    found: list[int] = []

    async def case() -> None:
        found.append(len(launcher_execs.parse(text, started_at=0.0) or ()))

    try:
        fast = await _timed(case, text.encode(), tally, text.count("\n") / EXECS_A_PART)
    except Exception as error:  # noqa: BLE001 - what is looked for
        tally.blame(f"an output failed with {error!r}", text.encode())
        return
    tally.cases["outputs"] += 1
    if not fast:
        tally.blame("an output is slow", text.encode())
    if max(found) > MOST_EXECS:
        tally.blame("too many execs are kept", text.encode())


# ---- Watch lines and pages

WORKLOAD = {
    "metadata": {
        "name": "train-launcher",
        "ownerReferences": objects.launcher(JOB)["metadata"]["ownerReferences"],
    },
    "spec": {
        "queueName": "team",
        "priority": 1,
        "active": True,
        "podSets": [{"name": "workers", "count": 3}],
    },
    "status": {
        "conditions": [{"type": "QuotaReserved", "status": "False", "message": "waits"}],
        "admission": {"podSetAssignments": [{"name": "workers", "flavors": {"cpu": "spot"}}]},
        "clusterName": "here",
    },
}
# A request of et-operator, as its user makes it and while it is carried out.
SCALE_IN = {
    "metadata": {"name": "less"},
    "spec": {
        "selector": {"name": "train"},
        "toDelete": {"count": 1, "podNames": ["train-worker-2"]},
        "timeout": 60,
    },
    "status": {
        "phase": "Scaling",
        "toDeletePods": ["train-worker-2"],
        "conditions": [{"type": "Scaling", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    },
}
SCALE_OUT = {
    "metadata": {"name": "more"},
    "spec": {"selector": {"name": "parks"}, "toAdd": {"count": 1}, "timeout": 60},
}
KEEPS = frozenset(
    {
        (),
        ("metadata",),
        *(("metadata", key) for key in ("name", "namespace", "uid", "resourceVersion", "selfLink")),
    }
)
VERSION = b'"@VERSION"'
NEIGHBOUR = "neighbour"


class Stage:
    """The caches of a controller, into which lines are fed as if the API server had sent them."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        client = cast("ApiReader", None)  # nothing is asked
        self._caches = caches = Caches(
            client,
            namespaces=(),
            enqueue=lambda _: None,
            random=Random(1),
            read=live.READ,
            capabilities=partial(live.seeing, options=live.OPTIONS),
        )
        self._version = 10
        new = copy.deepcopy(JOB)
        new["spec"] |= {"mainContainer": "launcher", "cleanPodPolicy": "Running"}
        for role in new["spec"]["mpiReplicaSpecs"].values():
            role["template"]["metadata"] = {"labels": {"team": "a"}}
        job = {**new, "status": {**COUNTED["status"], "startTime": "2026-01-01T00:00:00Z"}}
        pods = [objects.launcher(JOB), *(objects.worker(JOB, index) for index in range(3))]
        served = {}
        for one in caches._by_job:
            served[one.served.resource] = one.served.cache
            # All is served but et-operator's own jobs, so the requests are ours.
            one.served.known = one.served.resource != TRAINING_JOBS
        self._kinds: list[tuple[WatchCache[Any], Spots]] = []
        kinds: list[tuple[Any, Object]] = [
            *((caches.jobs, one) for one in (job, new)),
            *((caches.pods, _running(one)) for one in pods),
            (caches.configs, objects.config_map(JOB)),
            (caches.configs, _remembering(objects.config_map(JOB))),
            (caches.roles, objects.role(JOB)),
            (served[WORKLOADS], WORKLOAD),
            (served[SCALE_INS], SCALE_IN),
            (served[SCALE_OUTS], SCALE_OUT),
            (caches.jobs, PARKS),
            (caches.pods, PLACEHOLDER),
        ]
        for cache, document in kinds:
            whole = _identified(document)
            self._kinds.append((cache, texts.spots(whole, KEEPS)))
            for known in (whole, _identified({"metadata": {"name": NEIGHBOUR}})):
                cache.store.put(cache.decode(texts.compact(known).replace(VERSION, b'"1"')))

    async def line(self, random: Random) -> None:
        """Feed a line, or a page, with a spoiled object."""
        cache, found = random.choice(self._kinds)
        spoiled = _spoiled(random, found)
        paged = random.randrange(20) == 0
        feed = self._page if paged else self._line
        try:
            fast = await _timed(lambda: feed(cache, spoiled), spoiled, self._tally)
            self._plan()
        except Exception as error:  # noqa: BLE001 - what is looked for
            self._tally.blame(f"a {'page' if paged else 'line'} failed with {error!r}", spoiled)
            return
        self._tally.cases["pages" if paged else "lines"] += 1
        if not fast:
            self._tally.blame("a line is slow", spoiled)
        if any(_kept(one) > self._most(cache, spoiled) for one in cache.store.values()):
            self._tally.blame("too much is kept", spoiled)
        if cache.store.get("default", NEIGHBOUR) is None:
            self._tally.blame("a neighbour is lost", spoiled)
        if cache.unreadable:
            self._tally.cases["unreadable"] += 1
            cache._unreadable.clear()

    def _most(self, cache: WatchCache[Any], spoiled: bytes) -> int:
        """Return the bytes that may be kept of an object."""
        if cache in (self._caches.configs, self._caches.roles):
            return bounds.most_of_config(spoiled.count(b"-worker-"))
        return bounds.LARGEST_POD if cache is self._caches.pods else bounds.LARGEST_FACTS

    async def _line(self, cache: WatchCache[Any], spoiled: bytes) -> None:
        self._version += 1
        text = (
            b'{"type":"MODIFIED","object":'
            + spoiled.replace(VERSION, b'"%d"' % self._version)
            + b"}"
        )
        await cache._take(text)
        assert cache.store.position == self._version

    async def _page(self, cache: WatchCache[Any], spoiled: bytes) -> None:
        bad = spoiled.replace(VERSION, b'"5"')
        good = b'{"metadata":{"name":"b","namespace":"default","resourceVersion":"5"}}'
        page = await envelopes.read_page(
            b'{"items":[%s,%s,%s],"metadata":{"resourceVersion":"5"}}' % (good, bad, good)
        )
        items = [bytes(item) for item in page.items or ()]
        assert items == [good, bad, good]
        for item in items:
            await cache._read(item)

    def _plan(self) -> None:
        for name in JOBS:
            view = self._caches.view(JobKey("default", name), probes=views.never_asked)
            if view is not None:
                decide(view, now=1.8e9)


def _kept(facts: Any) -> int:
    kept = getattr(facts, "kept", facts)
    return len(kept) if isinstance(kept, bytes) else bounds.size(kept)


def _identified(document: Object) -> Object:
    metadata = {
        "labels": {},
        "annotations": {},
        "uid": "u",
        **document["metadata"],
        "namespace": "default",
    }
    return {
        **copy.deepcopy(document),
        "metadata": {**metadata, "resourceVersion": VERSION[1:-1].decode()},
    }


def _remembering(config: Object) -> Object:
    """A ConfigMap as we write it: the list, and what is remembered with it."""
    script = names.discover_hosts(["train-worker-0"], slots=1)
    memory = render_memory(Memory(added_at=1.7e9, script=script_fingerprint(script)))
    metadata = {**config["metadata"], "annotations": {names.MEMORY: memory}}
    return {
        **config,
        "metadata": metadata,
        "data": {**config["data"], names.KEY_DISCOVER_HOSTS: script},
    }


def _running(pod: Object) -> Object:
    at = "2026-01-01T00:00:00Z"
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        "containerStatuses": [
            {"name": "main", "state": {"running": {"startedAt": at}}, "lastState": {}}
        ],
    }
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-1"}, "status": status}


WORKER, LAUNCHER = (
    texts.compact(_running(pod)) for pod in (objects.worker(JOB, 0), objects.launcher(JOB))
)
PODS = DirectClient(_pod)
EVICTIONS = Evictions(PODS, context=CONTEXT, secret_path=lambda: "")
