"""Labels of pod templates that the webhook puts back, and rules that match by them alone; pure.

[operator] newWorker and newLauncher (pkg/controllers/v1/mpi_job_controller.go) drop the labels of
the pod templates, so a rule that selects pods by such a label has never matched them. Once the
webhook puts the labels back, the rule matches: a required anti-affinity of the job's own templates
keeps its pods apart, and a NetworkPolicy, a PodDisruptionBudget or a Service of the namespace
applies to them. An affinity that begins to match only widens where a pod may run, so it is no such
rule. The operator's types have no topologySpreadConstraints, namespaceSelector and matchLabelKeys,
so these never reach a pod.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from mpijob_elastic import names
from mpijob_elastic.kube.meta import ObjectMeta
from mpijob_elastic.model.json_parts import Wire

Labels = Mapping[str, str]

# Labels that somebody else reads as their own, as newer operators do.
_TAKEN = ("training.kubeflow.org/", names.PREFIX)
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"(?=.{{1,{names.LONGEST_SUBDOMAIN}}}/){names.SUBDOMAIN}/"
_KEY = re.compile(rf"(?:{_DOMAIN})?{_WORD}")
_VALUE = re.compile(rf"(?:{_WORD})?")
# Characters of a selector, and terms of an affinity, that a message shows or that are looked at.
_SHOWN, _MOST_TERMS = 100, 50
_ROLES = {"Launcher": names.ROLE_LAUNCHER, "Worker": names.ROLE_WORKER}


def restored(labels: Labels, *, taken: tuple[str, ...] = ()) -> dict[str, str]:
    """Return those labels of a template that the webhook puts back.

    taken: how labels begin that a capability reads as its own. The API server does not check an
    MPIJob's templates, and would refuse a pod with a malformed label.
    """
    return {key: value for key, value in labels.items() if _may_be_copied(key, value, taken)}


def _may_be_copied(key: str, value: str, taken: tuple[str, ...]) -> bool:
    is_taken = key.startswith((*_TAKEN, *taken)) or key == names.LABEL_REPLICA_INDEX
    return not is_taken and bool(_KEY.fullmatch(key) and _VALUE.fullmatch(value))


class LabelRequirement(Wire, frozen=True):
    """An entry of a selector's `matchExpressions`."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None

    def matches(self, labels: Labels) -> bool:
        """Tell whether labels satisfy the requirement; none satisfy an unknown operator."""
        is_there, value = self.key in labels, labels.get(self.key)
        answers = {
            "In": is_there and value in (self.values or ()),
            "NotIn": not is_there or value not in (self.values or ()),
            "Exists": is_there,
            "DoesNotExist": not is_there,
        }
        return answers.get(self.operator, False)

    def __str__(self) -> str:
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{self.key} {self.operator}{values}"


class Selector(Wire, frozen=True):
    """A label selector; without entries it selects every pod."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelRequirement] | None = None

    def matches(self, labels: Labels) -> bool:
        """Tell whether a pod with these labels is selected."""
        expected = (self.match_labels or {}).items()
        return expected <= labels.items() and all(
            one.matches(labels) for one in self.match_expressions or ()
        )

    def __str__(self) -> str:
        expected = [f"{key}={value}" for key, value in (self.match_labels or {}).items()]
        return ", ".join([*expected, *map(str, self.match_expressions or ())])[:_SHOWN]


class _Term(Wire, frozen=True):
    label_selector: Selector | None = None
    namespaces: list[str] | None = None
    topology_key: str = ""


class _AntiAffinity(Wire, frozen=True):
    required_during_scheduling_ignored_during_execution: list[_Term] | None = None


class _Affinity(Wire, frozen=True):
    pod_anti_affinity: _AntiAffinity | None = None


class _PodSpec(Wire, frozen=True):
    affinity: _Affinity | None = None


class _TemplateMeta(Wire, frozen=True):
    labels: dict[str, str | None] | None = None


class _Template(Wire, frozen=True):
    metadata: _TemplateMeta | None = None
    spec: _PodSpec | None = None

    def terms(self) -> Sequence[_Term]:
        """Return the terms of the required anti-affinity."""
        affinity = (self.spec or _PodSpec()).affinity or _Affinity()
        rules = affinity.pod_anti_affinity or _AntiAffinity()
        return (rules.required_during_scheduling_ignored_during_execution or [])[:_MOST_TERMS]


class _Replica(Wire, frozen=True):
    template: _Template | None = None


class _Spec(Wire, frozen=True):
    mpi_replica_specs: dict[str, _Replica | None] | None = None


class _Job(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _Spec | None = None


_decoder = msgspec.json.Decoder(_Job)


class PodLabels(NamedTuple):
    """The labels of a job's launcher, or of its workers."""

    #: As the operator makes the pod.
    before: Labels
    #: With what the webhook puts back.
    after: Labels

    def begin_to_match(self, selector: Selector) -> bool:
        """Tell whether a selector selects the pod only by labels that are put back."""
        return selector.matches(self.after) and not selector.matches(self.before)


