"""`explain`: read the job and what it depends on, look into its pods, explain, print."""

import asyncio
import re
import textwrap
import time
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from msgspec import structs

from mpijob_elastic import capabilities, names
from mpijob_elastic.cli.connection import reached
from mpijob_elastic.cli.jobs import at_work, dependencies, exec_probes, leader, table
from mpijob_elastic.cli.jobs.report import UNREADABLE
from mpijob_elastic.cli.jobs.snapshot import Snapshot, cannot_show, fetch_job
from mpijob_elastic.cli.target import Where
from mpijob_elastic.diagnosis import logged_ranks
from mpijob_elastic.diagnosis.explanation import diagnose
from mpijob_elastic.diagnosis.facts import (
    ABOVE,
    Explanation,
    Facts,
    Finding,
    Level,
    Look,
    WorkerFinding,
    wrong,
)
from mpijob_elastic.diagnosis.logged_ranks import (
    LAST_LINES,
    LATELY,
    MOST_LINES,
    Spawned,
    Stall,
    Stopped,
)
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import PODS
from mpijob_elastic.model import phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.kubexec import Exec, HeldExecs
from mpijob_elastic.model.node import NodeSign
from mpijob_elastic.model.pod import PodFacts
from mpijob_elastic.observe import registration
from mpijob_elastic.observe.nodes import threatened
from mpijob_elastic.observe.registration import Registration
from mpijob_elastic.telemetry.terminal import say

F = TypeVar("F", bound=PodFacts)
# Column at which text is wrapped, whatever the terminal, because logs and mails show it too.
WIDTH = 110
_INDENT = "    "
# What stands in a notice for a number that changes often.
LEFT_OUT = "…"
# Workers with the same cause of which each is explained; of more, one is. That a worker trains is a
# line, and a trouble is a paragraph.
EXPLAINED_EACH, TROUBLED_EACH = 4, 2


class NoSuchWorker(errors.KubeError):
    """The job has no such worker; the message says how to name a worker."""


Looks = Mapping[str, Look]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Facts that were read beside a snapshot."""

    facts: Facts = field(default_factory=Facts)
    #: The signs that nodes of pods are about to go, by pod name.
    threats: Mapping[str, NodeSign] = field(default_factory=dict)
    #: The execs that the launcher holds although their pods are gone.
    frozen: tuple[Exec, ...] = ()


async def explain(
    where: Where, *, job: str, worker: str | None, output: str, look: bool
) -> bool | None:
    """Print why workers do not train; return True if all workers train, None if that is unknown.

    Raises `errors.KubeError`.
    """
    async with reached(where) as (client, namespace):
        snapshot = await fetch_job(client, namespace, job)
        pod = worker_name(snapshot.view, worker) if worker else ""
        found = await explained(client, snapshot, pod=pod, look=look)
    say(*(table.serialized(found, output) or text(found)))
    return found.all_train


async def explained(
    client: ApiReader,
    snapshot: Snapshot,
    *,
    pod: str = "",
    look: bool = False,
    controller: str | None = None,
) -> Explanation:
    """Return the explanation of a job, or of its worker `pod` alone.

    look: look into the pods too. controller: what is wrong with the controllers, None to look.
    """
    looking = by_exec(client, snapshot.view, pod, look=look)
    asked = await ask(client, snapshot, looking, pod=pod, look=look, controller=controller)
    return conclude(snapshot, asked, now=time.time(), pod=pod)


def conclude(snapshot: Snapshot, asked: Evidence, *, now: float, pod: str = "") -> Explanation:
    """Return the findings at time `now`, in seconds since the epoch.

    pod: the only worker to explain, "" for all workers. A job that cannot be explained gets a
    finding that says why, because one job must not end the list for all others.
    """
    if snapshot.fault:
        return _unreadable(snapshot, snapshot.fault)
    try:
        return diagnose(
            _marked(snapshot.view, asked.threats, asked.frozen),
            known(snapshot, asked.facts),
            now=now,
            worker=pod,
        )
    except Exception as error:  # noqa: BLE001 - whatever is wrong, it is wrong with this job alone
        return _unreadable(snapshot, cannot_show(error))


def _unreadable(snapshot: Snapshot, fault: str) -> Explanation:
    return Explanation(
        namespace=snapshot.job.metadata.namespace,
        name=snapshot.job.metadata.name,
        state=UNREADABLE,
        desired=None,
        training=None,
        all_train=False,
        not_known=fault,
        job=(wrong("unreadable", fault),),
        workers=(),
        notices=[],
    )


def known(snapshot: Snapshot, beside: Facts | None = None) -> Facts:
    """Return the facts that the job's own objects tell, together with the facts in `beside`."""
    return replace(
        beside or Facts(),
        state=snapshot.job.state,
        created_at=snapshot.job.facts.created_at,
        resized_at=snapshot.job.resized_at,
        pods={name: seen.state for name, seen in snapshot.pods.items()},
        launch=snapshot.job.facts.launch,
        role_readable=snapshot.role_readable,
    )


