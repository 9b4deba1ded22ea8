"""What became different between two reports on one job, a short line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.cli.jobs.report import MISSING, JobReport, WorkerReport


def between(before: JobReport | None, after: JobReport) -> list[str]:
    """Lines in the order in which such things happen; for the first report one line that sums it up."""
    if before is None:
        return [_summary(after)]
    return [
        *_of_job(before, after),
        *_of_role(before, after),
        *_of_workers(before, after),
        *_of_hosts(before, after),
        *_of_launcher(before, after),
        *(f"notice: {notice}" for notice in after.notices if notice not in before.notices),
    ]


def _summary(report: JobReport) -> str:
    counts = f"ready {report.ready}, published {report.published}, draining {report.draining}"
    return f"{report.namespace}/{report.name}: {report.state}, desired {report.desired}, {counts}"


def _of_job(before: JobReport, after: JobReport) -> Iterator[str]:
    if before.state != after.state:
        yield f"state: {before.state} → {after.state}"
    if before.desired != after.desired:
        yield f"desired: {before.desired} → {after.desired}"


def _of_role(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = _allowed(before), _allowed(after)
    if new - old:
        yield f"Role: exec allowed into {_list(new - old, after)}"
    if old - new:
        yield f"Role: exec no longer allowed into {_list(old - new, after)}"


def _allowed(report: JobReport) -> frozenset[str]:
    return frozenset(report.exec_names or ())


def _of_workers(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = _conditions(before), _conditions(after)
    for pod in _in_order(old.keys() | new.keys(), after):
        was, now = old.get(pod), new.get(pod)
        if was != now:
            yield f"{pod}: {was or 'none'} → {now or 'gone'}"


def _conditions(report: JobReport) -> dict[str, str]:
    return {worker.name: _condition(worker) for worker in report.workers if worker.phase != MISSING}


def _condition(worker: WorkerReport) -> str:
    words = (worker.phase, "Ready" if worker.ready else "", "draining" if worker.draining else "")
    return " ".join(word for word in words if word)


def _of_hosts(before: JobReport, after: JobReport) -> Iterator[str]:
    if before.hosts != after.hosts:
        yield f"{names.KEY_DISCOVER_HOSTS}: {_hosts(before)} → {_hosts(after)}"


def _hosts(report: JobReport) -> str:
    return ", ".join(report.hosts) or "no host"


def _of_launcher(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = before.launcher, after.launcher
    was, now = old.phase if old else None, new.phase if new else None
    pod = names.launcher(after.name)
    if was != now:
        yield f"{pod}: {was or 'none'} → {now or 'gone'}"
    has_news = before.hosts != after.hosts or not (old and old.told)
    if new and new.told and has_news:
        yield f"{pod}: told of the newest {names.KEY_DISCOVER_HOSTS}"


def _list(pods: Iterable[str], report: JobReport) -> str:
    return ", ".join(_in_order(pods, report))


def _in_order(pods: Iterable[str], report: JobReport) -> list[str]:
    return sorted(pods, key=lambda pod: names.worker_index(pod, job=report.name) or 0)
