import pytest

from tests.product.upgrade.definitions import definition
from upgrade import findings, operators
from upgrade.findings import Finding, Report, Verdict
from upgrade.job_impact import Adoption, Readiness


def adoptions(*readiness: Readiness) -> list[Adoption]:
    return [Adoption(namespace="ml", name=str(index), readiness=one, why="") for index, one in enumerate(readiness)]


@pytest.mark.parametrize(
    ("finding", "verdict", "text"),
    [
        (findings.kubernetes("v1.34.4", 34), Verdict.GO, "serves everything"),
        (findings.kubernetes("v1.29.0", 29), Verdict.CARE, "v1.29.0 has no ValidatingAdmissionPolicy"),
        (findings.kubernetes("v1.28.0", 28), Verdict.CARE, "v1.28.0 has no FlowSchema v1"),
        (findings.kubernetes("v1.27.0", 27), Verdict.CARE, "matchConditions"),
        (findings.definition(None), Verdict.NO, "install mpi-operator v0.2.3"),
        (findings.definition(definition("v0.2.3")), Verdict.GO, "legacy (from before apiextensions v1), stored as v1"),
        (findings.definition(definition("administrator")), Verdict.GO, "stored as v1, v1alpha2"),
        (findings.definition(definition("v0.3.0")), Verdict.NO, "v2beta1"),
        (findings.jobs(None), Verdict.CARE, "may not list"),
        (findings.jobs([]), Verdict.GO, "none"),
        (findings.jobs(adoptions(Readiness.FIXED, Readiness.LIVE, Readiness.LIVE)), Verdict.GO, "2 live, 1 fixed"),
        (findings.jobs(adoptions(Readiness.RESTART)), Verdict.CARE, "1 restart"),
        (findings.jobs(adoptions(Readiness.FOREIGN)), Verdict.CARE, "1 foreign"),
        (findings.faults([])[0], Verdict.GO, "none"),
        (findings.faults(["ml/a: bad", "ml/b: bad"])[1], Verdict.CARE, "ml/b: bad"),
    ],
)
def test_findings(finding: Finding, verdict: Verdict, text: str) -> None:
    assert finding.verdict is verdict
    assert text in finding.text


@pytest.mark.parametrize(
    ("tag", "verdict"),
    [("v0.2.3", Verdict.GO), ("v0.3.0", Verdict.NO), ("v0.2.1", Verdict.CARE), ("latest", Verdict.CARE)],
)
def test_operators(tag: str, verdict: Verdict) -> None:
    one = operators.recognise("Deployment a/b", f"mpi-operator:{tag}")
    assert one is not None
    [found] = findings.operators([one])
    assert found.verdict is verdict


def test_an_operator_that_cannot_be_seen_asks_for_care() -> None:
    assert [one.verdict for one in (*findings.operators(None), *findings.operators([]))] == [Verdict.CARE, Verdict.CARE]


def test_the_worst_finding_is_the_verdict() -> None:
    care = findings.jobs(None)
    report = Report(findings=(findings.jobs([]), care), jobs=tuple(adoptions(Readiness.LIVE)))
    assert report.verdict is Verdict.CARE
    assert Report(findings=(care, findings.definition(None)), jobs=()).verdict is Verdict.NO
    assert report.data()["verdict"] == "care"
    assert report.data()["jobs"] == [{"namespace": "ml", "name": "0", "readiness": "live", "why": ""}]
