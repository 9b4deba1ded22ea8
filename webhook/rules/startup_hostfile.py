"""The hostfile of a new job that is to start at its least size; pure.

[operator] writes a line for each worker, and its launcher waits for every one of them. Shortened before the launcher is
created, it waits for as many as it begins with; where the job is not known (yet) the controller does the
same a moment later.
"""

from __future__ import annotations

from mpijob_elastic import names
from webhook.rules import json_patch
from webhook.rules.job_size import JobSize
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import ConfigMap


def shortened(config: ConfigMap, job: JobSize | None) -> Patch:
    """The patch of a ConfigMap that the operator is about to create; nothing where its job does not ask for it."""
    owner = config.metadata.controller
    if job is None or owner is None or owner.uid != job.metadata.uid or not job.elastic:
        return ()
    lines = (config.data or {}).get(names.KEY_HOSTFILE, "").splitlines(keepends=True)
    least = _least(job)
    operators = all(line.startswith(f"{names.worker(owner.name, index)} slots=") for index, line in enumerate(lines))
    if least is None or least >= len(lines) or not operators:
        return ()
    return json_patch.replacing(at=f"/data/{names.KEY_HOSTFILE}", value="".join(lines[:least]))


def _least(job: JobSize) -> int | None:
    """As mpijob_elastic.decide.startup_hostfile has it."""
    if job.policy.min_replicas is None:
        return None
    needed = (job.launch.np if job.launch else None) or 0
    return max(job.policy.min_replicas, -(-needed // job.slots))
