"""The seccomp profiles of a pod template: [operator] drops them, as the types of Kubernetes 1.15 lack the field."""

from collections.abc import Mapping
from typing import Any

from mpijob_elastic.model.mpijob import PodSpec

Profile = Mapping[str, str]

# Characters of a container's name, which is a DNS label, and of a profile's path: what is kept of a job is bounded.
_LONGEST_NAME, _LONGEST_PATH = 63, 253


def profiles(pod: PodSpec) -> Mapping[str, Profile]:
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
