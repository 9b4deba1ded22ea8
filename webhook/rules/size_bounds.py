"""Between which sizes a job may be: one rule, for edits of the MPIJob and of its subresource scale; pure."""

from __future__ import annotations

from mpijob_elastic import names
from mpijob_elastic.model.policy import Policy
from webhook.rules.review import Refusal


def refusal(replicas: int, policy: Policy, *, field: str) -> Refusal | None:
    """Why that size is out of bounds, with the bound and where it comes from; None where it is within.

    field: where the size stands in the object that is reviewed.
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
