"""Kueue as it is configured: whether its integration for plain pods takes the pods of MPIJobs for its own."""

from typing import Any

import yaml

from mpijob_elastic.install import objects
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS
from upgrade.findings import Advice, Finding

# Where its manifests and its chart put the configuration.
_CONFIGURATION = CONFIG_MAPS.path("kueue-system", "kueue-manager-config")
_KEY = "controller_manager_config.yaml"
_GROUP = "kueue.x-k8s.io"
# The version of its Workloads that queued jobs need.
_SERVED = f"{_GROUP}/v1beta2"
# As its configuration names MPIJobs of v1.
FRAMEWORK = f"{MPI_JOBS.kind}.{MPI_JOBS.version}.{MPI_JOBS.group}"


async def look(client: ApiReader) -> Finding:
    """Say whether it is there, and whether jobs may be queued."""
    if await client.find(f"/apis/{_GROUP}") is None:
        return Finding("kueue", Advice.GO, "not installed")
    if await client.find(f"/apis/{_SERVED}") is None:
        said = f"older than 0.15, without {_SERVED}, so MPIJobs with a queue's label are not queued"
        return Finding("kueue", Advice.CARE, f"installed, but {said}")
    verdict, said = await _pods(client)
    return Finding("kueue", verdict, f"installed; MPIJobs may be queued; {said}")


async def _pods(client: ApiReader) -> tuple[Advice, str]:
    advice = f"add {FRAMEWORK} to its integrations.externalFrameworks"
    try:
        raw = await client.find(_CONFIGURATION)
        found = _integrations(objects.read(raw).get("data", {}).get(_KEY, "") if raw else "")
    except (errors.Forbidden, yaml.YAMLError):
        return Advice.CARE, f"this account cannot read its configuration: if its integration `pod` is on, {advice}"
    if found is None:
        return Advice.CARE, f"its configuration is not in {_CONFIGURATION}: if its integration `pod` is on, {advice}"
    if "pod" not in (found.get("frameworks") or ()):
        return Advice.GO, "its integration `pod` is off"
    if FRAMEWORK in (found.get("externalFrameworks") or ()):
        return Advice.GO, "its integration `pod` leaves the pods of MPIJobs alone"
    twice = "asks for quota for the pods of MPIJobs a second time, where they have a queue, or one is named default"
    return Advice.CARE, f"its integration `pod` {twice}: {advice}"


def _integrations(text: str) -> dict[str, Any] | None:
    """Return `integrations`, None if there is no configuration. Raises yaml.YAMLError."""
    config = yaml.safe_load(text)
    found = (config.get("integrations") or {}) if isinstance(config, dict) else None
    return found if isinstance(found, dict) else None
