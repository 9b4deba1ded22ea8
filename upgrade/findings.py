"""What `upgrade preflight` finds, and the verdict; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any

from mpijob_elastic.install.customize import MATCH_CONDITIONS_SINCE
from upgrade import crd_form
from upgrade.crd_form import Crd, Form
from upgrade.job_impact import Adoption, Readiness
from upgrade.operator_images import Kind, Operator
from upgrade.refusal import Refused

# https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
POLICIES_SINCE = 30


class Verdict(IntEnum):
    """As the exit code says it."""

    GO = 0
    CARE = 3
    NO = 4


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at, what it means, and what was found."""

    topic: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """All of it."""

    findings: tuple[Finding, ...]
    jobs: tuple[Adoption, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return max((one.verdict for one in self.findings), default=Verdict.GO)

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "verdict": self.verdict.name.lower(),
            "findings": [{**asdict(one), "verdict": one.verdict.name.lower()} for one in self.findings],
            "jobs": [{**asdict(one), "readiness": str(one.readiness)} for one in self.jobs],
        }


def unknown(topic: str, what: str) -> Finding:
    """What this account may not find out."""
    return Finding(topic=topic, verdict=Verdict.CARE, text=f"unknown: this account may not {what}")


def kubernetes(version: str, minor: int) -> Finding:
    """Which Kubernetes."""
    lacks = []
    if minor < MATCH_CONDITIONS_SINCE:
        lacks.append("matchConditions, so the hook on ConfigMaps is left out and the controller adds the key")
    if minor < POLICIES_SINCE:
        lacks.append("ValidatingAdmissionPolicy, so RBAC alone bounds what our accounts may do")
    verdict = Verdict.CARE if lacks else Verdict.GO
    text = f"{version} has no {' and no '.join(lacks)}" if lacks else f"{version} serves all that is used"
    return Finding(topic="kubernetes", verdict=verdict, text=text)


def definition(crd: Crd | None) -> Finding:
    """The definition of MPIJobs; None where there is none."""
    topic = "definition"
    if crd is None:
        return Finding(
            topic=topic, verdict=Verdict.NO, text=f"there is no {crd_form.NAME}; install mpi-operator v0.2.3"
        )
    try:
        form = crd_form.form(crd)
    except Refused as error:
        return Finding(topic=topic, verdict=Verdict.NO, text=str(error))
    meaning = "from before apiextensions v1" if form is Form.LEGACY else "apiextensions v1"
    text = f"{form} ({meaning}), stored as {', '.join(crd_form.stored(crd))}"
    return Finding(topic=topic, verdict=Verdict.GO, text=text)


def operators(found: Iterable[Operator] | None) -> list[Finding]:
    """Who looks after MPIJobs; None where this account may not look."""
    if found is None:
        return [unknown("operator", "list Deployments or Pods everywhere; make sure that it is v0.2.3")]
    findings = [_operator(one) for one in found]
    if not findings:
        text = "none was found by its image; make sure that the one that runs is v0.2.3"
        findings.append(Finding(topic="operator", verdict=Verdict.CARE, text=text))
    return findings


def jobs(adoptions: Iterable[Adoption] | None) -> Finding:
    """How many become elastic, and how; None where this account may not look."""
    if adoptions is None:
        return unknown("jobs", "list them everywhere")
    counts = dict.fromkeys(Readiness, 0)
    for one in adoptions:
        counts[one.readiness] += 1
    text = ", ".join(f"{count} {readiness}" for readiness, count in counts.items() if count) or "none"
    care = counts[Readiness.RESTART] or counts[Readiness.FOREIGN]
    return Finding(topic="jobs", verdict=Verdict.CARE if care else Verdict.GO, text=text)


def scheduler(name: str, *, served: bool) -> Finding:
    """Volcano or Kueue."""
    if not served:
        return Finding(topic=name, verdict=Verdict.GO, text="not there")
    verdict, text = {
        "volcano": (Verdict.GO, "there; the operator writes minMember of a PodGroup once, so it keeps the first size"),
        "kueue": (Verdict.CARE, "there; it knows MPIJob v2beta1 only: leave kubeflow.org/mpijob out of its frameworks"),
    }[name]
    return Finding(topic=name, verdict=verdict, text=text)


def _operator(one: Operator) -> Finding:
    verdict, meaning = {
        Kind.KNOWN: (Verdict.GO, "the one this is made for"),
        Kind.ELASTIC: (Verdict.NO, "it changes the size of jobs itself, so nothing is to be upgraded here"),
        Kind.OTHER: (Verdict.CARE, "never tried; this is made for v0.2.3"),
        Kind.UNKNOWN: (Verdict.CARE, "its image does not say which version; make sure that it is v0.2.3"),
    }[one.kind]
    return Finding(topic="operator", verdict=verdict, text=f"{one}: {meaning}")
