"""MultiKueue: a job that Kueue has another cluster run, and its copy there.

https://kueue.sigs.k8s.io/docs/concepts/multikueue/
In the manager the job has spec.managedBy. Its pods wait for ever, and only its first Workload counts. When a cluster is
chosen, MultiKueue makes a copy of that Workload there, which has no owner, and then a copy of the job, which names it.
It copies the status back, and never looks at the specs again.
"""

from collections.abc import Sequence

from mpijob_elastic.decide.actions import AdoptWorkload, ClearWorkload, Note, Plan, QueueAction, TellUser, normal
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.queue import Queue, Workload


def due(job: Identity, queue: Queue, base: Workload | None) -> Sequence[QueueAction] | None:
    """Return the writes that are due instead of those of a queue of this cluster; None if those are."""
    if base is None:
        return () if queue.prebuilt else None
    if not base.metadata.job_uid:
        return (AdoptWorkload(ref=base.metadata, job=job),)
    if queue.elsewhere:
        return (ClearWorkload(workload=base),) if base.preempted else ()
    return None


def tell(view: JobView, queue: Queue) -> Plan:
    """Return the notice on a job that another cluster runs, once."""
    note = _note(view, queue.base(view.name))
    return (
        Plan()
        if note.line == view.facts.notices
        else Plan(actions=(TellUser(ref=view.ref, text=note.line, notes=(note,)),))
    )


def _note(view: JobView, base: Workload | None) -> Note:
    where = f"cluster {base.cluster}" if base and base.cluster else "the cluster that MultiKueue will choose"
    said = f" ({base.line})" if base and base.said and not base.reserved else ""
    return normal(
        "RunsElsewhere", f"{view.name} runs in {where}{said}; edit it there, because no edit here is passed on"
    )
