"""How a job's workers are found, put back into each status that the operator writes without it; pure.

[operator] UpdateStatus of its own Go type drops what that does not know. The subresource scale reads the selector
there, and an HPA without one does nothing. It selects the workers only: an HPA would count the launcher's load too.
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.model.mpijob import MPIJob
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch


def restore(job: MPIJob) -> Patch:
    """Add the selector where the status counts workers and has none."""
    if not job.lacks_selector or not job.metadata.name:
        return ()
    return json_patch.adding(
        at="/status/replicaStatuses/Worker/selector", value=names.worker_selector(job.metadata.name)
    )
