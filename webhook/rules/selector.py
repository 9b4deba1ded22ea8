"""Put the workers' selector back into each status that the operator writes without it; pure.

[operator] UpdateStatus drops fields that its Go type does not know. The scale subresource reads the selector there, and
an HPA without it does nothing. It selects only workers, because an HPA would count the launcher's load too.
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch


def restore(job: MPIJob) -> Patch:
    """Return a patch that adds the selector if the status counts workers without it."""
    if not job.lacks_selector or not job.metadata.name:
        return ()
    return json_patch.adding(
        at="/status/replicaStatuses/Worker/selector", value=names.worker_selector(job.metadata.name)
    )
