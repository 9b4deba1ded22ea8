"""Judge each part of an installation, and the whole; pure.

The whole works if the webhook answers and a controller leads. What the user may not read is unknown
and never wrong.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum

import msgspec

from mpijob_elastic import names
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.installation.facts import (
    InstallationFacts,
    NotReadable,
    SeenDeployment,
    SeenWebhook,
)
from mpijob_elastic.cli.jobs.at_work import NOT_INSTALLED
from mpijob_elastic.cli.jobs.leader import NO_HOLDER
from mpijob_elastic.cli.rights import role_of
from mpijob_elastic.model.json_parts import seconds
from mpijob_elastic.model.phrases import duration, listed
from upgrade.findings import Advice
from upgrade.operators import Kind

# Other programs that we work beside, by their API group.
BESIDE = {
    "cert-manager.io": "cert-manager",
    "kueue.x-k8s.io": "Kueue",
    "keda.sh": "KEDA",
    "kai.alibabacloud.com": "et-operator",
    "metrics.k8s.io": "metrics-server",
    "monitoring.coreos.com": "Prometheus operator",
    "scheduling.koordinator.sh": "Koordinator",
    "scheduling.run.ai": "KAI",
    "scheduling.volcano.sh": "Volcano",
    "scheduling.x-k8s.io": "Coscheduling or KubeQueue",
    "external.metrics.k8s.io": "external metrics",
}
# A certificate is renewed 30 days before its end at the latest.
SOON = 15 * 86400.0  # seconds
_SCALE = "mpijobs/scale"
# What `status` asks of preflight, which also judges the rights to install and asks the webhook.
_OF_PREFLIGHT = "cluster and jobs"
# Commands without which an account neither creates nor changes a job.
_NEEDING_WEBHOOK = frozenset({"submit", "scale"})


class PartState(StrEnum):
    """How a part is."""

    OK = "ok"
    CARE = "care"
    WRONG = "wrong"
    UNKNOWN = "-"


class InstalledPart(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the installation, or of what it works beside."""

    part: str
    state: PartState
    #: In words, "-" if this user may not read it.
    found: str
    #: False if the part says something about the user or the cluster, not about the installation.
    counts: bool = True


class InstallationReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The installation."""

    #: A key of the table below.
    verdict: str
    #: The versions of this program, of the API server, and of what is installed; "" if unknown.
    cli: str
    kubernetes: str
    installed: str
    parts: tuple[InstalledPart, ...]
    #: The rights that are missing to show all, each as a sentence.
    missing_rights: tuple[str, ...]

    @property
    def exit_code(self) -> Exit:
        """The exit code of `status`."""
        return _ENDS[self.verdict][0]

    @property
    def last(self) -> str:
        """The verdict as a sentence."""
        return _ENDS[self.verdict][1]


_ENDS = {
    "works": (Exit.DONE, "mpijob-elastic works."),
    "care": (Exit.OTHERWISE, "mpijob-elastic works, but something needs care."),
    "unknown": (
        Exit.NOT_KNOWN,
        "Whether mpijob-elastic works is not known, because your account may not read enough.",
    ),
    "unasked": (
        Exit.NOT_KNOWN,
        "Whether mpijob-elastic works is not known, because its webhook could not be asked.",
    ),
    "reading": (
        Exit.DONE,
        "A controller of mpijob-elastic leads. Its webhook was not asked: your account may read "
        "jobs here and change none.",
    ),
    "broken": (
        Exit.REFUSED,
        "mpijob-elastic does not work; an administrator looks at "
        f"`kubectl get pods -A -l app.kubernetes.io/name={names.PROGRAM}` and their logs.",
    ),
    "unfinished": (
        Exit.REFUSED,
        "mpijob-elastic does not work, because its webhook is not registered: an installation or a "
        f"removal was interrupted, or somebody deleted it. An administrator runs `{names.INSTALL}` "
        "again, with the options of the installation, or `mpijob-elastic uninstall`.",
    ),
    "away": (
        Exit.REFUSED,
        "Nothing of mpijob-elastic answers here: it is not installed, does not cover the "
        "namespace, or does not work.",
    ),
    "apart": (
        Exit.REFUSED,
        "A controller of mpijob-elastic leads, but no webhook answers here: it does not cover the "
        "namespace, a label of the namespace leaves the webhook out, or the webhook does not work.",
    ),
    "uncovered": (
        Exit.REFUSED,
        "mpijob-elastic does not cover this namespace, so no command changes jobs here.",
    ),
    "left": (
        Exit.REFUSED,
        f"{NOT_INSTALLED}, but parts of it are left: an installation or a removal was interrupted. "
        f"An administrator runs that command again: `{names.INSTALL}` or `mpijob-elastic "
        "uninstall`.",
    ),
    "absent": (
        Exit.REFUSED,
        f"{NOT_INSTALLED}; an administrator runs `{names.INSTALL}`.",
    ),
}


def judged(facts: InstallationFacts, *, now: float) -> InstallationReport:
    """Return the report at time `now`."""
    parts = (
        _ok("command line", facts.cli),
        _product(facts),
        _kubernetes(facts),
        _operator(facts),
        _controller(facts, now=now),
        _webhook(facts),
        _certificates(facts, now=now),
        _namespaces(facts),
        _scale(facts),
        _beside(facts),
        _preflight(facts),
        _your_rights(facts),
    )
    return InstallationReport(
        verdict=_verdict(facts, parts),
        cli=facts.cli,
        kubernetes="" if isinstance(facts.kubernetes, NotReadable) else facts.kubernetes,
        installed=_installed_version(facts),
        parts=parts,
        missing_rights=tuple(_missing(facts)),
    )


def _verdict(facts: InstallationFacts, parts: Sequence[InstalledPart]) -> str:
    if _is_absent(facts):
        return "left" if facts.is_left else "absent"
    states = [one.state for one in parts if one.counts]
    if facts.webhook.registered is None and facts.webhook.answers is False:
        return "apart" if _state("controller", parts) is PartState.OK else "away"
    if PartState.WRONG in states:
        return "unfinished" if facts.webhook.registered is False else "broken"
    if not _covers(facts):
        return "uncovered"
    usual = "care" if PartState.CARE in states else "works"
    return _unknown_verdict(facts, parts) or usual


def _unknown_verdict(facts: InstallationFacts, parts: Sequence[InstalledPart]) -> str:
    """Return the verdict where a part that decides is unknown; "" where none is."""
    if _state("controller", parts) is PartState.UNKNOWN:
        return "unknown"
    if _state("webhook", parts) is PartState.UNKNOWN:
        return _unasked_verdict(facts, parts) if facts.webhook.unasked else "unknown"
    return ""


def _unasked_verdict(facts: InstallationFacts, parts: Sequence[InstalledPart]) -> str:
    """Return the verdict where the webhook was not asked and a controller leads.

    An account that changes no job does not need the webhook.
    """
    needs_care = any(one.counts and one.state is PartState.CARE for one in parts)
    blocked = (facts.blocked_commands or {}).keys()
    only_reads = blocked >= _NEEDING_WEBHOOK and "get" not in blocked
    return "reading" if only_reads and not needs_care else "unasked"


def _state(part: str, parts: Sequence[InstalledPart]) -> PartState:
    return next(one.state for one in parts if one.part == part)


def _covers(facts: InstallationFacts) -> bool:
    """Tell whether the installation covers the user's namespace, as far as that may be read."""
    if not isinstance(facts.controller, SeenDeployment):
        return True
    covered = facts.controller.namespaces
    return not covered or facts.namespace in covered


def _is_absent(facts: InstallationFacts) -> bool:
    """Tell whether nothing of the installation is there, as far as that may be read."""
    if facts.webhook.answers or facts.webhook.registered is not False:
        return False
    return facts.lease is None or facts.controller is None


def _ok(part: str, found: str, *, counts: bool = True) -> InstalledPart:
    return InstalledPart(part=part, state=PartState.OK, found=found, counts=counts)


def _care(part: str, found: str, *, counts: bool = True) -> InstalledPart:
    return InstalledPart(part=part, state=PartState.CARE, found=found, counts=counts)


def _wrong(part: str, found: str) -> InstalledPart:
    return InstalledPart(part=part, state=PartState.WRONG, found=found)


def _unknown(part: str, found: str = "-") -> InstalledPart:
    return InstalledPart(part=part, state=PartState.UNKNOWN, found=found)


