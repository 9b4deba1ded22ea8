"""Bounds of a job's size: one rule for edits of the MPIJob and of its scale subresource; pure."""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.model.policy import Policy
from webhook.rules.review import Refusal


def refusal(replicas: int, policy: Policy, *, field: str) -> Refusal | None:
    """Return why that size is out of bounds, with the bound and its source; None if it is within.

    field: path of the size in the reviewed object.
    """
    low, high = policy.min_replicas, policy.max_replicas
    if policy.enabled is False:
        return None
    if low is not None and replicas < low:
        why = f"below metadata.annotations[{names.MIN_REPLICAS}] ({low})"
    elif high is not None and replicas > high:
        why = f"above metadata.annotations[{names.MAX_REPLICAS}] ({high})"
    else:
        return None
    allowed = f"{low or 1} to {high}" if high else f"{low or 1} or more"
    return Refusal(field=field, message=f"{replicas} is {why}; use {allowed}, or change the annotation")