@dataclass(frozen=True, kw_only=True)
class Relabelled:
    """A job, the labels of its pods, and the rules of its own templates."""

    metadata: ObjectMeta
    #: By `Launcher` and `Worker`; empty if nothing is put back.
    pods: Mapping[str, PodLabels]
    #: What a required anti-affinity of a template selects, by `Launcher` and `Worker`: terms that
    #: look at the job's own namespace.
    terms: Mapping[str, Sequence[_Term]]

    def selected_by(self, selector: Selector) -> bool:
        """Tell whether a selector selects pods of the job only by labels that are put back."""
        return any(pod.begin_to_match(selector) for pod in self.pods.values())

    def is_restored(self, pod: ObjectMeta) -> bool:
        """Tell whether a pod of the job has the labels that are put back."""
        after = {one.before[names.LABEL_JOB_ROLE]: one.after for one in self.pods.values()}
        wanted = after.get(pod.labels.get(names.LABEL_JOB_ROLE, ""))
        return wanted is not None and wanted.items() <= pod.labels.items()

    def own_rules(self) -> Iterator[str]:
        """Yield, in words, each rule of a template that begins to select pods of the job itself."""
        for role, terms in self.terms.items():
            for term in terms:
                if term.label_selector and self.selected_by(term.label_selector):
                    yield (
                        f"{role}.template: the required anti-affinity to {term.label_selector} "
                        f"(by {term.topology_key[:_SHOWN]})"
                    )


def read(raw: bytes | msgspec.Raw, *, taken: tuple[str, ...] = ()) -> Relabelled:
    """Return what is put back on the pods of an MPIJob.

    Nothing is, for a job with the annotation `enabled: "false"`. taken: as for `restored`. Raises
    msgspec.DecodeError for anything but MPIJobs.
    """
    job = _decoder.decode(raw)
    replicas = (job.spec.mpi_replica_specs if job.spec else None) or {}
    templates = {
        role: (replica.template if (replica := replicas.get(role)) else None) or _Template()
        for role in _ROLES
    }
    is_left_alone = job.metadata.annotations.get(names.ENABLED) == "false"
    pods = {} if is_left_alone else _pods(job.metadata.name, templates, taken)
    namespace = job.metadata.namespace
    terms = {
        role: [term for term in one.terms() if not term.namespaces or namespace in term.namespaces]
        for role, one in templates.items()
    }
    return Relabelled(metadata=job.metadata, pods=pods, terms=terms)


def _pods(
    name: str, templates: Mapping[str, _Template], taken: tuple[str, ...]
) -> dict[str, PodLabels]:
    found = {}
    for role, template in templates.items():
        said = (template.metadata or _TemplateMeta()).labels or {}
        more = restored({key: value or "" for key, value in said.items()}, taken=taken)
        before = {
            names.LABEL_GROUP_NAME: names.GROUP,
            names.LABEL_JOB_NAME: name,
            names.LABEL_JOB_ROLE: _ROLES[role],
        }
        if more.keys() - before.keys():
            found[role] = PodLabels(before=before, after={**more, **before})
    return found


class _PolicySpec(Wire, frozen=True):
    pod_selector: Selector | None = None
    selector: msgspec.Raw = msgspec.Raw(b"null")


class _Selecting(Wire, frozen=True):
    metadata: ObjectMeta
    spec: _PolicySpec | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A NetworkPolicy, PodDisruptionBudget or Service, and the pods that it selects."""

    metadata: ObjectMeta
    #: None if it selects none.
    selector: Selector | None


_selecting = msgspec.json.Decoder(_Selecting)
_selector = msgspec.json.Decoder(Selector | None)
_plain = msgspec.json.Decoder(dict[str, str] | None)


def read_network_policy(raw: bytes) -> Rule:
    """Return a NetworkPolicy. Raises msgspec.DecodeError."""
    found = _selecting.decode(raw)
    return Rule(metadata=found.metadata, selector=(found.spec or _PolicySpec()).pod_selector)


def read_budget(raw: bytes) -> Rule:
    """Return a PodDisruptionBudget. Raises msgspec.DecodeError."""
    found = _selecting.decode(raw)
    selector = _selector.decode((found.spec or _PolicySpec()).selector)
    return Rule(metadata=found.metadata, selector=selector)


def read_service(raw: bytes) -> Rule:
    """Return a Service; without a selector it selects no pod. Raises msgspec.DecodeError."""
    found = _selecting.decode(raw)
    labels = _plain.decode((found.spec or _PolicySpec()).selector)
    return Rule(metadata=found.metadata, selector=Selector(match_labels=labels) if labels else None)


def rules_in_words(job: Relabelled, kind: str, rules: Iterable[Rule]) -> Iterator[str]:
    """Yield, in words, the rules of the job's namespace that begin to select its pods."""
    for rule in rules:
        is_near = rule.metadata.namespace == job.metadata.namespace
        if is_near and rule.selector is not None and job.selected_by(rule.selector):
            yield f"{kind} {rule.metadata.name} ({rule.selector})"
