"""The launcher's Role: exec on every worker that is wanted or exists, and on no other.

Safety rule 4: it grows before a worker is published and shrinks after the last surplus one is gone. [operator] writes
it once, for the first size.
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note, WriteRole
from mpijob_elastic.model.job import JobView, Role


def grow(view: JobView, role: Role) -> WriteRole | None:
    """The write that lets the launcher reach new workers, as soon as the size asks for them."""
    needed = _needed(view, role)
    allowed = set(role.exec_names)
    missing = [name for name in needed if name not in allowed]
    if not view.elastic or not missing:
        return None
    message = f"{view.replicas} workers asked for; the launcher may exec into {', '.join(missing[:8])} now"
    return _write(role, needed, Note(reason="ScalingOut", message=message))


def shrink(view: JobView, role: Role) -> WriteRole | None:
    """The write that takes rights away again, once for all the workers that left."""
    needed = _needed(view, role)
    if not needed or not view.elastic or view.surplus or not set(needed) < set(role.exec_names):
        return None  # a rule without resourceNames would be one on every pod
    note = Note(reason="ScaledIn", message=f"{view.replicas} workers left; the launcher's Role is narrowed to them")
    return _write(role, needed, note)


def _needed(view: JobView, role: Role) -> tuple[str, ...]:
    wanted = view.wanted_names
    known = {*wanted, *(worker.name for worker in view.workers)}
    strangers = [name for name in role.exec_names if name not in known and not _is_worker(view, name)]
    surplus = [worker.name for worker in view.workers if worker.index >= len(wanted)]
    return (*strangers, *wanted, *surplus)  # in numeric order, as both are


def _is_worker(view: JobView, pod: str) -> bool:
    return names.worker_index(pod, job=view.name) is not None


def _write(role: Role, needed: tuple[str, ...], note: Note) -> WriteRole:
    return WriteRole(ref=role.ref, exec_rule=role.exec_rule, before=role.exec_names, exec_names=needed, note=note)
