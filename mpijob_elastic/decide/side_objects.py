"""Side objects: the launcher's Role, the PodGroup, and the selector in the job's status.

Role: exec on every worker that is wanted or exists, and on no other. Safety rule 4: it grows before a worker is
published and shrinks after the last surplus worker is gone. [operator] writes it once, for the first size.

PodGroup: [operator] creates it with replicas + 1 and never updates it. With fewer pods than that the gang is not
scheduled, nor is a recreated worker. It is only ever lowered, to the least size and the launcher: pods above it are
scheduled, and may be reclaimed, individually
(https://github.com/volcano-sh/volcano/blob/master/docs/design/elastic-scheduler.md).

Selector of the workers, for the subresource scale: [operator] writes the status by its own type, which drops the field;
the webhook puts it back in the same write. This is for when the webhook is away.
"""

from mpijob_elastic import names
from mpijob_elastic.decide.actions import LowerPodGroup, Note, WriteRole, WriteSelector, normal
from mpijob_elastic.model.job import JobView, Role
from mpijob_elastic.model.phrases import listed


def grow_role(view: JobView, role: Role) -> WriteRole | None:
    """Return the write that lets the launcher reach new workers, as soon as the size asks for them."""
    missing = {*view.wanted_names, *(worker.ref.name for worker in view.workers)}.difference(role.exec_names)
    if not view.elastic or not missing:
        return None
    needed = _needed(view, role)
    new = listed(name for name in needed if name in missing)
    message = f"Role {role.ref.name}: allowing exec into {new} for {view.replicas} desired workers"
    return _write(role, needed, normal("ScalingOut", message))


def shrink_role(view: JobView, role: Role) -> WriteRole | None:
    """Return the write that takes rights away again, once for all the workers that left."""
    if not view.elastic or len(role.exec_names) <= len(view.wanted_names) or view.surplus:
        return None
    needed = _needed(view, role)
    if not needed or not set(needed) < set(role.exec_names):
        return None  # a rule without resourceNames would allow exec into every pod
    message = f"Role {role.ref.name}: allowing exec into {view.replicas} workers only, the surplus workers are gone"
    return _write(role, needed, normal("ScaledIn", message))


def lower_pod_group(view: JobView) -> LowerPodGroup | None:
    """Return the write that is due, or None."""
    group = view.pod_group
    if group is None or not view.elastic:
        return None
    workers = min(view.policy.min_replicas or view.replicas, view.replicas)
    if group.min_member <= workers + 1:
        return None
    change = f"minMember {group.min_member} → {workers + 1}"
    message = f"PodGroup {group.ref.name}: {change}, so that the job can start with fewer workers"
    note = normal("PodGroupLowered", message)
    return LowerPodGroup(ref=group.ref, before=group.min_member, after=workers + 1, note=note)


def restore_selector(view: JobView) -> WriteSelector | None:
    """Return the write that is due, or None.

    A job that has no conditions yet is left alone (see `notices.tell`), and so is a job whose size cannot change. Where
    the MPIJob definition would drop the field again nothing is due: each write would bring about the next.
    """
    if not view.selector_due or not view.reported or not view.elastic:
        return None
    return WriteSelector(ref=view.ref, selector=names.worker_selector(view.name))


def _needed(view: JobView, role: Role) -> tuple[str, ...]:
    wanted = view.wanted_names
    known = {*wanted, *(worker.ref.name for worker in view.workers)}
    strangers = [pod for pod in role.exec_names if pod not in known and names.worker_index(pod, job=view.name) is None]
    surplus = [worker.ref.name for worker in view.workers if worker.index >= len(wanted)]
    return (*strangers, *wanted, *surplus)  # in numeric order, as both are


def _write(role: Role, needed: tuple[str, ...], note: Note) -> WriteRole:
    return WriteRole(ref=role.ref, exec_rule=role.exec_rule, exec_names=needed, note=note)
