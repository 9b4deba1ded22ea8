"""The cause that holds for each worker: wanted ones, there or not, and those that leave."""

from __future__ import annotations

from collections.abc import Iterator

from mpijob_elastic import names
from mpijob_elastic.explain import drains, listing, pods, ranks
from mpijob_elastic.explain.cases import Case, first, known
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Finding, WorkerFinding
from mpijob_elastic.model.job import JobView

WANTED = (*pods.ORDER, *listing.ORDER, *ranks.ORDER)


def findings(view: JobView, facts: Facts, *, now: float) -> Iterator[WorkerFinding]:
    """One for each worker, in numeric order."""
    there = {worker.name: worker for worker in view.workers}
    wanted = frozenset(view.wanted_names)
    same = known(view, facts, now=now)
    for name in sorted({*wanted, *there}, key=lambda name: names.worker_index(name, job=view.name) or 0):
        case = Case(known=same, name=name, worker=there.get(name))
        finding = first(WANTED if name in wanted else drains.ORDER, case)
        yield WorkerFinding(worker=name, wanted=name in wanted, finding=finding or _unknown(case))


def _unknown(case: Case) -> Finding:
    return Finding(
        cause="unknown", says="nothing of what is known explains it", next_step=case.kubectl("describe pod", case.name)
    )
