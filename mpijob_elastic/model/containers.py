"""The container that holds the driver, the containers that may hold ranks, and the seccomp profiles of all.

[operator] A template's first container gets the mount of J-config, in launcher and workers. A sidecar injector may put
another before it, as Istio's holdApplicationUntilProxyStarts does; it has no such mount.
[operator] It drops seccomp profiles, as the types of Kubernetes 1.15 lack the field.
"""

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.model.mpijob import PodSpec

Names = tuple[str, ...]
Profile = Mapping[str, str]

# Characters of a container's name, which is a DNS label, and of a profile's path: what is kept of a job is bounded.
_LONGEST_NAME, _LONGEST_PATH = 63, 253


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


def seccomp_profiles(pod: PodSpec) -> Mapping[str, Profile]:
    """Return the profile of each container by its name, and the pod's own under ""."""
    containers = (one for one in (*(pod.init_containers or ()), *(pod.containers or ())) if one)
    contexts = {**{one.name or "": one.security_context for one in containers}, "": pod.security_context}
    found = ((name, _profile(context)) for name, context in contexts.items() if len(name) <= _LONGEST_NAME)
    return {name: profile for name, profile in found if profile}


def _profile(context: Any) -> Profile | None:
    # The API server does not check an MPIJob's templates, and would refuse a pod with a malformed profile.
    match context:
        case {"seccompProfile": {"type": "RuntimeDefault" | "Unconfined" as kind}}:
            return {"type": kind}
        case {"seccompProfile": {"type": "Localhost", "localhostProfile": str(path)}}:
            descends = len(path) <= _LONGEST_PATH and not path.startswith("/") and ".." not in path.split("/")
            return {"type": "Localhost", "localhostProfile": path} if descends else None
    return None