def _kubernetes(facts: InstallationFacts) -> InstalledPart:
    found = facts.kubernetes
    if isinstance(found, NotReadable):
        return _unknown("kubernetes")
    return _ok("kubernetes", found, counts=False)


def version_of(image: str) -> str:
    """Return the tag of an image; "" if it has none."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2]


def _installed_version(facts: InstallationFacts) -> str:
    found = facts.controller
    return version_of(found.image) if isinstance(found, SeenDeployment) else ""


def _product(facts: InstallationFacts) -> InstalledPart:
    part = names.PROGRAM
    controller, webhook = facts.controller, facts.webhook_pods
    if controller is None and webhook is None:
        return _unknown(part, "not installed as Deployments")
    if not isinstance(controller, SeenDeployment):
        return _unknown(part)
    tag = version_of(controller.image)
    said = f"{tag or 'version unknown'} ({controller.image}), by {controller.by}"
    if isinstance(webhook, SeenDeployment) and webhook.image != controller.image:
        return _care(part, f"{said}; the webhook has another image: {webhook.image}")
    # A tag may end with the commit from which the image was built.
    if tag and tag.removeprefix("v").partition("-")[0] != facts.cli:
        return _care(part, f"{said}; this command line has another version")
    return _ok(part, said)


def _operator(facts: InstallationFacts) -> InstalledPart:
    found = facts.operators
    if isinstance(found, NotReadable):
        return _unknown("operator")
    if not found:
        return _care("operator", "no mpi-operator was found")
    said = "; ".join(f"{one.version or one.image} ({one.where})" for one in found)
    if any(one.kind is Kind.ELASTIC for one in found):
        return _wrong("operator", f"{said}: it changes the size of jobs itself")
    if any(one.kind is not Kind.KNOWN for one in found):
        return _care("operator", f"{said}: only v0.2.3 is supported")
    return _ok("operator", said)


def _controller(facts: InstallationFacts, *, now: float) -> InstalledPart:
    part, lease = "controller", facts.lease
    if isinstance(lease, NotReadable):
        return _unknown(part)
    if lease is None:
        return _wrong(part, f"there is no Lease {names.LEASE}")
    if facts.trouble or not lease.holder_identity:
        return _wrong(part, facts.trouble or NO_HOLDER)
    ago = max(0.0, now - (seconds(lease.renew_time) or now))
    said = f"{lease.holder_identity} leads, renewed {duration(round(ago))} ago"
    return _replicas(part, said, facts.controller)


def _replicas(part: str, said: str, found: SeenDeployment | NotReadable | None) -> InstalledPart:
    if not isinstance(found, SeenDeployment):
        return _ok(part, said)
    said = f"{said}; {found.ready} of {found.wanted} replicas ready"
    return _ok(part, said) if found.ready >= found.wanted else _care(part, said)


def _webhook(facts: InstallationFacts) -> InstalledPart:
    part, seen = "webhook", facts.webhook
    if trouble := _webhook_trouble(seen):
        return _wrong(part, trouble)
    if seen.doubt:
        return _care(part, f"{seen.doubt}: an administrator runs {names.INSTALL_AGAIN}")
    if seen.answers:
        return _replicas(part, f"answers for jobs in {seen.namespace}", facts.webhook_pods)
    if seen.left_out:
        return _replicas(part, f"not asked for jobs in {seen.left_out}", facts.webhook_pods)
    return _unknown(part, _as_far_as_seen(facts))


def _webhook_trouble(seen: SeenWebhook) -> str:
    """Return what is wrong with the webhook; "" for nothing, or if it was not asked."""
    if seen.lacks:
        return f"{seen.lacks}: an administrator runs {names.INSTALL_AGAIN}"
    if seen.answers:
        return ""
    if seen.registered is False:
        return "not registered, so the API server does not call it"
    if seen.trouble:
        return seen.trouble
    return f"does not answer for jobs in {seen.namespace}" if seen.answers is False else ""


def _as_far_as_seen(facts: InstallationFacts) -> str:
    """Return what is known of a webhook that was not asked."""
    known = ["registered"] if facts.webhook.registered else []
    if isinstance(facts.webhook_pods, SeenDeployment):
        known.append(f"{facts.webhook_pods.ready} of {facts.webhook_pods.wanted} replicas ready")
    return f"{', '.join(known)}; whether it answers is not known" if known else "-"


def _certificates(facts: InstallationFacts, *, now: float) -> InstalledPart:
    part, leaf, authorities = "certificates", facts.leaf, facts.authorities
    ends = []
    if isinstance(leaf, float):
        ends.append(("the webhook's", leaf))
    if authorities:
        ends.append(("its CA's", max(authorities)))
    if not ends:
        return _unknown(part)
    said = ", ".join(f"{of} ends {_at(end)}" for of, end in ends)
    first = min(end for _, end in ends)
    if first <= now:
        return _wrong(part, f"{said}: it is over")
    if first - now < SOON:
        return _care(part, f"{said}: it should have been renewed")
    return _ok(part, said)


def _at(end: float) -> str:
    return f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d}"


def _namespaces(facts: InstallationFacts) -> InstalledPart:
    found = facts.controller
    if not isinstance(found, SeenDeployment):
        return _unknown("namespaces")
    said = listed(found.namespaces) or "all"
    if facts.webhook.left_out:
        said = f"{said}; the webhook leaves out {facts.webhook.left_out}"
    if not _covers(facts):
        return _care("namespaces", f"{said}; {facts.namespace} is not covered", counts=False)
    return _ok("namespaces", said)


def _scale(facts: InstallationFacts) -> InstalledPart:
    part = "kubectl scale"
    if isinstance(facts.subresources, NotReadable):
        return _unknown(part)
    if facts.subresources is None:
        return _care(part, "the cluster serves no MPIJobs of v1: install mpi-operator v0.2.3")
    if _SCALE in facts.subresources:
        return _ok(part, "works, and so do HPAs")
    said = f"does not work: `{names.PROGRAM} upgrade scale` adds the subresource"
    return _care(part, said, counts=False)


def _beside(facts: InstallationFacts) -> InstalledPart:
    groups = facts.groups
    if isinstance(groups, NotReadable):
        return _unknown("found beside")
    found = [f"{program} ({groups[group]})" for group, program in BESIDE.items() if group in groups]
    return _ok("found beside", ", ".join(sorted(found)) or "none of what is optional", counts=False)


def _preflight(facts: InstallationFacts) -> InstalledPart:
    part, found = "preflight", facts.preflight
    if isinstance(found, NotReadable):
        return _unknown(part)
    verdict = max((one.verdict for one in found), default=Advice.GO)
    said = f"{_OF_PREFLIGHT}: {verdict.words}"
    if verdict is Advice.GO:
        return _ok(part, said, counts=False)
    topics = dict.fromkeys(one.topic for one in found if one.verdict is not Advice.GO)
    said = f"{said} ({', '.join(topics)}); `{names.PROGRAM} upgrade preflight`"
    return _care(part, said, counts=False)


def _your_rights(facts: InstallationFacts) -> InstalledPart:
    part, here, blocked = "your rights", f"in namespace {facts.namespace}", facts.blocked_commands
    if blocked is None:
        return _unknown(part)
    if not blocked:
        return _ok(part, f"all commands of jobs {here}", counts=False)
    role = role_of(right for lacks in blocked.values() for right in lacks)
    said = f"not enough {here} for {', '.join(blocked)}; the ClusterRole {role} gives them"
    return _care(part, said, counts=False)


def _missing(facts: InstallationFacts) -> Iterator[str]:
    """Yield a sentence for the missing rights to one verb in one place."""
    unseen: dict[tuple[str, str], list[str]] = {}
    for found in _read(facts):
        if isinstance(found, NotReadable):
            unseen.setdefault((found.verb, found.where), []).append(found.what)
    for (verb, where), what in unseen.items():
        yield f"your account may not {verb} {', '.join(what)} {where}"
    if facts.webhook.unasked:
        yield facts.webhook.unasked


def _read(facts: InstallationFacts) -> tuple[object, ...]:
    """Return what was read, or may not be read."""
    return (
        facts.kubernetes,
        facts.groups,
        facts.subresources,
        facts.lease,
        facts.controller,
        facts.webhook_pods,
        facts.leaf,
        facts.unregistered,
        facts.operators,
        facts.preflight,
    )
