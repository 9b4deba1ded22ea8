"""Print reports as text: columns without borders, like kubectl, for use in pipes."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.jobs.progress_report import GoodputReport, ProgressReport
from mpijob_elastic.cli.jobs.report import (
    Draining,
    JobReport,
    LauncherReport,
    QueueReport,
    WorkerReport,
)
from mpijob_elastic.kube import kubectl_yaml
from mpijob_elastic.model import devices, phrases
from mpijob_elastic.model.goodput import NAMES

NONE = "-"
# A page of a job with more workers shows a few of those that are alike, and counts the others.
FOLDED_ABOVE = 24
SHOWN_ALIKE = 3
_GAP = "   "
_NO_ROLE = (
    "EXEC is not known: you lack the right to read the launcher's Role "
    "(list, watch roles.rbac.authorization.k8s.io)"
)


def columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table with aligned columns."""
    return aligned([header, *rows])[1]


def aligned(
    rows: Sequence[Sequence[str]], least: Sequence[int] = ()
) -> tuple[list[int], list[str]]:
    """Return the widths of the columns, at least `least`, and the lines of aligned rows."""
    least = least or [0] * len(rows[0])
    longest = (max(map(len, column)) for column in zip(*rows, strict=True))
    widths = list(map(max, longest, least))
    lines = [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return widths, lines


def jobs(
    reports: Iterable[JobReport],
    *,
    now: datetime,
    contexts: bool = False,
    namespaces: bool,
    wide: bool,
) -> list[str]:
    """Return a table with a line for each job; `reports` must not be empty."""
    rows = [
        cells(report, now=now, contexts=contexts, namespaces=namespaces, wide=wide)
        for report in reports
    ]
    return columns([*rows[0]], (list(row.values()) for row in rows))


def cells(
    report: JobReport,
    *,
    now: datetime,
    contexts: bool = False,
    namespaces: bool,
    wide: bool,
) -> dict[str, str]:
    """Return the text of each column for a job, NONE for an empty cell."""
    row = {"CONTEXT": report.context} if contexts else {}
    row |= {"NAMESPACE": report.namespace} if namespaces else {}
    row |= {
        "NAME": report.name,
        "STATE": report.state,
        "PHASE": report.phase,
        "DESIRED": _desired(report),
        "READY": str(report.ready),
        "PUBLISHED": str(report.published),
        "DRAINING": str(report.draining),
        "GPUS": devices.in_words(report.gpus, report.slices),
        "ELASTIC": "" if report.foreign else _elastic(report),
        "AGE": age(report.created, now=now),
        "LAST-SCALE": _last_scale(report, now),
        "PROGRESS": _steps(report.progress, between="/") if report.progress else "",
        "ETA": _time_left(report.progress) if report.progress else "",
    }
    if wide:
        row |= _more(report, now)
    return {name: cell or NONE for name, cell in row.items()}


def details(report: JobReport, *, now: datetime, whole: bool = False) -> list[str]:
    """Return the lines of a page on one job; `whole`: with each worker of a large job, too."""
    wait = max(0.0, (report.next_look - now).total_seconds()) if report.next_look else None
    again = [] if wait is None else [f"check again in {phrases.duration(wait)}"]
    header = [
        *_WORKER_COLUMNS,
        *(["QUOTA"] if any(worker.quota for worker in report.workers) else []),
    ]
    shown, more = report.workers, list[str]()
    hosts = _indented([*report.hosts, *filter(None, [report.reminder])])
    if len(report.workers) > FOLDED_ABOVE and not whole:
        shown, more = _folded(report)
    if len(hosts) > FOLDED_ABOVE and not whole:
        hosts = [*hosts[:SHOWN_ALIKE], f"  and {len(hosts) - SHOWN_ALIKE} more lines"]
    return [
        *_facts(report, now),
        "",
        *columns(header, (_worker(report, worker, now)[: len(header)] for worker in shown)),
        *more,
        *(["", _NO_ROLE] if report.exec_names is None and report.workers else []),
        "",
        f"{names.KEY_DISCOVER_HOSTS} prints:",
        *hosts,
        *(["", "Notices:", *_indented(report.notices)] if report.notices else []),
        "",
        "The controller does next:",
        *_indented([*report.next, *again]),
    ]


def serialized(value: object, output: str) -> list[str]:
    """Return the lines of a value as JSON or YAML, no lines for any other `output`."""
    if output == "json":
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    elif output == "yaml":
        # In ASCII: `say` escapes what does not print, and YAML knows escapes only in double quotes.
        text = kubectl_yaml.dump(msgspec.to_builtins(value)).rstrip()
    else:
        return []
    return text.split("\n")


def age(since: datetime, *, now: datetime) -> str:
    """Return the time since `since` in one unit, as kubectl writes it: `90s`, `5m`, `3h`, `2d`."""
    return span((now - since).total_seconds())


def span(long: float) -> str:
    """Return so many seconds in one unit, as `age` does."""
    seconds = max(0, int(long))
    for unit, size, most in (("s", 1, 120), ("m", 60, 120), ("h", 3600, 48)):
        if seconds < size * most:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"


def _more(report: JobReport, now: datetime) -> dict[str, str]:
    return {
        "DURATION": age(report.created, now=report.ended or now),
        "GPUS-HELD": _held(report),
        "QUEUE": report.queue.name if report.queue else "",
        "PRIORITY": report.priority,
        "MIN": str(report.min_replicas or ""),
        "MAX": str(report.max_replicas or ""),
        "SLOTS": str(report.slots),
        "DRAIN-TIMEOUT": phrases.duration(report.drain_timeout),
        "LAUNCHER": report.launcher.phase if report.launcher else "",
        "NODE": report.launcher.node if report.launcher else "",
        "NOTICE": report.notices[0].partition(":")[0] if report.notices else "",
    }


def _elastic(report: JobReport) -> str:
    """Return whether the size can change: now, only after a restart of the job, or not at all."""
    return "restart" if report.needs_restart else _yes(report.elastic)


def _last_scale(report: JobReport, now: datetime) -> str:
    scale = report.last_scale
    return f"{scale.before}→{scale.after} {age(scale.at, now=now)} ago" if scale else NONE


def _facts(report: JobReport, now: datetime) -> list[str]:
    counts = f"ready {report.ready}, published {report.published}, draining {report.draining}"
    facts = {
        "Job": f"{report.namespace}/{report.name}",
        "State": f"{report.state}, {age(report.created, now=now)} old",
        "Elastic": f"no: {report.foreign}" if report.foreign else _elastic(report),
        "Workers": f"desired {_desired(report)}, {counts}{_bounds(report)}",
        "Slots": f"{report.slots} per worker",
        "Drain timeout": phrases.duration(report.drain_timeout),
        "Last scale": _last_scale(report, now),
        **_trained(report, now),
        "Launcher": _launcher(report.launcher, now) if report.launcher else "not created yet",
        "Phase": report.phase,
        "GPUs": _gpus(report),
        "Priority": report.priority,
        "Created": _moment(report.created),
        "Ended": f"{_moment(report.ended)}, after {age(report.created, now=report.ended)}"
        if report.ended
        else "",
        "Queue": _queue(report.queue) if report.queue else "",
    }
    return [f"{name + ':':<16}{fact}" for name, fact in facts.items() if fact]


def _trained(report: JobReport, now: datetime) -> dict[str, str]:
    """Return how far the job is, and where its GPU-seconds went, as far as it is known."""
    facts = dict[str, str]()
    if report.progress:
        facts["Progress"] = _progress(report.progress, now)
    if report.goodput:
        unit = report.goodput.unit
        facts[unit[:1].upper() + unit[1:]] = _goodput(report.goodput)
    return facts


def _progress(progress: ProgressReport, now: datetime) -> str:
    left = _time_left(progress)
    parts = [
        f"step {_steps(progress, between=' of ')}",
        _figure(progress.steps_per_second, "steps/s"),
        _figure(progress.samples_per_second, "samples/s"),
        f"{left} left" if left else "",
        f"{age(progress.at, now=now)} ago",
    ]
    return ", ".join(filter(None, parts))


def _steps(progress: ProgressReport, *, between: str) -> str:
    if progress.total is None:
        return str(progress.step)
    return f"{progress.step}{between}{progress.total} ({progress.percent}%)"


def _time_left(progress: ProgressReport) -> str:
    """Return the time to the last step; "" if it is unknown."""
    return "" if progress.seconds_left is None else span(progress.seconds_left)


def _figure(number: float | None, unit: str) -> str:
    """Return a number with three digits or all before the point; "" if it is unknown."""
    if number is None:
        return ""
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def _goodput(goodput: GoodputReport) -> str:
    """Return the seconds by bucket. A part without a line of progress has no percentage."""
    most = goodput.kept + goodput.unknown
    kept = f"kept at most {most:.0f}"
    if not goodput.unknown:
        share = f" ({100 * most / goodput.allocated:.0f}%)" if goodput.allocated else ""
        kept = f"{most:.0f} kept{share}"
    rest = {name: getattr(goodput, name) for name in NAMES if name != "kept"}
    lost = [f"{seconds:.0f} {name}" for name, seconds in rest.items() if seconds >= 0.5]
    return "; ".join(filter(None, [f"{goodput.allocated:.0f} allocated, {kept}", ", ".join(lost)]))


def _gpus(report: JobReport) -> str:
    """Return the accelerators of a job; "" if it asks for none."""
    asked = devices.in_words(report.gpus, report.slices)
    return f"{asked} asked for; {_held(report)} held by its pods" if asked else ""


def _held(report: JobReport) -> str:
    """Return the accelerators that the job's pods hold; "" if the job asks for none."""
    if not (report.gpus or report.slices):
        return ""
    return devices.in_words(report.gpus_held, report.slices_held) or "0"


def _queue(queue: QueueReport) -> str:
    if not queue.workload:
        return queue.name
    place = f" at place {queue.place}" if queue.place else ""
    return f"{queue.name}; {queue.workload} waits{place}{': ' if queue.says else ''}{queue.says}"


def _desired(report: JobReport) -> str:
    return "unknown" if report.desired is None else str(report.desired)


def _bounds(report: JobReport) -> str:
    low, high, most = report.min_replicas or 1, report.max_replicas, report.max_np_workers
    if not (report.min_replicas or high):
        return ""
    allowed = f"{low} to {high}" if high else f"{low} or more"
    bound = f"; --max-np lets {most} train" if most and (high is None or most < high) else ""
    return f" (allowed: {allowed}{bound})"


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _launcher(launcher: LauncherReport, now: datetime) -> str:
    script = names.KEY_DISCOVER_HOSTS
    news = {None: "is mounted", True: "is up to date", False: "is not refreshed yet"}[
        launcher.refreshed
    ]
    seen = f"{script} {news}" if launcher.sees_discover_hosts else f"without {script}"
    place = f" on {launcher.node}" if launcher.node else ""
    old = f", {age(launcher.created, now=now)} old" if launcher.created else ""
    return f"{launcher.name}, {launcher.phase}{place}{old}, {seen}"


_WORKER_COLUMNS = (
    "WORKER",
    "PHASE",
    "READY",
    "PUBLISHED",
    "EXEC",
    "DRAINING",
    "AGE",
    "NODE",
    "LAST-STATE",
)


def _worker(report: JobReport, worker: WorkerReport, now: datetime) -> list[str]:
    return [
        worker.name,
        worker.phase,
        _yes(worker.ready),
        _published(worker),
        "?" if report.exec_names is None else _yes(worker.name in report.exec_names),
        _draining(worker.draining, now) if worker.draining else NONE,
        age(worker.created, now=now) if worker.created else NONE,
        worker.node or NONE,
        worker.last_state or NONE,
        worker.quota or NONE,
    ]


def _folded(report: JobReport) -> tuple[list[WorkerReport], list[str]]:
    """Return the workers to show of a large job, and a line for each kind that is not shown whole.

    Workers are alike if they differ only in name, age and node.
    """
    kinds: dict[object, list[WorkerReport]] = {}
    for worker in report.workers:
        kind = (
            worker.phase,
            worker.ready,
            _published(worker),
            report.exec_names is None or worker.name in report.exec_names,
            worker.draining is None,
            worker.last_state,
            worker.quota,
        )
        kinds.setdefault(kind, []).append(worker)
    shown, more = list[WorkerReport](), list[str]()
    lists_all = f"{names.PROGRAM} get {report.name} -n {report.namespace} -o wide"
    for alike in kinds.values():
        hidden = len(alike) - SHOWN_ALIKE
        if hidden <= 1:
            shown += alike
            continue
        shown += alike[:SHOWN_ALIKE]
        more.append(f"and {hidden} more workers like {alike[0].name}; `{lists_all}` lists all")
    return sorted(shown, key=lambda worker: worker.index), more


def _published(worker: WorkerReport) -> str:
    return f"as {worker.host}" if worker.host and worker.incarnation else _yes(worker.published)


def _draining(draining: Draining, now: datetime) -> str:
    since = f"for {age(draining.since, now=now)}"
    if draining.until is None:
        return since
    left = max(0.0, (draining.until - now).total_seconds())
    return f"{since}, {phrases.duration(round(left))} left"


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines] or [f"  {NONE}"]


def _yes(value: bool) -> str:  # noqa: FBT001 - a value to be written, not a switch
    return "yes" if value else "no"
