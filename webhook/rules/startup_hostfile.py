"""The hostfile of a new job that may start at its smallest size; pure.

[operator] writes a line for each worker, and its launcher waits for all of them. A hostfile that is shortened before
the launcher is created makes it wait for the smallest size only. If the job is not known yet, the controller does the
same a moment later (decide/launcher_start).
"""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.model import policy
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import ConfigMap


def shortened(config: ConfigMap, job: JobFacts | None) -> Patch:
    """Return the patch of a ConfigMap that the operator is about to create; empty unless its job asks for it."""
    owner = config.metadata.controller
    if job is None or owner is None or owner.uid != job.metadata.uid or not job.elastic:
        return ()
    lines = (config.data or {}).get(names.KEY_HOSTFILE, "").splitlines(keepends=True)
    operators = all(line.startswith(f"{names.worker(owner.name, index)} slots=") for index, line in enumerate(lines))
    least = policy.startup_workers(job.policy, np_workers=job.np_workers)
    if least is None or least >= len(lines) or not operators:
        return ()
    return json_patch.replacing(at=f"/data/{names.KEY_HOSTFILE}", value="".join(lines[:least]))
