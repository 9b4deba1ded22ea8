"""List the changes between two reports on one job, a short line each."""

from collections.abc import Iterable, Iterator

from mpijob_elastic import names
from mpijob_elastic.cli.jobs.report import MISSING, JobReport


def between(before: JobReport | None, after: JobReport) -> list[str]:
    """Return the changes in the order in which they happen; for the first report a summary."""
    if before is None:
        counts = f"ready {after.ready}, published {after.published}, draining {after.draining}"
        return [f"{after.namespace}/{after.name}: {after.state}, desired {after.desired}, {counts}"]
    return [
        *_arrow("state", before.state, after.state),
        *_arrow("desired", str(before.desired), str(after.desired)),
        *_role(before, after),
        *_workers(before, after),
        *_arrow(names.KEY_DISCOVER_HOSTS, _hosts(before), _hosts(after)),
        *_launcher(before, after),
        *(f"notice: {notice}" for notice in after.notices if notice not in before.notices),
    ]


def _arrow(name: str, before: str, after: str) -> list[str]:
    return [f"{name}: {before} → {after}"] if before != after else []


def _role(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = set(before.exec_names or ()), set(after.exec_names or ())
    if new - old:
        yield f"Role: exec allowed into {', '.join(_in_order(new - old, after))}"
    if old - new:
        yield f"Role: exec no longer allowed into {', '.join(_in_order(old - new, after))}"


def _workers(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new = _conditions(before), _conditions(after)
    for pod in _in_order(old.keys() | new.keys(), after):
        yield from _arrow(pod, old.get(pod, "none"), new.get(pod, "gone"))


def _conditions(report: JobReport) -> dict[str, str]:
    return {
        worker.name: worker.phase + " Ready" * worker.ready + " draining" * bool(worker.draining)
        for worker in report.workers
        if worker.phase != MISSING
    }


def _hosts(report: JobReport) -> str:
    return ", ".join(report.hosts) or "no host"


def _launcher(before: JobReport, after: JobReport) -> Iterator[str]:
    old, new, pod = before.launcher, after.launcher, names.launcher(after.name)
    if (old and old.phase) != (new and new.phase):
        yield f"{pod}: {old.phase if old else 'none'} → {new.phase if new else 'gone'}"
    is_news = before.hosts != after.hosts or not (old and old.refreshed)
    if new and new.refreshed and is_news:
        yield f"{pod}: {names.KEY_DISCOVER_HOSTS} refreshed"


def _in_order(pods: Iterable[str], report: JobReport) -> list[str]:
    return sorted(pods, key=lambda pod: names.worker_index(pod, job=report.name) or 0)
