"""The resources that the operator reads and writes."""

from mpijob_elastic.kube.resources import (
    CONFIG_MAPS,
    EVENTS,
    MPI_JOBS,
    POD_GROUPS,
    PODS,
    ROLES,
    Resource,
)

SERVICE_ACCOUNTS = Resource(group="", version="v1", plural="serviceaccounts", kind="ServiceAccount")
ROLE_BINDINGS = Resource(group="rbac.authorization.k8s.io", version="v1", plural="rolebindings", kind="RoleBinding")

__all__ = [
    "CONFIG_MAPS",
    "EVENTS",
    "MPI_JOBS",
    "PODS",
    "POD_GROUPS",
    "ROLES",
    "ROLE_BINDINGS",
    "SERVICE_ACCOUNTS",
    "Resource",
]
