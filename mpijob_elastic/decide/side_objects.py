"""Side objects: the launcher's Role, and the selector in the job's status.

Role: exec on every worker that the job has or may get. Safety rule 4: it grows before a worker is published, and never
shrinks, for the names are the job's whatever its size. [operator] writes it once, for the first size. A write takes
the API server's check for escalation, so all sizes that the job may have are allowed in one write.

Selector of the workers, for the subresource scale: [operator] writes the status by its own type, which drops the field;
the webhook puts it back in the same write. This is for when the webhook is away.
"""

from mpijob_elastic import names
from mpijob_elastic.decide.actions import WriteRole, WriteSelector, normal
from mpijob_elastic.model.job import JobView, Role
from mpijob_elastic.model.phrases import listed

# Workers. A bound far above any size, as a habit, must not fill every Role with names.
MOST_AHEAD = 1_000


def grow_role(view: JobView, role: Role) -> WriteRole | None:
    """Return the write that lets the launcher reach all workers that the job may get, or None."""
    if not view.elastic:
        return None
    bound = max(view.policy.max_replicas or 0, view.facts.max_np_workers)
    reach = max(len(view.wanted_names), min(bound, MOST_AHEAD))
    missing = {*view.wanted_names, *(worker.ref.name for worker in view.workers)}.difference(role.exec_names)
    if not missing and len(role.exec_names) >= reach:
        return None
    ahead = (names.worker(view.name, index) for index in range(reach))
    new = {*missing, *ahead}.difference(role.exec_names)
    needed = tuple(sorted({*role.exec_names, *new}, key=lambda pod: _order(view, pod)))
    message = f"Role {role.metadata.name}: allowing exec into {listed(pod for pod in needed if pod in new)}"
    return WriteRole(
        ref=role.metadata, exec_rule=role.exec_rule, exec_names=needed, note=normal("ExecAllowed", message)
    )


def restore_selector(view: JobView) -> WriteSelector | None:
    """Return the write that is due, or None.

    A job that has no conditions yet is left alone (see `notices.tell`), and so is a job whose size cannot change. Where
    the MPIJob definition would drop the field again nothing is due: each write would bring about the next.
    """
    if not view.selector_due or not view.facts.reported or not view.elastic:
        return None
    return WriteSelector(ref=view.ref, selector=names.worker_selector(view.name))


def _order(view: JobView, pod: str) -> tuple[int, str]:
    index = names.worker_index(pod, job=view.name)
    return (-1, pod) if index is None else (index, "")
