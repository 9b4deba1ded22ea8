"""The launcher's Role: exec on every worker that is wanted or exists, and on no other.

Safety rule 4: it grows before a worker is published and shrinks after the last surplus one is gone. [operator] writes
it once, for the first size.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpijob_elastic import names
from mpijob_elastic.decide.actions import Note, WriteRole
from mpijob_elastic.model.job import JobView, Role


def grow(view: JobView, role: Role) -> WriteRole | None:
    """The write that lets the launcher reach new workers, as soon as the size asks for them."""
    needed = _needed(view, role)
    missing = [name for name in needed if name not in role.exec_names]
    if not view.elastic or not missing:
        return None
    message = f"{view.replicas} workers asked for; the launcher may exec into {', '.join(missing[:8])} now"
    return _write(role, needed, Note(reason="ScalingOut", message=message))


def shrink(view: JobView, role: Role) -> WriteRole | None:
    """The write that takes rights away again, once for all the workers that left."""
    needed = _needed(view, role)
    if not needed or not view.elastic or view.surplus() or not set(needed) < set(role.exec_names):
        return None  # a rule without resourceNames would be one on every pod
    note = Note(reason="ScaledIn", message=f"{view.replicas} workers left; the launcher's Role is narrowed to them")
    return _write(role, needed, note)


def _needed(view: JobView, role: Role) -> tuple[str, ...]:
    wanted = {*view.wanted_names(), *(worker.name for worker in view.workers)}
    strangers = [name for name in role.exec_names if names.worker_index(name, job=view.name) is None]
    return (*strangers, *_in_order(wanted, view.name))


def _in_order(pods: Iterable[str], job: str) -> list[str]:
    return sorted(pods, key=lambda pod: names.worker_index(pod, job=job) or 0)


def _write(role: Role, needed: tuple[str, ...], note: Note) -> WriteRole:
    return WriteRole(ref=role.ref, exec_rule=role.exec_rule, before=role.exec_names, exec_names=needed, note=note)
