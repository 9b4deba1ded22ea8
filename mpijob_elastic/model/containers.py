"""The container that holds the driver, and the containers that may hold ranks.

[operator] A template's first container gets the mount of J-config, in launcher and workers. A sidecar injector may put
another before it, as Istio's holdApplicationUntilProxyStarts does; it has no such mount.
"""

Names = tuple[str, ...]


def of_driver(containers: Names, *, mounting: Names) -> str:
    """Return the launcher's container with kubectl and kubexec.sh."""
    return next((name for name in containers if name in mounting), containers[0] if containers else "")


def of_ranks(named: str | None, containers: Names, *, mounting: Names, default: str, main: str) -> Names:
    """Return each container of a worker in which ranks may be started.

    named: by kubexec.sh (kubexec.container). mounting: containers with the mount of J-config. default: the pod's
    annotation, which kubectl follows since v1.21; kubectl-delivery v0.2.3 has v1.15 and takes the first. main:
    spec.mainContainer, with which the operator wrote the script once.
    """
    if named in containers:
        return (named,)
    if named == "" and default not in containers:
        return containers[:1]
    possible = {*mounting, default, main}
    return tuple(name for name in containers if name in possible) or containers[:1]
