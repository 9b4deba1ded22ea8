"""The notice on a slow worker: for as long as looks find it slow, in the words of its beginning.

The words stay as they are, because each new text is a write and an Event. They stay over a restart
of the controller, too: until it has compared the worker often enough, the notice holds that the job
has. A command has compared nothing, so it shows what the controller says.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mpijob_elastic import names
from mpijob_elastic.decide import capability
from mpijob_elastic.decide.actions import Note, warning
from mpijob_elastic.decide.state import JobState
from mpijob_elastic.model import slowness
from mpijob_elastic.model.goodput import Span
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.pod import Worker

REASON = "SlowWorker"
# At most so many slow workers get a notice, because an annotation has limits.
MOST = 8
# Anybody who may edit the MPIJob may write any notice there.
_SAID = re.compile(
    rf"{REASON}: (?P<pod>[a-z0-9.-]{{1,253}}) on (?P<node>[a-z0-9.-]{{1,253}}): "
    r"(?P<times>[0-9]{1,6}\.[0-9]) times the median of (?P<among>[0-9]{1,5}) workers; .*"
)


class _Finding(NamedTuple):
    """How slow a worker was when it was named."""

    #: So many times the median of the others.
    times: float
    #: The number of workers that were compared.
    among: int


def may_be(view: JobView) -> bool:
    """Tell whether a worker tells of its steps, or a notice names one."""
    if REASON in view.facts.notices:
        return True
    return any(worker.probe.progress is not None for worker in view.workers)


def notes(state: JobState) -> Iterator[Note]:
    """Yield a notice on each listed worker that counts as slow, in their order."""
    view, count = state.view, 0
    said = _said(view)
    if view.ledger is None and not said:
        return
    for worker in view.workers:
        if count == MOST:
            return
        found = _finding(view, worker, said.get((worker.name, worker.facts.node)))
        if found is not None:
            count += 1
            yield _note(view, worker, found)


def _finding(view: JobView, worker: Worker, said: _Finding | None) -> _Finding | None:
    """Return how slow a worker is; None if it is not, or if nobody knows."""
    if worker.name not in view.host_of:
        return None
    if view.ledger is None:
        return said
    span = view.ledger.spans.get(worker.ref.uid)
    if span is None or span.earlier:
        said = None
    if not worker.probe.asked_at:
        return said  # this process has not looked yet
    return _of_span(span, said) if span is not None else None


def _of_span(span: Span, said: _Finding | None) -> _Finding | None:
    """Return how slow a worker with a line is; None if it is not."""
    found = span.slow
    if found.times:
        return said or _Finding(found.times, found.among)
    if span.line is None or not span.line.own_ms:
        return None
    return said if found.looks < slowness.TWICE else None


def _said(view: JobView) -> dict[tuple[str, str], _Finding]:
    """Return what the notices say, by the names of the worker and its node."""
    lines = map(_SAID.fullmatch, view.facts.notices.splitlines())
    return {
        (line["pod"], line["node"]): _Finding(float(line["times"]), int(line["among"]))
        for line in lines
        if line is not None
    }


def _note(view: JobView, worker: Worker, found: _Finding) -> Note:
    node, (what, step) = worker.facts.node, _remedy(view, worker)
    return warning(
        REASON,
        f"{worker.name} on {node}: {found.times:.1f} times the median of {found.among} workers; "
        f"{what}: `{step}`",
        next_step=step,
    )


def _remedy(view: JobView, worker: Worker) -> tuple[str, str]:
    """Return what helps, in words, and the command: a job whose size others set parks no worker."""
    is_owned = any(one.size_owner(view) for one in capability.of(view))
    least = view.policy.min_replicas or 1
    if is_owned or view.facts.queued or view.replicas <= least:
        on_node = f"kubectl cordon {worker.facts.node}"
        command = f"{on_node} && kubectl -n {view.namespace} delete pod {worker.name}"
        return "to have it made again on another node", command
    command = f"{names.PROGRAM} scalein {view.name} --pod {worker.name} -n {view.namespace}"
    return "to go on without it", command
