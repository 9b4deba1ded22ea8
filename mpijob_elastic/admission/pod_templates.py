"""The pod templates of a job: warn about edits and rules, restore what the operator drops; pure.

mpi-operator v0.2.3 never changes an existing pod. [operator] newWorker and newLauncher
(pkg/controllers/v1/mpi_job_controller.go) mean to keep a template's labels, and drop them. Seccomp
profiles are fields that it does not know: with them a job can run where the Pod Security Standard
`restricted` is enforced
(https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted).
"""

from typing import Any

import msgspec

from mpijob_elastic import names
from mpijob_elastic.admission import json_patch, review
from mpijob_elastic.admission.json_patch import Patch
from mpijob_elastic.admission.mutate import AdmittedPod, role_of
from mpijob_elastic.model import pod_labels
from mpijob_elastic.model.job_facts import JobFacts
from mpijob_elastic.model.json_parts import Wire

_EMPTY = msgspec.Raw(b"null")
_BEGINS = (
    "begins to match the job's own pods: mpijob-elastic puts back labels that mpi-operator v0.2.3 "
    "drops. Remove the rule or the label, or pods may stay Pending"
)
# What that standard asks of a container, besides a seccomp profile.
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
}
_PROFILE = {"seccompProfile": {"type": "RuntimeDefault"}}
# [operator] The image of kubectl-delivery runs as root, which runAsNonRoot refuses to start. Any
# user can copy kubectl into the emptyDir. A user that the template names for the whole pod holds
# for kubectl-delivery, too.
_NOBODY = {"runAsUser": 65534}


class _Spec(Wire, frozen=True):
    mpi_replica_specs: dict[str, dict[str, msgspec.Raw] | None] | None = None


class _Templates(Wire, frozen=True):
    spec: _Spec | None = None

    def of(self, role: str) -> msgspec.Raw:
        """Return the template of Launcher or Worker, as it was sent."""
        specs = (self.spec.mpi_replica_specs if self.spec else None) or {}
        return (specs.get(role) or {}).get("template", _EMPTY)


_decoder = msgspec.json.Decoder(_Templates)


def changed(
    after: msgspec.Raw, before: msgspec.Raw, *, queued: bool = False, adopted: bool = False
) -> tuple[str, ...]:
    """Return warnings on the effects of an edit of a started job.

    queued: it has a queue. adopted: another warning says how it gets a new launcher, because its
    running one is not elastic, and only elastic jobs can be suspended.

    Raises msgspec.DecodeError for anything but MPIJobs.
    """
    new, old = _decoder.decode(after), _decoder.decode(before)
    warnings = []
    if not adopted and _differ(new.of("Launcher"), old.of("Launcher")):
        warnings.append(
            "Launcher.template: for the next launcher: suspend and resume "
            "the job (this restarts training)"
        )
    if _differ(new.of("Worker"), old.of("Worker")):
        warnings.append(
            "Worker.template: existing workers keep the old template; only workers "
            "created later get the new one"
        )
    if warnings and queued:
        warnings.append(
            "the job keeps the quota that its old pods asked for; to "
            "ask again, suspend and resume it"
        )
    return tuple(warnings)


def _differ(new: msgspec.Raw, old: msgspec.Raw) -> bool:
    # The API server writes both objects alike; differing bytes may still differ only in the order
    # of keys.
    return bytes(new) != bytes(old) and msgspec.json.decode(new) != msgspec.json.decode(old)


def missing_labels(pod: AdmittedPod, job: JobFacts | None, *, taken: tuple[str, ...] = ()) -> Patch:
    """Return a patch that adds labels of its template that a launcher or worker lacks.

    Labels that the pod has stay. job: the MPIJob as last seen, elastic or not; `enabled: "false"`
    leaves its pods as they are. taken: how labels begin that somebody else reads as their own.
    """
    role = role_of(pod, job) if job and job.policy.enabled is not False else ""
    if job is None or not role:
        return ()
    wanted = pod_labels.restored(job.pod_labels[role], taken=taken)
    return tuple(
        operation
        for key, value in wanted.items()
        if key not in pod.metadata.labels
        for operation in json_patch.labelling(key, value)
    )


def new_rules(
    after: msgspec.Raw, before: msgspec.Raw | None, *, taken: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return warnings on rules of the job's templates that begin to match its own pods.

    They match by labels that the operator drops and `missing_labels` puts back. before: None for a
    new job; after an edit only new rules are told. There are none for templates that cannot be
    read: the operator cannot read them either.
    """
    try:
        known = set() if before is None else {*pod_labels.read(before, taken=taken).own_rules()}
        found = dict.fromkeys(pod_labels.read(after, taken=taken).own_rules())
    except msgspec.DecodeError:
        return ()
    return tuple(f"{rule} {_BEGINS}" for rule in found if rule not in known)[: review.MOST]


def restored_security(pod: AdmittedPod, job: JobFacts | None) -> Patch:
    """Return a patch that restores the seccomp profiles of a launcher or worker.

    The template has the profiles, and the operator drops them. If all containers of a launcher are
    restricted with them, the patch restricts kubectl-delivery, too. job: as last seen, elastic or
    not.
    """
    role = role_of(pod, job) if job else ""
    if job is None or not role:
        return ()
    profiles, places = job.seccomp_profiles[role], _contexts(pod)
    patch: Patch = ()
    asked: dict[str, dict[str, Any]] = {}
    for name, (at, found) in places.items():
        asked[name] = found or {}
        if name not in profiles or "seccompProfile" in asked[name]:
            continue
        asked[name] = {**asked[name], "seccompProfile": profiles[name]}
        if found is None:
            patch += json_patch.adding(at=f"{at}/securityContext", value=asked[name])
        else:
            at_profile = f"{at}/securityContext/seccompProfile"
            patch += json_patch.adding(at=at_profile, value=profiles[name])
    whole, delivery = asked.pop(""), asked.pop(names.KUBECTL_DELIVERY, None)
    if delivery == {} and all(_is_restricted({**whole, **own}) for own in asked.values()):
        value = {**_RESTRICTED, **_PROFILE, **({} if whole.get("runAsUser") else _NOBODY)}
        patch += json_patch.adding(
            at=f"{places[names.KUBECTL_DELIVERY][0]}/securityContext", value=value
        )
    return patch


def _contexts(pod: AdmittedPod) -> dict[str, tuple[str, dict[str, Any] | None]]:
    """Return the place of each container and its security context, by name; "" is the pod."""
    places: dict[str, tuple[str, dict[str, Any] | None]] = {}
    fields = {"containers": pod.spec.containers, "initContainers": pod.spec.init_containers}
    for field, containers in fields.items():
        for index, one in enumerate(containers or ()):
            places[one.name or ""] = (f"/spec/{field}/{index}", one.security_context)
    places[""] = ("/spec", pod.spec.security_context)
    return places


def _is_restricted(context: dict[str, Any]) -> bool:
    match context:
        case {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": [*dropped]},
            "runAsNonRoot": True,
        }:
            return "ALL" in dropped and context.get("seccompProfile") not in (
                None,
                {"type": "Unconfined"},
            )
    return False
