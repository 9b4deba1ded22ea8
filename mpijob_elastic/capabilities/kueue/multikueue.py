"""MultiKueue: a job that Kueue has another cluster run, and its copy there.

https://kueue.sigs.k8s.io/docs/concepts/multikueue/
In the manager the job has spec.managedBy. Its pods wait for ever, and only its first Workload counts. When a cluster is
chosen, MultiKueue makes a copy of that Workload there, which has no owner, and then a copy of the job, which names it.
It copies the status back, and never looks at the specs again.
"""

from collections.abc import Sequence

from mpijob_elastic.capabilities.kueue.actions import AdoptWorkload, ClearWorkload
from mpijob_elastic.capabilities.kueue.api import MULTIKUEUE
from mpijob_elastic.capabilities.kueue.facts import Queue, Workload
from mpijob_elastic.decide.actions import Action, normal
from mpijob_elastic.decide.wishes import Manage
from mpijob_elastic.kube.meta import Identity
from mpijob_elastic.model.job import JobView


def due(job: Identity, queue: Queue, base: Workload | None) -> Sequence[Action] | None:
    """Return the writes that are due instead of those of a queue of this cluster; None if those are."""
    if base is None:
        return () if queue.prebuilt else None
    if not base.metadata.job_uid:
        return (AdoptWorkload(ref=base.metadata, job=job),)
    if queue.elsewhere:
        return (ClearWorkload(workload=base),) if base.preempted else ()
    return None


def elsewhere(view: JobView, queue: Queue | None) -> Manage:
    """Return whose job this is, and what its user is told once it is known where."""
    why = f"its spec.managedBy is {MULTIKUEUE}, so it runs in another cluster; edit it there"
    if queue is None:
        return Manage(why=why, note=None)
    base = queue.base(view.name)
    where = f"cluster {base.cluster}" if base and base.cluster else "the cluster that MultiKueue will choose"
    said = f" ({base.line})" if base and base.said and not base.reserved else ""
    told = f"{view.name} runs in {where}{said}; edit it there, because no edit here is passed on"
    return Manage(why=why, note=normal("RunsElsewhere", told))
