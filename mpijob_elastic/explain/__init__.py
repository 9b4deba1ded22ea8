"""Explain why a worker is not training and what to do next. Pure: the state of a job and more facts in, words out.

The job gets every finding that holds. Each worker gets the first cause that holds, checked in the order in which a
worker comes to train: its pod, the Role, the host list, the launcher, its rank.
"""

from __future__ import annotations

from itertools import chain

from mpijob_elastic import names
from mpijob_elastic.decide import host_list
from mpijob_elastic.decide.derive import derive
from mpijob_elastic.explain import jobs, pods, publication, ranks, surplus
from mpijob_elastic.explain.case import Case
from mpijob_elastic.explain.facts import Facts
from mpijob_elastic.explain.findings import Explanation, WorkerFinding
from mpijob_elastic.model.job import JobView

__all__ = ["explain"]


def explain(view: JobView, facts: Facts, *, now: float) -> Explanation:
    """Explain a job at time `now` (seconds since the epoch)."""
    state, following = derive(view, now=now), host_list.following(view, now=now)
    job = Case(state=state, facts=facts, following=following, name=view.name)
    over = jobs.over(job)
    if over:
        return Explanation(job=(over,))
    wanted = frozenset(view.wanted_names)
    workers = sorted(wanted | state.by_name.keys(), key=lambda pod: names.worker_index(pod, job=view.name) or 0)
    return Explanation(
        job=tuple(jobs.findings(job)),
        workers=tuple(_worker(job.of(name), is_wanted=name in wanted) for name in workers),
    )


def _worker(case: Case, *, is_wanted: bool) -> WorkerFinding:
    of_wanted = chain(pods.causes(case), publication.causes(case), ranks.causes(case))
    cause = next(of_wanted if is_wanted else surplus.causes(case)).about(case.name)
    return WorkerFinding(name=case.name, host=case.view.host_of.get(case.name, ""), wanted=is_wanted, cause=cause)
