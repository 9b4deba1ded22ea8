"""What the user reads of host names that change: why discover_hosts.sh calls a worker otherwise, or cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mpijob_elastic import names
from mpijob_elastic.decide import host_names, lost_ranks
from mpijob_elastic.decide.actions import Note
from mpijob_elastic.model import durations
from mpijob_elastic.model.job import JobView, Worker


def notes(view: JobView, *, added: Collection[str], removed: Collection[str], now: float) -> Iterable[Note]:
    """Of a change of the list by these pods."""
    gone = lost_ranks.lost(view, now=now) & set(removed)
    lost = [worker for worker in view.workers if worker.name in gone]
    yield from _lost([worker.name for worker in lost if worker.probe.busy_seen])
    yield from _unused([worker.name for worker in lost if not worker.probe.busy_seen])
    newcomers = [worker for worker in view.workers if worker.name in added]
    renamed = [_as(view, worker, now=now) for worker in newcomers if _is_numbered(view, worker, now=now)]
    if renamed:
        yield Note(
            reason="HostRenamed",
            message=f"{', '.join(renamed)} in {names.KEY_DISCOVER_HOSTS}: a rank may have died under the former name, "
            "which Horovod never uses again",
        )
    kept = [worker.name for worker in newcomers if host_names.is_kept_back(view, worker, now=now)]
    if kept:
        yield Note(
            reason="HostNameKept",
            message=f"{', '.join(kept)}: a rank may have died under this name, but {names.KEY_KUBEXEC} of ConfigMap "
            f"{names.config_map(view.name)} is not the operator's, so no other can be given; if Horovod does not use "
            "the worker, give horovodrun --blacklist-cooldown-range MIN MAX, or take the edit back",
            warning=True,
        )


def _lost(pods: Collection[str]) -> Iterable[Note]:
    if pods:
        message = (
            f"{', '.join(pods)}: nothing but the main process runs there any more while others train; the rank was "
            "killed or crashed, and Horovod never again uses the host's name, so it gets a new one"
        )
        yield Note(reason="RankLost", message=message, warning=True)


def _unused(pods: Collection[str]) -> Iterable[Note]:
    if pods:
        wait = durations.render(lost_ranks.NEVER_TRAINED_AFTER)
        message = (
            f"{', '.join(pods)}: no rank was seen there for {wait} while others train; should Horovod never use the "
        )
        yield Note(reason="HostUnused", message=f"{message}host's name again, it gets a new one, once")


def _is_numbered(view: JobView, worker: Worker, *, now: float) -> bool:
    return names.incarnation_of(host_names.host(view, worker, now=now)) > 0


def _as(view: JobView, worker: Worker, *, now: float) -> str:
    return f"{worker.name} is {host_names.host(view, worker, now=now)}"