def worker_name(view: JobView, worker: str) -> str:
    """Return the name of a worker's pod, given the name or the worker's index.

    Raises NoSuchWorker if the worker is neither present nor wanted.
    """
    name = names.worker(view.name, int(worker)) if worker.isdecimal() else worker
    known = {*view.wanted_names, *(pod.name for pod in view.workers)}
    if name in known:
        return name
    pod = names.worker(view.name, 0)
    if names.worker_index(name, job=view.name) in view.skips:
        back = f"mpijob-elastic scaleout {view.name} --pod {name} -n {view.namespace}"
        raise NoSuchWorker(f"{name} is parked, and holds no resources; `{back}` brings it back")
    raise NoSuchWorker(
        f"{view.name} has {phrases.workers(len(known))}, but no worker {worker}: give a number "
        f"like 0 or a pod like {pod}"
    )


async def ask(
    client: ApiReader,
    snapshot: Snapshot,
    looking: Awaitable[tuple[Looks, tuple[Exec, ...]]],
    *,
    pod: str = "",
    look: bool = True,
    controller: str | None = None,
) -> Evidence:
    """Read the facts that an explanation needs beside the snapshot.

    looking: awaited for what exec shows, see `by_exec`. controller: what is wrong with the
    controllers, None to look.
    """
    view, now = snapshot.view, time.time()
    registered = await registration.read(client)
    home = registration.home(registered)
    (
        trouble,
        webhook,
        events,
        threats,
        (surplus, refusing),
        ((stall, spawned), stopped, (looks, frozen), new_rules),
    ) = await asyncio.gather(
        _controller_trouble(client, home, known=controller, now=now),
        _webhook(client, view, registered),
        dependencies.warnings(client, view.namespace, dict(_troubled(view, pod))),
        dependencies.threats(client, _threatened(snapshot)),
        asyncio.gather(
            dependencies.surplus(client, view), dependencies.refusing_budgets(client, view)
        ),
        asyncio.gather(
            _stall(client, view, look=look and _can_look(view)),
            _stopped(client, view),
            looking,
            dependencies.new_rules(
                client, view, {name: one.state.unscheduled for name, one in snapshot.pods.items()}
            ),
        ),
    )
    # The registration is None where this user may not read it.
    installed = registered != {} or trouble != leader.no_lease(home)
    facts = Facts(
        home=home,
        controller=trouble if installed else at_work.NOT_INSTALLED,
        installed=installed,
        webhook=webhook,
        events=events,
        surplus=surplus,
        new_rules=new_rules,
        budgets=refusing,
        looks=looks,
        stall=stall,
        spawned=spawned,
        stopped=stopped,
    )
    return Evidence(facts=facts, threats=threats, frozen=frozen)


async def _controller_trouble(
    client: ApiReader, home: str, *, known: str | None, now: float
) -> str:
    """Return the trouble with the controllers in a namespace, "" without trouble."""
    if known is not None:
        return known
    return await leader.controller_trouble(
        lambda: leader.lease(client, home), namespace=home, now=now
    )


def _marked(view: JobView, threats: Mapping[str, NodeSign], frozen: tuple[Exec, ...]) -> JobView:
    """Return the view with the threats to pods by their nodes, and the launcher's frozen execs."""

    def facts(pod: F) -> F:
        return threatened(pod, threats.get(pod.metadata.name))

    launcher = view.launcher
    if launcher:
        launcher = replace(launcher, facts=facts(launcher.facts), held=HeldExecs(frozen=frozen))
    workers = (replace(worker, facts=facts(worker.facts)) for worker in view.workers)
    marked = replace(view, launcher=launcher, workers=tuple(workers))
    return capabilities.told(marked, seen=view.capabilities)


