"""Find the cause that holds for each worker, wanted or surplus, present or missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mpijob_elastic import names
from mpijob_elastic.explain import case, pods, publication, ranks, surplus
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import WorkerFinding, wrong
from mpijob_elastic.model.job import JobView

WANTED = (*pods.ORDER, *publication.ORDER, *ranks.ORDER)


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[WorkerFinding]:
    """Yield one finding for each worker, in numeric order."""
    present = {worker.name: worker for worker in view.workers}
    wanted = frozenset(view.wanted_names)
    job = case.of_job(view, facts, now=now)
    for name in sorted({*wanted, *present}, key=lambda name: names.worker_index(name, job=view.name) or 0):
        known = replace(job, name=name, worker=present.get(name))
        found = case.first(WANTED if name in wanted else surplus.ORDER, known)
        unknown = wrong("unknown", f"{name} is not explained by any known fact", step=known.describe)
        host = view.host_of.get(name, "")
        yield WorkerFinding(name=name, host=host, wanted=name in wanted, cause=found or unknown)
