"""The selector of the workers in the job's status, for the subresource scale.

[operator] writes its status by its own type, which drops the field; the webhook puts it back in the same write. This is
for when the webhook is away. Where the MPIJob definition has no subresource scale, or would drop the field again,
nothing is due: each write would bring about the next.
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.decide.actions import WriteSelector
from mpijob_elastic.model.job import JobView


def restore(view: JobView) -> WriteSelector | None:
    """The write that is due, or None.

    A job that has no conditions yet is left alone (see `notices.tell`), and so is one whose size cannot change.
    """
    if not view.selector_due or not view.reported or not view.elastic:
        return None
    return WriteSelector(ref=view.ref, selector=names.worker_selector(view.name))