async def _webhook(client: ApiReader, view: JobView, registered: Registration | None) -> str:
    """Return the trouble with the webhook, "" without trouble or once no launcher needs it."""
    sees = view.launcher is not None and view.launcher.facts.mounts_discovery
    is_needed = view.facts.elastic and not view.facts.finished and not sees
    return await registration.trouble(client, registered) if is_needed else ""


def _troubled(view: JobView, pod: str) -> Iterable[tuple[str, str]]:
    """Yield name and uid of each object whose Events may help.

    The objects are the job, if a pod or its status is missing, and the pods that do not run.
    """
    if view.missing or not view.facts.reported:
        yield view.name, view.ref.uid
    for worker in view.workers:
        if not worker.running and pod in {"", worker.name}:
            yield worker.name, worker.ref.uid


def _threatened(snapshot: Snapshot) -> Iterable[PodFacts]:
    """Yield the pods whose nodes matter: the launcher, and Ready workers that are not published."""
    view = snapshot.view
    if view.driver_running and view.launcher:
        yield snapshot.pods[view.launcher.ref.name].facts
    for worker in view.workers:
        if worker.ready and worker.index in view.wanted and worker.name not in view.host_of:
            yield snapshot.pods[worker.name].facts


async def by_exec(
    client: ApiReader, view: JobView, pod: str = "", *, look: bool = True
) -> tuple[Looks, tuple[Exec, ...]]:
    """Look by exec; return the processes in the workers, and the launcher's frozen execs.

    Both are empty unless `look`.
    """
    if not (look and _can_look(view)):
        return {}, ()
    running = [worker for worker in view.workers if worker.running and not worker.facts.deleting]
    # The worker in question comes first. The other workers matter too: the silence of one worker
    # means more while the others train.
    running.sort(key=lambda worker: (worker.name != pod, worker.index))
    return await asyncio.gather(
        exec_probes.into_workers(client, view, running),
        exec_probes.look_for_frozen(view, lambda: exec_probes.into_launcher(client, view)),
    )


def _can_look(view: JobView) -> bool:
    """Tell whether ranks may run in a job that our controller handles."""
    return view.driver_running and not (view.facts.finished or view.facts.deleting or view.foreign)


async def _stall(
    client: ApiReader, view: JobView, *, look: bool
) -> tuple[Stall | None, Spawned | None]:
    """Return the stall that the launcher's last lines report, and the processes that hold ranks.

    The stall is None if the lines report no stall or cannot be read. The processes are None without
    a stall, without `look`, and if exec fails.
    """
    launcher = view.launcher
    if launcher is None or not view.driver_running:
        return None, None
    query = {
        "container": launcher.container,
        "sinceSeconds": str(LATELY),
        "tailLines": str(MOST_LINES),
    }
    with suppress(errors.KubeError):
        log = await client.get(PODS.path(view.namespace, launcher.ref.name, "log"), query=query)
        stall = logged_ranks.stall(log.split(b"\n"))
        if stall and look:
            with suppress(errors.KubeError):
                return stall, await exec_probes.ranks(client, view.namespace, launcher)
        return stall, None
    return None, None


async def _stopped(client: ApiReader, view: JobView) -> Stopped | None:
    """Return the words with which horovodrun stopped while its launcher runs on.

    None without such words, and if the log cannot be read.
    """
    launcher = view.launcher
    if launcher is None or not view.driver_running:
        return None
    query = {
        "container": launcher.container,
        "tailLines": str(LAST_LINES),
        "timestamps": "true",
    }
    with suppress(errors.KubeError):
        log = await client.get(PODS.path(view.namespace, launcher.ref.name, "log"), query=query)
        return logged_ranks.stopped(log.split(b"\n"))
    return None


