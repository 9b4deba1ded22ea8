"""What `status` makes of an installation: each part, the whole, and the exit code."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from mpijob_elastic import __version__
from mpijob_elastic.cli import rights
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.installation import reading, status
from mpijob_elastic.cli.installation.facts import (
    InstallationFacts,
    NotReadable,
    SeenDeployment,
    SeenWebhook,
)
from mpijob_elastic.cli.installation.parts import InstallationReport, judged, version_of
from mpijob_elastic.kube.lease import LeaseSpec, micro_time
from upgrade.findings import Advice, PreflightFinding, Report
from upgrade.operators import Kind, Operator

NOW = 1_900_000_000.0
DAY = 86400.0
NO = NotReadable(verb="list", what="them", where="everywhere")
IMAGE = f"registry.example/team/mpijob-elastic:{__version__}"
PODS = SeenDeployment(image=IMAGE, by="`mpijob-elastic install`", ready=2, wanted=2)
LEADS = LeaseSpec(
    holder_identity="a-pod", renew_time=micro_time(datetime.fromtimestamp(NOW - 1, UTC))
)
V0_2_3 = Operator(
    where="Deployment mpi-operator/mpi-operator",
    image="mpioperator/mpi-operator:v0.2.3",
    version="0.2.3",
    kind=Kind.KNOWN,
)
ANSWERS = SeenWebhook(registered=True, answers=True, namespace="ml")
FACTS = InstallationFacts(
    cli=__version__,
    kubernetes="v1.34.4",
    groups={"kueue.x-k8s.io": "v1beta2", "apps": "v1"},
    subresources=frozenset({"mpijobs", "mpijobs/scale"}),
    lease=LEADS,
    trouble="",
    is_left=True,
    controller=PODS,
    webhook_pods=PODS,
    webhook=ANSWERS,
    unregistered=None,
    authorities=[NOW + 300 * DAY],
    leaf=NOW + 60 * DAY,
    operators=[V0_2_3],
    preflight=[PreflightFinding("kubernetes", Advice.GO, "fine")],
    namespace="ml",
    blocked_commands={},
)
NOT_THERE: dict[str, Any] = {
    "lease": None,
    "is_left": False,
    "controller": None,
    "webhook_pods": None,
    "webhook": SeenWebhook(registered=False, answers=False, namespace="ml"),
    "authorities": [],
    "leaf": None,
}


def report(**changed: Any) -> InstallationReport:
    return judged(replace(FACTS, **changed), now=NOW)


def found(part: str, of: InstallationReport) -> tuple[str, str]:
    [one] = [one for one in of.parts if one.part == part]
    return one.state, one.found


def test_an_installation_that_works_is_one_screen() -> None:
    lines = status.lines(report())
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 160
    assert lines[-1] == "mpijob-elastic works."
    assert not [line for line in lines if line.startswith("Not shown")]
    assert report().exit_code is Exit.DONE
    assert {one.state for one in report().parts} == {"ok"}


def deployment(**changed: Any) -> SeenDeployment:
    return replace(PODS, **changed)


ONLY_READS = {
    "submit": rights.rights("mpijobs.kubeflow.org: create"),
    "scale": rights.rights("mpijobs.kubeflow.org: patch"),
}
NOTHING = {**ONLY_READS, "get": rights.rights("mpijobs.kubeflow.org: list")}
UNASKED = replace(ANSWERS, answers=None, unasked="no right to create")
FINDINGS = [
    PreflightFinding("operator", Advice.CARE, "another one"),
    PreflightFinding("jobs", Advice.GO, "none"),
    PreflightFinding("labels", Advice.CARE, "a rule"),
    PreflightFinding("labels", Advice.CARE, "another rule"),
]


@pytest.mark.parametrize(
    ("changed", "part", "state", "words"),
    [
        ({}, "mpijob-elastic", "ok", f"{__version__} ({IMAGE}), by `mpijob-elastic install`"),
        (
            {
                "controller": deployment(image="x:0.1.0"),
                "webhook_pods": deployment(image="x:0.1.0"),
            },
            "mpijob-elastic",
            "care",
            "0.1.0 (x:0.1.0), by `mpijob-elastic install`; this command line has another version",
        ),
        (
            {"controller": deployment(image=f"x:v{__version__}-abc"), "webhook_pods": NO},
            "mpijob-elastic",
            "ok",
            f"v{__version__}-abc (x:v{__version__}-abc), by `mpijob-elastic install`",
        ),
        (
            {"controller": deployment(image=f"x:{__version__}0"), "webhook_pods": NO},
            "mpijob-elastic",
            "care",
            f"{__version__}0 (x:{__version__}0), by `mpijob-elastic install`; this command line "
            "has another version",
        ),
        (
            {"webhook_pods": deployment(image="x:2")},
            "mpijob-elastic",
            "care",
            f"{__version__} ({IMAGE}), by `mpijob-elastic install`; the webhook has another image: "
            "x:2",
        ),
        (
            {"controller": deployment(image="x@sha256:0"), "webhook_pods": NO},
            "mpijob-elastic",
            "ok",
            "version unknown (x@sha256:0), by `mpijob-elastic install`",
        ),
        ({"controller": NO}, "mpijob-elastic", "-", "-"),
        ({}, "controller", "ok", "a-pod leads, renewed 1s ago; 2 of 2 replicas ready"),
        (
            {"controller": deployment(ready=1)},
            "controller",
            "care",
            "a-pod leads, renewed 1s ago; 1 of 2 replicas ready",
        ),
        ({"controller": NO}, "controller", "ok", "a-pod leads, renewed 1s ago"),
        ({"trouble": "no controller runs"}, "controller", "wrong", "no controller runs"),
        (
            {"lease": LeaseSpec()},
            "controller",
            "wrong",
            "no controller of mpijob-elastic is the leader",
        ),
        ({"lease": None}, "controller", "wrong", "there is no Lease mpijob-elastic-controller"),
        ({"lease": NO}, "controller", "-", "-"),
        ({}, "webhook", "ok", "answers for jobs in ml; 2 of 2 replicas ready"),
        (
            {"webhook": replace(ANSWERS, answers=False)},
            "webhook",
            "wrong",
            "does not answer for jobs in ml",
        ),
        (
            {"webhook": replace(ANSWERS, answers=False, trouble="no replica is ready")},
            "webhook",
            "wrong",
            "no replica is ready",
        ),
        (
            {"webhook": replace(ANSWERS, answers=None, unasked="no right")},
            "webhook",
            "-",
            "registered, 2 of 2 replicas ready; whether it answers is not known",
        ),
        (
            {"webhook": SeenWebhook(registered=None, answers=None), "webhook_pods": NO},
            "webhook",
            "-",
            "-",
        ),
        (
            {"webhook": replace(ANSWERS, lacks="it changes nothing")},
            "webhook",
            "wrong",
            "it changes nothing: an administrator runs `mpijob-elastic install` with the options of "
            "the installation",
        ),
        (
            {"webhook": replace(ANSWERS, registered=False, answers=False)},
            "webhook",
            "wrong",
            "not registered, so the API server does not call it",
        ),
        ({}, "certificates", "ok", "the webhook's ends 2030-05-16, its CA's ends 2031-01-11"),
        (
            {"leaf": NOW + 3 * DAY, "authorities": []},
            "certificates",
            "care",
            "the webhook's ends 2030-03-20: it should have been renewed",
        ),
        (
            {"leaf": NOW - DAY, "authorities": []},
            "certificates",
            "wrong",
            "the webhook's ends 2030-03-16: it is over",
        ),
        ({"leaf": NO}, "certificates", "ok", "its CA's ends 2031-01-11"),
        ({"leaf": NO, "authorities": []}, "certificates", "-", "-"),
        ({}, "namespaces", "ok", "all"),
        (
            {"controller": deployment(namespaces=("ml", "b"))},
            "namespaces",
            "ok",
            "ml, b",
        ),
        (
            {"controller": deployment(namespaces=("a", "b"))},
            "namespaces",
            "care",
            "a, b; ml is not covered",
        ),
        ({}, "kubectl scale", "ok", "works, and so do HPAs"),
        (
            {"subresources": frozenset({"mpijobs"})},
            "kubectl scale",
            "care",
            "does not work: `mpijob-elastic upgrade scale` adds the subresource",
        ),
        ({}, "found beside", "ok", "Kueue (v1beta2)"),
        ({"groups": {}}, "found beside", "ok", "none of what is optional"),
        ({}, "operator", "ok", "0.2.3 (Deployment mpi-operator/mpi-operator)"),
        ({"operators": []}, "operator", "care", "no mpi-operator was found"),
        ({"operators": NO}, "operator", "-", "-"),
        ({}, "preflight", "ok", "cluster and jobs: go"),
        ({"preflight": NO}, "preflight", "-", "-"),
        (
            {"preflight": FINDINGS},
            "preflight",
            "care",
            "cluster and jobs: go with care (operator, labels); `mpijob-elastic upgrade preflight`",
        ),
        (
            {"preflight": [PreflightFinding("faults", Advice.NO, "bad")]},
            "preflight",
            "care",
            "cluster and jobs: no (faults); `mpijob-elastic upgrade preflight`",
        ),
        ({}, "your rights", "ok", "all commands of jobs in namespace ml"),
        (
            {"blocked_commands": ONLY_READS},
            "your rights",
            "care",
            "not enough in namespace ml for submit, scale; the ClusterRole mpijob-elastic-edit "
            "gives them",
        ),
        (
            {"blocked_commands": {"get": rights.rights("pods: list")}},
            "your rights",
            "care",
            "not enough in namespace ml for get; the ClusterRole mpijob-elastic-view gives them",
        ),
        ({"blocked_commands": None}, "your rights", "-", "-"),
    ],
)
def test_each_part(changed: dict[str, Any], part: str, state: str, words: str) -> None:
    assert found(part, report(**changed)) == (state, words)


@pytest.mark.parametrize("worst", Advice)
@pytest.mark.parametrize("topic", ["kubernetes", "operator", "definition", "kueue"])
def test_preflight_has_the_verdict_of_preflight(topic: str, worst: Advice) -> None:
    """Whether or not another part shows the same."""
    findings = (PreflightFinding("jobs", Advice.GO, "none"), PreflightFinding(topic, worst, "so"))
    whole = Report(findings=findings, jobs=())
    state, words = found("preflight", report(preflight=findings))
    assert words.partition(": ")[2].partition(" (")[0] == whole.verdict.words
    assert (state == "ok") is (whole.verdict is Advice.GO)


ELASTIC = replace(V0_2_3, version="0.4.0", kind=Kind.ELASTIC)


@pytest.mark.parametrize(
    ("changed", "verdict", "code"),
    [
        ({}, "works", Exit.DONE),
        # What is about the user, or about the jobs of the cluster.
        ({"preflight": FINDINGS, "blocked_commands": {"top": frozenset()}}, "works", Exit.DONE),
        ({"subresources": frozenset({"mpijobs"})}, "works", Exit.DONE),
        ({"leaf": NO, "operators": NO, "preflight": NO, "controller": NO}, "works", Exit.DONE),
        ({"controller": deployment(ready=1)}, "care", Exit.OTHERWISE),
        ({"operators": []}, "care", Exit.OTHERWISE),
        ({"lease": NO}, "unknown", Exit.NOT_KNOWN),
        (
            {"lease": NO, "webhook": SeenWebhook(registered=None, answers=None)},
            "unknown",
            Exit.NOT_KNOWN,
        ),
        ({"controller": deployment(namespaces=("a", "b"))}, "uncovered", Exit.REFUSED),
        (
            {"webhook": replace(ANSWERS, answers=None, unasked="no namespace ml")},
            "unasked",
            Exit.NOT_KNOWN,
        ),
        ({"webhook": replace(ANSWERS, answers=None, left_out="ml")}, "works", Exit.DONE),
        ({"webhook": SeenWebhook(registered=None, answers=False)}, "apart", Exit.REFUSED),
        ({"kubernetes": NO, "groups": NO, "subresources": NO}, "works", Exit.DONE),
        ({"trouble": "nobody runs"}, "broken", Exit.REFUSED),
        ({"trouble": "nobody runs", "operators": []}, "broken", Exit.REFUSED),
        ({"operators": [ELASTIC]}, "broken", Exit.REFUSED),
        ({"webhook": replace(ANSWERS, answers=False), "lease": NO}, "broken", Exit.REFUSED),
        (
            {"webhook": SeenWebhook(registered=None, answers=False), "lease": NO},
            "away",
            Exit.REFUSED,
        ),
        (NOT_THERE, "absent", Exit.REFUSED),
        ({**NOT_THERE, "controller": NO, "lease": None}, "absent", Exit.REFUSED),
        # Somebody killed `install` or `uninstall`.
        ({**NOT_THERE, "controller": PODS, "lease": LEADS}, "unfinished", Exit.REFUSED),
        (
            {**NOT_THERE, "controller": PODS, "lease": LeaseSpec(), "is_left": True},
            "unfinished",
            Exit.REFUSED,
        ),
        ({**NOT_THERE, "is_left": True}, "left", Exit.REFUSED),
        ({**NOT_THERE, "is_left": True, "lease": LEADS, "trouble": "gone"}, "left", Exit.REFUSED),
        # An account that changes no job needs no webhook.
        ({"webhook": UNASKED, "blocked_commands": ONLY_READS}, "reading", Exit.DONE),
        ({"webhook": UNASKED, "blocked_commands": NOTHING}, "unasked", Exit.NOT_KNOWN),
        (
            {"webhook": UNASKED, "blocked_commands": ONLY_READS, "trouble": "nobody runs"},
            "broken",
            Exit.REFUSED,
        ),
        (
            {"webhook": UNASKED, "blocked_commands": ONLY_READS, "lease": NO},
            "unknown",
            Exit.NOT_KNOWN,
        ),
        (
            {"webhook": UNASKED, "blocked_commands": {"submit": ONLY_READS["submit"]}},
            "unasked",
            Exit.NOT_KNOWN,
        ),
        ({"webhook": UNASKED, "blocked_commands": None}, "unasked", Exit.NOT_KNOWN),
        (
            {"webhook": UNASKED, "blocked_commands": ONLY_READS, "operators": []},
            "unasked",
            Exit.NOT_KNOWN,
        ),
    ],
)
def test_the_whole(changed: dict[str, Any], verdict: str, code: Exit) -> None:
    whole = report(**changed)
    assert (whole.verdict, whole.exit_code) == (verdict, code)
    assert status.lines(whole)[-1] == whole.last


def test_missing_rights_of_one_verb_and_place_are_one_line() -> None:
    here = [
        NotReadable(verb="get", what=what, where="in namespace x") for what in ("leases", "pods")
    ]
    whole = report(lease=here[0], controller=here[1], operators=NO, preflight=NO)
    assert whole.missing_rights == (
        "your account may not get leases, pods in namespace x",
        "your account may not list them, them everywhere",
    )
    shown = [line for line in status.lines(whole) if line.startswith("Not shown: ")]
    assert len(shown) == 2


def test_where_nothing_is_installed_the_command_to_type_is_last() -> None:
    assert status.lines(report(**NOT_THERE))[-1] == (
        "mpijob-elastic is not installed in this cluster; an administrator runs "
        "`mpijob-elastic install`."
    )


@pytest.mark.parametrize("changed", [{"controller": PODS, "lease": LEADS}, {"is_left": True}])
def test_after_an_interruption_the_commands_to_type_are_last(changed: dict[str, Any]) -> None:
    last = status.lines(report(**{**NOT_THERE, **changed}))[-1]
    assert "an installation or a removal was interrupted" in last
    assert "`mpijob-elastic install`" in last
    assert "`mpijob-elastic uninstall`" in last


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("mpijob-elastic:0.4.0", "0.4.0"),
        ("r.example:5000/a/mpijob-elastic:0.4.0@sha256:0", "0.4.0"),
        ("r.example:5000/mpijob-elastic", ""),
        ("r.example:5000/mpijob-elastic@sha256:0", ""),
    ],
)
def test_the_version_is_the_tag(image: str, version: str) -> None:
    assert version_of(image) == version


def written(manager: str, time: str = "2026-01-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    fields = {"f:spec": {"f:template": {}, **spec}}
    return {"manager": manager, "time": time, "fieldsV1": fields}


RELEASE = {"annotations": {"meta.helm.sh/release-name": "elastic"}}
SCALED = {"manager": "hand", "time": "2029", "fieldsV1": {"f:spec": {"f:replicas": {}}}}


@pytest.mark.parametrize(
    ("metadata", "by"),
    [
        ({"managedFields": [written("mpijob-elastic"), SCALED]}, "`mpijob-elastic install`"),
        ({"managedFields": [written("helm")], **RELEASE}, "Helm (release elastic)"),
        ({"managedFields": [written("kubectl-client-side-apply")]}, "kubectl"),
        ({"managedFields": [written("argocd-controller")]}, "argocd-controller"),
        (
            {"managedFields": [written("helm"), written("mpijob-elastic", "2027")], **RELEASE},
            "`mpijob-elastic install`",
        ),
        ({}, "somebody"),
        ({"managedFields": [{"manager": "x", "fieldsV1": {"f:spec": None}}]}, "somebody"),
    ],
)
def test_who_wrote_the_pods_last_installed_it(metadata: dict[str, Any], by: str) -> None:
    assert reading.author(metadata) == by


def test_a_deployment_tells_image_replicas_and_namespaces() -> None:
    container = {
        "image": IMAGE,
        "args": ["controller"],
        "env": [{"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": "a b"}],
    }
    body = {
        "metadata": {},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": 1},
    }
    assert reading.deployment(body) == SeenDeployment(
        image=IMAGE,
        by="somebody",
        ready=1,
        wanted=3,
        namespaces=("a", "b"),
        arguments=("controller",),
    )


def rule(**parts: list[str]) -> dict[str, list[str]]:
    return {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], **parts}


@pytest.mark.parametrize(
    ("rules", "blocked"),
    [
        ([rule()], set()),
        ([], set(rights.COMMANDS)),
        ([rule(resourceNames=["one"])], set(rights.COMMANDS)),
        ([rule(resources=["*/exec"])], set(rights.COMMANDS)),
        ([rule(apiGroups=["kubeflow.org"]), rule(apiGroups=[""])], {"top"}),
    ],
)
def test_the_rights_of_an_account_tell_which_commands_work(
    rules: list[dict[str, list[str]]], blocked: set[str]
) -> None:
    assert rights.blocked_commands(rules).keys() == blocked


@pytest.mark.parametrize("role", [rights.VIEW, rights.EDIT])
def test_a_role_lets_the_commands_work_that_the_table_names(role: str) -> None:
    rules = [
        {"verbs": [right.verb], "apiGroups": [right.group], "resources": [right.resource]}
        for right in rights.given(role)
    ]
    works = {
        name
        for name, used in rights.COMMANDS.items()
        if rights.role_of(used.needed) in {rights.VIEW, role}
    }
    assert set(rights.COMMANDS) - rights.blocked_commands(rules).keys() == works
