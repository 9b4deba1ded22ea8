"""The webhook configurations (config/base/webhook-configurations.yaml), changed for older API servers."""

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.kube.resources import CONFIG_MAPS, MPI_JOBS
from webhook.rules.hpa_facts import AUTOSCALERS

Manifest = Mapping[str, Any]

_CONDITIONAL = {CONFIG_MAPS.plural, f"{MPI_JOBS.plural}/status", AUTOSCALERS.plural}


def without_match_conditions(configuration: Manifest) -> dict[str, Any]:
    """Return the configuration for an API server older than 1.28, which does not serve `matchConditions`.

    The hooks on ConfigMaps, the MPIJobs' status and HPAs are dropped, because without conditions they would see all
    ConfigMaps, statuses and HPAs. The controller adds key and selector itself, and edits of the MPIJob still bring the
    warnings about its HPA. For pods the labels are narrow enough.
    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions
    """
    kept = [hook for hook in configuration["webhooks"] if not _needs_conditions(hook)]
    stripped = [{field: value for field, value in hook.items() if field != "matchConditions"} for hook in kept]
    return {**configuration, "webhooks": stripped}


def _needs_conditions(hook: Manifest) -> bool:
    return any(_CONDITIONAL & {*rule["resources"]} for rule in hook["rules"])
