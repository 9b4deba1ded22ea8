"""The rights that each command needs, and a missing right in words.

docs/rights.md has the table, and tests compare it with the ClusterRoles mpijob-elastic-view and
mpijob-elastic-edit (config/components/user-roles) and with what commands ask of an API server.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mpijob_elastic.kube import errors

VIEW, EDIT = "mpijob-elastic-view", "mpijob-elastic-edit"
# RBAC's words (apiserver, pkg/endpoints/handlers/responsewriters/errors.go).
_LACKS = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" '
    r'in API group "(?P<group>[^"]*)"(?: in the namespace "(?P<namespace>[^"]*)")?'
)


class UserRight(NamedTuple):
    """The right to one verb on a resource of a namespace."""

    #: The API group; "" for the core group.
    group: str
    #: The plural, with its subresource.
    resource: str
    verb: str

    @property
    def of(self) -> str:
        """The resource as `kubectl auth can-i` takes it."""
        plural, slash, subresource = self.resource.partition("/")
        return f"{plural}.{self.group}{slash}{subresource}" if self.group else self.resource


@dataclass(frozen=True, kw_only=True)
class CommandRights:
    """The rights that a command uses in the namespace of the job."""

    #: Without one of these the command fails.
    needed: frozenset[UserRight]
    #: Without one of these the command shows or knows less.
    useful: frozenset[UserRight] = frozenset()
    #: What is missing without `useful`, in words.
    without: str = ""


def rights(*lines: str) -> frozenset[UserRight]:
    """Return rights from lines such as `mpijobs.kubeflow.org: get, list`."""
    return frozenset(right for line in lines for right in _read(line))


def _read(line: str) -> Iterator[UserRight]:
    resource, _, verbs = line.partition(": ")
    whole, slash, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    for verb in verbs.split(", "):
        yield UserRight(group, f"{plural}{slash}{subresource}", verb)


_JOBS = rights("mpijobs.kubeflow.org: list", "pods: list", "configmaps: list")
_FOLLOWED = rights("mpijobs.kubeflow.org: watch", "pods: watch", "configmaps: watch")
_LOOK = rights("pods/exec: get, create")
_QUEUES = rights(
    "workloads.kueue.x-k8s.io: list, watch", "queueunits.scheduling.x-k8s.io: list, watch"
)
# Only admin of the namespace has it, see config/components/user-roles/view.yaml.
_ROLES = rights("roles.rbac.authorization.k8s.io: get, list, watch")
_CAUSES = (
    rights("pods/log: get", "events: list", "pods: watch", "poddisruptionbudgets.policy: list")
    | _LOOK
    | _QUEUES
    | _ROLES
)
# A job that is created is followed to its ranks or to the end of its log.
_FOLLOWING = _JOBS | _CAUSES | rights("mpijobs.kubeflow.org: get", "pods: get", "configmaps: watch")
# A dry run asks the webhook whether it answers.
_CREATES = rights("mpijobs.kubeflow.org: create")
_OWNERS = rights("horizontalpodautoscalers.autoscaling: list")
_CHANGE = CommandRights(
    needed=_JOBS | rights("mpijobs.kubeflow.org: patch"),
    useful=_OWNERS | _CAUSES | _CREATES,
    without="who else sets the size, whether ranks run, why the change takes long",
)

#: The rights of each command of users; of kubectl's, those that the documentation praises.
COMMANDS: Mapping[str, CommandRights] = {
    "get": CommandRights(
        needed=_JOBS,
        useful=_FOLLOWED | _LOOK | _QUEUES | _ROLES,
        without="`--watch`, progress, the place in a queue, the column EXEC",
    ),
    "watch": CommandRights(
        needed=_JOBS | _FOLLOWED,
        useful=_QUEUES | _ROLES,
        without="the place in a queue",
    ),
    "explain": CommandRights(
        needed=_JOBS,
        useful=_CAUSES,
        without="whether ranks run, and some causes",
    ),
    "logs": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "pods: get", "pods/log: get"),
        useful=_LOOK | rights("mpijobs.kubeflow.org: list"),
        without="`--worker`, and the worker of each line with `--rank`",
    ),
    "events": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "pods: list", "events: list"),
        useful=rights("mpijobs.kubeflow.org: list", "events: watch"),
        without="`--watch`, and similar names, if there is no such job",
    ),
    "attach": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "pods: get") | _LOOK,
        useful=rights("mpijobs.kubeflow.org: list"),
        without="similar names, if there is no such job",
    ),
    "top": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "pods: list", "pods.metrics.k8s.io: list"),
        useful=_LOOK | rights("mpijobs.kubeflow.org: list"),
        without="GPUs, and without a name all jobs",
    ),
    "history": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "configmaps: get"),
        useful=rights("mpijobs.kubeflow.org: list"),
        without="similar names, if there is no such job",
    ),
    "dashboard": CommandRights(
        needed=_JOBS | _FOLLOWED,
        useful=_CAUSES
        | _OWNERS
        | rights("mpijobs.kubeflow.org: get, patch", "configmaps: get", "events: watch"),
        without="each box of the page whose objects you may not read; the buttons without patch",
    ),
    "submit": CommandRights(
        needed=rights("mpijobs.kubeflow.org: create"),
        useful=_FOLLOWING,
        without="`--wait` and `--logs`",
    ),
    "resubmit": CommandRights(
        needed=_JOBS | rights("mpijobs.kubeflow.org: get, create"),
        useful=_FOLLOWING | _ROLES,
        without="`--wait` and `--logs`",
    ),
    "scale": _CHANGE,
    "scaleout": _CHANGE,
    "scalein": _CHANGE,
    "suspend": _CHANGE,
    "resume": _CHANGE,
    "set bounds": CommandRights(
        needed=_JOBS | rights("mpijobs.kubeflow.org: patch"),
        useful=_QUEUES | _ROLES | _CREATES,
        without="nothing",
    ),
    "delete": CommandRights(
        needed=_JOBS | rights("mpijobs.kubeflow.org: delete"),
        useful=_QUEUES | _ROLES,
        without="nothing",
    ),
    "prune": CommandRights(
        needed=_JOBS | rights("mpijobs.kubeflow.org: delete"),
        useful=_QUEUES | _ROLES,
        without="nothing",
    ),
    "upgrade adopt": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get, create", "configmaps: get", "pods: list, delete"),
    ),
    "kubectl get mpijob": CommandRights(needed=rights("mpijobs.kubeflow.org: get, list, watch")),
    "kubectl scale": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get", "mpijobs.kubeflow.org/scale: get, update, patch")
    ),
    "kubectl edit, annotate": CommandRights(
        needed=rights("mpijobs.kubeflow.org: get, update, patch")
    ),
}
# Commands that have a second name.
_OTHER_NAMES = {"list": "get"}
#: The rights that no ClusterRole of ours gives, although commands use them.
NOT_GIVEN = _ROLES


def role_of(wanted: Iterable[UserRight]) -> str:
    """Return the narrower of our ClusterRoles that gives these rights, "" if none gives all."""
    return next((role for role, given in _GIVEN.items() if given.issuperset(wanted)), "")


def given(role: str) -> frozenset[UserRight]:
    """Return the rights that a ClusterRole of ours gives."""
    return _GIVEN[role]


def _all_of(chosen: Iterable[CommandRights]) -> frozenset[UserRight]:
    return frozenset().union(*(one.needed | one.useful for one in chosen)) - NOT_GIVEN


_WRITES = frozenset({"create", "update", "patch", "delete"})
_EVERYTHING = _all_of(COMMANDS.values())
_GIVEN: Mapping[str, frozenset[UserRight]] = {
    VIEW: frozenset(right for right in _EVERYTHING - _LOOK if right.verb not in _WRITES),
    EDIT: _EVERYTHING,
}


def blocked_commands(
    rules: Iterable[Mapping[str, Sequence[str]]],
) -> dict[str, frozenset[UserRight]]:
    """Return the commands that lack a right they need, and these rights.

    rules: the `resourceRules` of a SelfSubjectRulesReview in the namespace of the jobs.
    """
    known = [rule for rule in rules if not rule.get("resourceNames")]
    missing = {
        name: frozenset(right for right in used.needed if not _is_in(known, right))
        for name, used in COMMANDS.items()
    }
    return {name: lacks for name, lacks in missing.items() if lacks}


def _is_in(rules: Iterable[Mapping[str, Sequence[str]]], right: UserRight) -> bool:
    _, slash, subresource = right.resource.partition("/")
    wanted = {
        "verbs": {"*", right.verb},
        "apiGroups": {"*", right.group},
        "resources": {"*", right.resource, f"*{slash}{subresource}"},
    }
    return any(
        all(not some.isdisjoint(rule.get(key) or ()) for key, some in wanted.items())
        for rule in rules
    )


def command_of(words: Sequence[str]) -> str:
    """Return the command of the table that was typed; "" for one that is not in it.

    words: what was typed behind the program, the command first.
    """
    two = " ".join(words[:2])
    one = _OTHER_NAMES.get(" ".join(words[:1]), " ".join(words[:1]))
    return next((name for name in (two, one) if name in COMMANDS), "")


def missing_right(error: Exception, command: str = "") -> str:
    """Return the right that is missing, as a sentence; "" if no missing right is the error.

    command: the command of the table that lacks the right, "" for an unknown one. The sentence
    names a role that gives all that the command needs, so that nobody has to ask twice.
    """
    found = _LACKS.search(error.message) if isinstance(error, errors.Forbidden) else None
    if found is None:
        return ""
    right = UserRight(found["group"], found["resource"], found["verb"])
    said = f"your account may not {right.verb} {right.of}"
    if found["namespace"]:
        return f"{said} in namespace {found['namespace']}{_giving_role(right, command)}"
    if not role_of([right]):
        return said
    said = f"{said} in all namespaces"
    if not command:
        return said
    role = role_of({right, *COMMANDS[command].needed})
    return f"{said}: name one by -n NAMESPACE, or ask for a ClusterRoleBinding to {role}"


def _giving_role(right: UserRight, command: str) -> str:
    """Return which role gives a right in a namespace, as a part of a sentence; "" if none does."""
    if not role_of([right]):
        return ""
    if not command:
        return f"; the ClusterRole {role_of([right])} gives this right"
    role = role_of({right, *COMMANDS[command].needed})
    return f"; the ClusterRole {role} gives all rights that `{command}` needs"


def in_words(error: errors.KubeError) -> str:
    """Return what is wrong, in a line: a missing right in plain words, or the error's own words.

    A refusal comes without its HTTP code.
    """
    own = error.message if isinstance(error, errors.Forbidden) else str(error)
    return missing_right(error) or " ".join(own.split())
