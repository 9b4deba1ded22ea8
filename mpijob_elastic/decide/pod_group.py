"""How many pods of a job a gang scheduler waits for: those of the least size, and the launcher.

[operator] creates the PodGroup with replicas + 1 and never updates it: with fewer than that the gang is not scheduled,
nor is a worker that is created anew. It is only ever lowered: what is above it is scheduled, and may be reclaimed, one
by one (https://github.com/volcano-sh/volcano/blob/master/docs/design/elastic-scheduler.md).
"""

from __future__ import annotations

from mpijob_elastic.decide.actions import LowerPodGroup, Note
from mpijob_elastic.model.job import JobView


def lower(view: JobView) -> LowerPodGroup | None:
    """The write that is due, or None."""
    group = view.pod_group
    if group is None or not view.elastic:
        return None
    workers = min(view.policy.min_replicas or view.replicas, view.replicas)
    if group.min_member <= workers + 1:
        return None
    message = f"minMember {group.min_member} → {workers + 1}: the launcher and {workers} workers are enough to begin"
    note = Note(reason="PodGroupLowered", message=message)
    return LowerPodGroup(ref=group.ref, before=group.min_member, min_member=workers + 1, note=note)
