"""The deletion of a placeholder."""

from dataclasses import dataclass

from mpijob_elastic.decide.actions import Delete, Noted
from mpijob_elastic.kube.resources import PODS, Resource


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholder(Noted, Delete):
    """Delete a pod that holds a place which is needed no more; the operator makes the worker again, if any."""

    at_version = False

    resource: Resource = PODS
