"""The findings of `upgrade preflight`, the effect on each existing job, and the verdict; pure.

A pod's volumes cannot be changed, so a launcher that started without the host list never sees it
and must be recreated. The controller itself recreates a launcher that has not started yet, because
nothing is lost.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.install import Refused
from mpijob_elastic.install.server import OLDEST, OPTIONAL_KINDS
from mpijob_elastic.model import elastic_line, phrases
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.launch_command import MPIRUN
from mpijob_elastic.model.pod import Launcher, LauncherPhase
from upgrade import crd
from upgrade.crd import Crd, Form
from upgrade.operators import Kind, Operator


class Readiness(StrEnum):
    """The way in which a job becomes elastic."""

    ELASTIC = "elastic"
    LIVE = "live"
    RESTART = "restart"
    FIXED = "fixed"
    FINISHED = "finished"
    FOREIGN = "foreign"


@dataclass(frozen=True, kw_only=True)
class Adoption:
    """The effect on a job."""

    namespace: str
    name: str
    readiness: Readiness
    #: In words, with the cost of a restart.
    why: str


def adoption(view: JobView, *, now: float) -> Adoption:
    """Return the effect on the job; `now` in seconds since the epoch."""
    launcher = view.launcher
    if view.facts.finished or view.facts.deleting:
        readiness, why = Readiness.FINISHED, "it has ended"
    elif view.foreign or view.handed_over:
        readiness, why = (
            Readiness.FOREIGN,
            f"{view.foreign or 'another operator manages it'}; it is left alone",
        )
    elif not (view.elastic or view.facts.elastic):
        readiness, why = (
            Readiness.FIXED,
            f"its launcher names neither {names.KEY_DISCOVER_HOSTS} nor {names.KEY_ELASTIC}; "
            "nothing changes for it",
        )
    elif launcher is None or launcher.phase is LauncherPhase.WAITING:
        readiness, why = Readiness.LIVE, "its launcher has not started"
    elif launcher.phase is LauncherPhase.FINISHED:
        readiness, why = Readiness.FINISHED, "its launcher has ended"
    elif launcher.facts.mounts_discovery and view.config and view.config.memory is not None:
        readiness, why = Readiness.ELASTIC, "managed"
    elif launcher.facts.mounts_discovery:
        readiness, why = Readiness.LIVE, "its launcher mounts the host list"
    elif launcher.phase is LauncherPhase.DELIVERING:
        readiness, why = Readiness.LIVE, "its launcher has not started"
    else:
        why = f"{cost(launcher, now=now)}: {names.adopt(view.name, view.namespace)}"
        readiness = Readiness.RESTART
    return Adoption(namespace=view.namespace, name=view.name, readiness=readiness, why=why)


def vain_restart(view: JobView) -> str:
    """Return why a new launcher would not make the job elastic, with the way; "" if it would."""
    if view.launcher is None or not elastic_line.lacks_script(view, view.launcher):
        return ""
    return (
        "its command reads no host list, so a new launcher would not follow the job's size either, "
        f"and training would restart twice. Give the command "
        f"{elastic_line.command_for(view.facts.launch)} first: "
        f"`kubectl -n {view.namespace} edit mpijob {view.name}`"
    )


def older_command(view: JobView) -> str:
    """Return what to do for a launcher that sees the host list with a command that reads none.

    "" if its command reads the list, or if the job's present one does not either.
    """
    launcher = view.launcher
    if launcher is None or not launcher.facts.mounts_discovery:
        return ""
    launch, reads = (
        view.facts.launch,
        launcher.facts.names_discovery or launcher.facts.mounts_elastic,
    )
    if reads or launch is None or launch.discovery_script is None:
        return ""
    on = f"{view.name} -n {view.namespace}"
    return (
        f"{launcher.ref.name} runs an older command, which reads no host list. A suspension takes "
        f"a new launcher: type `{names.PROGRAM} suspend {on}`, and then "
        f"`{names.PROGRAM} resume {on}` (training restarts from its last checkpoint)"
    )


def cost(launcher: Launcher, *, now: float) -> str:
    """Return, in words, what is lost when this launcher is recreated."""
    trained = phrases.duration(max(0.0, now - launcher.facts.created_at))
    return (
        f"its launcher has run for {trained}; training starts again from its "
        "last checkpoint, if it has one"
    )


class Advice(IntEnum):
    """A verdict; the largest counts."""

    GO = 0
    CARE = 1
    NO = 2

    @property
    def words(self) -> str:
        """The verdict in words."""
        return _WORDS[self]


_WORDS = {Advice.GO: "go", Advice.CARE: "go with care", Advice.NO: "no"}

_WITHOUT = {
    "FlowSchema": "FlowSchema v1, so the Lease of our controllers queues with everybody's requests",
    "ValidatingAdmissionPolicy": (
        "ValidatingAdmissionPolicy, so only RBAC limits what our accounts may do, "
        "and evictions wait for no drain"
    ),
}
_OPERATORS = {
    Kind.KNOWN: (Advice.GO, "supported"),
    Kind.ELASTIC: (
        Advice.NO,
        "it changes the size of jobs itself; install nothing beside it, and leave the jobs to it "
        "by `mpijob-elastic uninstall --traces`",
    ),
    Kind.OTHER: (Advice.CARE, "untested; only v0.2.3 is supported"),
    Kind.UNKNOWN: (Advice.CARE, "the image does not tell the version; make sure that it is v0.2.3"),
}


@dataclass(frozen=True)
class PreflightFinding:
    """A topic, what it means for the upgrade, and what was found."""

    topic: str
    verdict: Advice
    text: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """All findings, and the effect on each job."""

    findings: tuple[PreflightFinding, ...]
    jobs: tuple[Adoption, ...]

    @property
    def verdict(self) -> Advice:
        """The worst verdict."""
        return max((one.verdict for one in self.findings), default=Advice.GO)

    def data(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {
            "verdict": self.verdict.name.lower(),
            "findings": [
                {**asdict(one), "verdict": one.verdict.name.lower()} for one in self.findings
            ],
            "jobs": [{**asdict(one), "readiness": str(one.readiness)} for one in self.jobs],
        }


def unknown(topic: str, what: str) -> PreflightFinding:
    """Return a finding for a question that this account may not ask."""
    return PreflightFinding(topic, Advice.CARE, f"unknown: this account may not {what}")


def kubernetes(version: str, minor: int) -> PreflightFinding:
    """Judge the version of Kubernetes."""
    if minor < OLDEST:
        return PreflightFinding(
            "kubernetes",
            Advice.NO,
            f"{version} is older than 1.{OLDEST}, the oldest that is supported",
        )
    if lacks := [words for kind, words in _WITHOUT.items() if minor < OPTIONAL_KINDS[kind]]:
        return PreflightFinding(
            "kubernetes", Advice.CARE, f"{version} has no {' and no '.join(lacks)}"
        )
    return PreflightFinding("kubernetes", Advice.GO, f"{version} serves everything that is used")


def definition(found: Crd | None) -> PreflightFinding:
    """Judge the definition of MPIJobs; found: None if there is none."""
    if found is None:
        return PreflightFinding(
            "definition", Advice.NO, f"there is no {crd.NAME}; install mpi-operator v0.2.3"
        )
    try:
        form = crd.form(found)
    except Refused as error:
        return PreflightFinding("definition", Advice.NO, str(error))
    meaning = "from before apiextensions v1" if form is Form.LEGACY else "apiextensions v1"
    scale = "scalable" if crd.is_scalable(found) else "without the scale subresource"
    text = f"{form} ({meaning}), stored as {', '.join(crd.stored(found))}, {scale}"
    return PreflightFinding("definition", Advice.GO, text)


def operators(found: Iterable[Operator] | None) -> list[PreflightFinding]:
    """Judge the operators of MPIJobs; found: None if this account may not look for them."""
    if found is None:
        return [
            unknown(
                "operator", "list Deployments or Pods in all namespaces; make sure that v0.2.3 runs"
            )
        ]
    none = PreflightFinding(
        "operator", Advice.CARE, "no image of an operator was found; make sure that v0.2.3 runs"
    )
    judged = [(operator, *_OPERATORS[operator.kind]) for operator in found]
    return [
        PreflightFinding("operator", verdict, f"{operator}: {meaning}")
        for operator, verdict, meaning in judged
    ] or [none]


def jobs(adoptions: Iterable[Adoption] | None) -> PreflightFinding:
    """Count how jobs become elastic; adoptions: None if this account may not list jobs."""
    if adoptions is None:
        return unknown("jobs", "list them in all namespaces")
    counts = dict.fromkeys(Readiness, 0)
    for job in adoptions:
        counts[job.readiness] += 1
    text = (
        ", ".join(f"{count} {readiness}" for readiness, count in counts.items() if count) or "none"
    )
    care = counts[Readiness.RESTART] or counts[Readiness.FOREIGN]
    return PreflightFinding("jobs", Advice.CARE if care else Advice.GO, text)


def plain_mpirun(views: Iterable[JobView]) -> PreflightFinding:
    """Count and name the running jobs whose mpirun elastic.sh could start."""
    found = [view for view in views if _could_have_elastic_sh(view)]
    text = "no running job starts a plain mpirun"
    if found:
        starts = "running job starts" if len(found) == 1 else "running jobs start"
        text = (
            f"{len(found)} {starts} a plain mpirun, and could change the size with "
            f"{names.ELASTIC_PATH} (docs/mpi.md): {_named(found)}"
        )
    return PreflightFinding("mpirun", Advice.GO, text)


def _could_have_elastic_sh(view: JobView) -> bool:
    """Tell whether a job runs that starts a plain mpirun, and that may become elastic."""
    launch = view.facts.launch
    if launch is None or launch.program not in MPIRUN or view.policy.enabled is not None:
        return False
    if view.elastic or view.facts.elastic or view.foreign or view.handed_over:
        return False
    return view.driver_running and not (view.facts.finished or view.facts.deleting)


def handover(views: Iterable[JobView], found: Iterable[Operator]) -> list[PreflightFinding]:
    """Foretell what an operator that is elastic itself does to jobs with elastic.sh.

    [v0.3.0] getOrCreateConfigMap writes all keys of the ConfigMap anew, and knows no elastic.sh.
    The launcher mounts it as a key that must exist: the kubelet then leaves all files of that mount
    as they are (pkg/volume/configmap, MakePayload), and no new launcher finds the script.
    """
    jobs = [view for view in views if view.facts.names_elastic and not view.facts.finished]
    if not jobs:
        return []
    is_there = any(operator.kind is Kind.ELASTIC for operator in found)
    text = (
        f"mpi-operator v0.3.0 and the training-operator remove {names.KEY_ELASTIC} from the "
        "ConfigMap of a job: the running launcher then learns of no other size, and a new one does "
        f"not start. Before one of them replaces v0.2.3, wait for the end of: {_named(jobs)}"
    )
    return [PreflightFinding("handover", Advice.CARE if is_there else Advice.GO, text)]


def _named(views: Iterable[JobView]) -> str:
    return phrases.listed(f"{view.namespace}/{view.name}" for view in views)


def faults(found: Iterable[str]) -> list[PreflightFinding]:
    """Name each job that mpi-operator v0.2.3 cannot work with."""
    return [PreflightFinding("faults", Advice.CARE, fault) for fault in found] or [
        PreflightFinding("faults", Advice.GO, "none")
    ]


def template_fields(found: Iterable[tuple[str, Iterable[str]]]) -> list[PreflightFinding]:
    """Name each job that could get back what the operator drops, with these fields."""
    advice = (
        f'to put back what mpi-operator v0.2.3 drops, annotate it {names.PUT_BACK}: "true"; only '
        "pods that are made from then on get the fields, so suspend and resume the job"
    )
    return [
        PreflightFinding("fields", Advice.GO, f"{job} has {phrases.listed(list(fields))}: {advice}")
        for job, fields in found
    ] or [PreflightFinding("fields", Advice.GO, "no running job has fields that are dropped")]


def labels(found: Iterable[str]) -> list[PreflightFinding]:
    """Name each rule that begins to match pods of a job by labels that the webhook puts back."""
    begins = (
        "begins to match its new pods, by labels that mpi-operator v0.2.3 drops and the webhook "
        "puts back: change the rule or the job, or leave labels as they are with "
        "--no-template-labels"
    )
    return [PreflightFinding("labels", Advice.CARE, f"{rule} {begins}") for rule in found] or [
        PreflightFinding("labels", Advice.GO, "no rule begins to match pods of jobs")
    ]
