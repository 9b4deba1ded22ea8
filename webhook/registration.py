"""The webhook configurations (config/base/webhook-configurations.yaml) as values: what installers change in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.kube.resources import CONFIG_MAPS

Manifest = Mapping[str, Any]


def without_match_conditions(configuration: Manifest) -> dict[str, Any]:
    """The configuration for an API server older than 1.28, which does not serve `matchConditions`.

    The hook on ConfigMaps goes: only such a condition tells the operator's from everybody's, and the controller adds
    the key itself. For pods the labels are narrow enough.
    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#matching-requests-matchconditions
    """
    kept = [hook for hook in configuration["webhooks"] if not _is_on_config_maps(hook)]
    stripped = [{field: value for field, value in hook.items() if field != "matchConditions"} for hook in kept]
    return {**configuration, "webhooks": stripped}


def _is_on_config_maps(hook: Manifest) -> bool:
    return any(CONFIG_MAPS.plural in rule["resources"] for rule in hook["rules"])
