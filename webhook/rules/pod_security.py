"""Let a job run where the Pod Security Standard `restricted` is enforced, if its templates satisfy it; pure.

https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
"""

from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model.job_facts import JobFacts
from webhook.rules import json_patch
from webhook.rules.json_patch import Patch
from webhook.rules.mutate import Pod, role_of

# What the standard asks of a container, with a seccomp profile.
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
_PROFILE = {"seccompProfile": {"type": "RuntimeDefault"}}
# [operator] The image of kubectl-delivery runs as root, which runAsNonRoot refuses to start. Any user can copy kubectl
# into the emptyDir. A user that the template names for the whole pod holds for kubectl-delivery, too.
_NOBODY = {"runAsUser": 65534}


def restored(pod: Pod, job: JobFacts | None) -> Patch:
    """Return a patch for a launcher or worker of a job, elastic or not, as last seen.

    It puts back the seccomp profiles of the template, which the operator drops. If all containers of a launcher are
    restricted with them, it restricts kubectl-delivery, too.
    """
    role = role_of(pod, job) if job else ""
    if job is None or not role:
        return ()
    spec, profiles = pod.spec, job.seccomp_profiles[role]
    places = {
        one.name or "": (f"/spec/{field}/{index}", one.security_context)
        for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers))
        for index, one in enumerate(containers or ())
    }
    patch: Patch = ()
    asked: dict[str, dict[str, Any]] = {}
    for name, (at, found) in {**places, "": ("/spec", spec.security_context)}.items():
        asked[name] = found or {}
        if name in profiles and "seccompProfile" not in asked[name]:
            asked[name] = {**asked[name], "seccompProfile": profiles[name]}
            field, value = ("", asked[name]) if found is None else ("/seccompProfile", profiles[name])
            patch += json_patch.adding(at=f"{at}/securityContext{field}", value=value)
    whole, delivery = asked.pop(""), asked.pop(names.KUBECTL_DELIVERY, None)
    if delivery == {} and all(_is_restricted({**whole, **own}) for own in asked.values()):
        value = {**_RESTRICTED, **_PROFILE, **({} if whole.get("runAsUser") else _NOBODY)}
        patch += json_patch.adding(at=f"{places[names.KUBECTL_DELIVERY][0]}/securityContext", value=value)
    return patch


def _is_restricted(context: dict[str, Any]) -> bool:
    match context:
        case {"allowPrivilegeEscalation": False, "capabilities": {"drop": [*dropped]}, "runAsNonRoot": True}:
            return "ALL" in dropped and context.get("seccompProfile") not in (None, {"type": "Unconfined"})
    return False
