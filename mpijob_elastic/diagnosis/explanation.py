"""Explain why a worker is not training and what to do next.

Pure: the state of a job and more facts in, words out.

The job gets every finding that holds. Each worker gets the first cause that holds, checked in the
order in which a worker comes to train: its pod, the Role, the host list, the launcher, its rank.
"""

from mpijob_elastic import names
from mpijob_elastic.decide import derive, host_list
from mpijob_elastic.diagnosis import jobs
from mpijob_elastic.diagnosis import workers as causes
from mpijob_elastic.diagnosis.facts import Case, Explanation, Facts, Finding, Level, WorkerFinding
from mpijob_elastic.model.job import JobView

__all__ = ["diagnose"]


def diagnose(view: JobView, facts: Facts, *, now: float, worker: str = "") -> Explanation:
    """Explain a job at time `now` (seconds since the epoch).

    worker: the only worker to explain; "" for all.
    """
    state = derive(view, now=now)
    following = host_list.following(state)
    job = Case(state=state, facts=facts, following=following, name=view.name)
    if over := jobs.over(job):
        return _explanation(job, (over,))
    wanted, present = frozenset(view.wanted_names), state.by_name.keys()
    chosen = {worker} if worker else wanted | present
    going = {
        found.name for found in state.workers if not found.wanted
    }  # a suspended job shrinks first
    workers = sorted(chosen, key=lambda pod: names.worker_index(pod, job=view.name) or 0)
    found = (_worker(job.of(pod), is_wanted=pod in wanted - going) for pod in workers)
    return _explanation(job, tuple(jobs.findings(job)), *found)


def _worker(case: Case, *, is_wanted: bool) -> WorkerFinding:
    cause = causes.first_cause(case, is_wanted=is_wanted).about(case.name)
    return WorkerFinding(
        name=case.name, host=case.view.host_of.get(case.name, ""), wanted=is_wanted, cause=cause
    )


def _explanation(job: Case, findings: tuple[Finding, ...], *workers: WorkerFinding) -> Explanation:
    wanted = [worker for worker in workers if worker.wanted]
    training = sum(worker.cause.level is Level.FINE for worker in wanted)
    unseen = [worker.name for worker in wanted if worker.cause.level is Level.UNKNOWN]
    is_wrong = any(
        finding.level is Level.WRONG
        for finding in (*findings, *(worker.cause for worker in workers))
    )
    may_all_train = 0 < training + len(unseen) == len(wanted) and not is_wrong
    return Explanation(
        namespace=job.view.namespace,
        name=job.name,
        state=job.facts.state,
        desired=job.view.replicas if job.view.facts.size_known else None,
        training=None if unseen else training,
        all_train=None if unseen and may_all_train else may_all_train,
        not_known=causes.unseen(job.of(unseen[0])) if unseen else "",
        job=findings,
        workers=workers,
        notices=job.view.facts.notices.splitlines(),
    )