def text(report: Explanation) -> list[str]:
    """Return the lines of a page with a paragraph for each finding.

    What the first sentence says of all workers is not said again of each.
    """
    head = headline(report)
    lines = _wrapped(head)
    for finding in report.job:
        lines += ["", *_paragraph(finding)]
    for alike in _alike(_referring(report, head)):
        is_fine = alike[0].cause.level is Level.FINE
        if len(alike) <= (EXPLAINED_EACH if is_fine else TROUBLED_EACH):
            for worker in alike:
                lines += ["", *_paragraph(worker.cause, host=_renamed(worker))]
            continue
        first, *others = alike
        more = phrases.listed(worker.name for worker in others)
        lines += ["", *_paragraph(first.cause, host=_renamed(first))]
        lines += _wrapped(f"{_INDENT}The same of {len(others)} more workers: {more}")
    said = " ".join(
        finding.says for finding in (*report.job, *(worker.cause for worker in report.workers))
    )
    notices = [notice for notice in report.notices if not _is_in(notice, said)]
    if notices:
        lines += ["", "Notices of the controller:", *(f"{_INDENT}{notice}" for notice in notices)]
    return lines


def _is_in(notice: str, said: str) -> bool:
    """Tell whether a notice is in these words, in which numbers may stand for its "…"."""
    parts = notice.partition(": ")[2].split(LEFT_OUT)
    return re.search(".*?".join(map(re.escape, parts)), said, re.DOTALL) is not None


def _referring(report: Explanation, head: str) -> Sequence[WorkerFinding]:
    """Return the workers, of which each refers to a reason that stands above it.

    `head` has said it of all, or a finding on the job what a pod at a gate waits for.
    """
    above = " ".join(finding.says for finding in report.job)
    workers = [_waiting_above(worker, above) for worker in report.workers]
    reason = report.not_known
    if not reason or reason not in head:
        return workers
    return [_said_above(worker, reason) for worker in workers]


def _waiting_above(worker: WorkerFinding, above: str) -> WorkerFinding:
    """Return a worker's finding without the words on its wait that `above` has said."""
    _, _, why = worker.cause.says.partition(": ")
    _, _, words = why.partition(": ")
    if worker.cause.cause != "gated" or not words or words not in above:
        return worker
    return _said_above(worker, words)


def _said_above(worker: WorkerFinding, reason: str) -> WorkerFinding:
    """Return a worker's finding with a reference in the place of a reason that stands above it."""
    says = worker.cause.says.replace(f": {reason}", ABOVE)
    return structs.replace(worker, cause=structs.replace(worker.cause, says=says))


def _alike(workers: Sequence[WorkerFinding]) -> list[list[WorkerFinding]]:
    """Return the workers in groups of the same cause, which differ only in the worker's name."""
    groups: dict[tuple[str, ...], list[WorkerFinding]] = {}
    for worker in workers:
        cause = worker.cause
        # A finding on the job, printed above, says it of all; a single worker is always shown.
        if cause.cause == "job-waits" and len(workers) > 1:
            continue
        about = (text.replace(worker.name, "") for text in (cause.says, cause.next_step))
        key = (cause.cause, cause.level, _renamed(worker), *about)
        groups.setdefault(key, []).append(worker)
    return list(groups.values())


def _renamed(worker: WorkerFinding) -> str:
    """Return the worker's host name if it differs from the pod's, else ""."""
    return "" if worker.host == worker.name else worker.host


def headline(report: Explanation) -> str:
    """Return the job's state and how many of its workers train, in a sentence."""
    job = f"{report.namespace}/{report.name}: {report.state}"
    levels = Counter(worker.cause.level for worker in report.workers if worker.wanted)
    if (
        not levels or report.desired is None or levels.total() < report.desired
    ):  # asked about one of them
        return job
    training, unseen = levels[Level.FINE], levels[Level.UNKNOWN]
    judged = levels.total() - unseen
    if unseen and judged and not training:
        return (
            f"{job}, none of the {judged} workers that can be judged train; whether the other "
            f"{unseen} of {report.desired} do is not known: {report.not_known}"
        )
    said = "workers train" if training or not unseen else "listed"
    rest = (
        f"; whether {'the others' if training else 'they'} train is not known: {report.not_known}"
        if unseen
        else ""
    )
    return f"{job}, {training or unseen} of {report.desired} {said}{rest}"


def _paragraph(finding: Finding, *, host: str = "") -> Iterator[str]:
    yield from _wrapped(finding.says)
    if host:
        yield f"{_INDENT}host name: {host}"
    if finding.level is not Level.FINE:
        yield f"{_INDENT}cause: {finding.cause}"
    if finding.next_step:
        yield f"{_INDENT}next: {finding.next_step}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False
    )
