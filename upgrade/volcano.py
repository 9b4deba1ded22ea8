"""Volcano as it is configured: whether its scheduler takes anything away from a job that runs."""

import re

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, POD_GROUPS
from upgrade import config_maps
from upgrade.findings import Finding, Verdict

# Where its installer puts the configuration.
_CONFIGURATION = CONFIG_MAPS.path("volcano-system", "volcano-scheduler-configmap")
_KEY = "volcano-scheduler.conf"
_ACTIONS = re.compile(r'^actions:\s*["\']?([a-z, ]*)', re.MULTILINE)
_TAKING = {"preempt", "reclaim"}


async def look(client: ApiReader) -> Finding:
    """Say whether it is there, and what it does to running jobs."""
    if await client.find(f"/apis/{POD_GROUPS.group}") is None:
        return Finding("volcano", Verdict.GO, "not installed")
    return Finding("volcano", Verdict.GO, f"installed; jobs may ask for a gang; {await _taking(client)}")


async def _taking(client: ApiReader) -> str:
    try:
        found = _ACTIONS.search(await config_maps.text(client, _CONFIGURATION, _KEY))
    except errors.Forbidden:
        return "this account may not read whether it takes pods from running jobs"
    if found is None:
        return f"whether it takes pods from running jobs is not said in {_CONFIGURATION}"
    actions = {action.strip() for action in found[1].split(",")}
    if taking := sorted(actions & _TAKING):
        return f"its actions {' and '.join(taking)} take workers above min-replicas from running jobs"
    return "it takes no pod from a running job, because its actions have neither preempt nor reclaim"
