"""The manifests agree with the program: names, ports, options, metrics, the command of the probe."""

import re
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from typer.testing import CliRunner

from mpijob_elastic import __version__, names
from mpijob_elastic.act import driver_looks, launcher_execs, worker_scripts
from mpijob_elastic.capabilities.autoscaling.facts import SCALE_TIMEOUT
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.capabilities.kueue.topology import DOMAIN
from mpijob_elastic.cli import app
from mpijob_elastic.decide import frozen_execs
from mpijob_elastic.install import overlays
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import by_identity
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube.reader import PAGE
from mpijob_elastic.model import elastic_script, kubexec
from mpijob_elastic.model.kubexec import Exec
from mpijob_elastic.telemetry.metrics import Metrics
from webhook.admission import AdmissionMetrics as WebhookMetrics

RENDERED = [overlays.DEFAULT, *Overlay]


def one(overlay: str, kind: str, name: str, namespace: str | None = None) -> Any:
    [found] = [
        manifest
        for manifest in overlays.rendered(overlay)
        if (manifest["kind"], manifest["metadata"]["name"]) == (kind, name)
        and namespace in (None, manifest["metadata"].get("namespace"))
    ]
    return found


def pod_of(overlay: str, name: str) -> Any:
    return one(overlay, "Deployment", name, names.NAMESPACE)["spec"]["template"]["spec"]


def validations(policy: str) -> list[str]:
    found = one(overlays.DEFAULT, "ValidatingAdmissionPolicy", policy)["spec"]["validations"]
    return [validation["expression"] for validation in found]


@pytest.mark.parametrize("overlay", RENDERED)
@pytest.mark.parametrize("name", [names.CONTROLLER, names.WEBHOOK])
def test_each_deployment_survives_a_node_and_a_rollout(overlay: str, name: str) -> None:
    spec = one(overlay, "Deployment", name)["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert one(overlay, "PodDisruptionBudget", name)["spec"]["selector"] == spec["selector"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


@pytest.mark.parametrize("overlay", RENDERED)
@pytest.mark.parametrize("name", [names.CONTROLLER, names.WEBHOOK])
def test_each_pod_is_confined(overlay: str, name: str) -> None:
    pod = pod_of(overlay, name)
    [container] = pod["containers"]
    assert pod["serviceAccountName"] == name
    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == f"mpijob-elastic:{__version__}"
    assert one(overlay, "ServiceAccount", name)["automountServiceAccountToken"] is False


@pytest.mark.parametrize("overlay", RENDERED)
@pytest.mark.parametrize("name", [names.CONTROLLER, names.WEBHOOK])
def test_the_program_knows_the_options(overlay: str, name: str) -> None:
    command, *options = pod_of(overlay, name)["containers"][0]["args"]
    help_text = (
        CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    )
    for option in options:
        assert option.split("=")[0] in help_text


def test_cert_manager_changes_only_where_the_webhooks_certificate_comes_from() -> None:
    ours, theirs = (
        pod_of(overlay, names.WEBHOOK) for overlay in (overlays.DEFAULT, Overlay.CERT_MANAGER)
    )
    [container], volumes = (
        theirs["containers"],
        [one for one in theirs["volumes"] if one["name"] != "certificates"],
    )
    container["args"].remove("--certificate-directory=/certificates")
    container["volumeMounts"].remove(
        {"name": "certificates", "mountPath": "/certificates", "readOnly": True}
    )
    assert {**theirs, "volumes": volumes} == ours


@pytest.mark.parametrize(
    ("script", "into"),
    [
        (worker_scripts.SCRIPT, ""),
        (worker_scripts.TELL, ""),
        (worker_scripts.END, ""),
        (driver_looks.SCRIPT, "!"),
        (launcher_execs.SCRIPT, "!"),
    ],
)
def test_looks_and_words_to_a_pod_are_the_commands_that_the_policy_lets_through(
    script: str, into: str
) -> None:
    expressions = validations("mpijob-elastic-exec")
    command = f"|| object.command == ['/bin/sh', '-c', r'''{script}''']"
    allowed = f"{into}request.name.endsWith('-launcher')\n||"
    assert [one for one in expressions if one.startswith(allowed) and command in one]


def test_what_ends_an_exec_is_the_command_that_the_policy_lets_through() -> None:
    expressions = "".join(validations("mpijob-elastic-exec"))
    one_of_it = Exec(pid=41, ticks=5000, pod="j-worker-1", started_at=0.0)
    assert launcher_execs.end_command([one_of_it])[2] == launcher_execs.END_SCRIPT
    assert f"object.command[2] == r'''{launcher_execs.END_SCRIPT}'''" in expressions
    assert f"object.command.size() <= {4 + frozen_execs.MOST_AT_A_TIME}" in expressions


def test_kubexec_may_be_edited_as_the_policy_lets_through() -> None:
    expressions = "".join(validations("mpijob-elastic-config-maps"))
    assert f"matches(r'^{kubexec.OPERATORS.pattern}$')" in expressions
    assert kubexec.MAPPING.replace("\n", r"\n") in expressions
    before, after = (line.replace("\n", r"\n") for line in (kubexec.KUBECTL, kubexec.EXEC))
    assert f".replace('{before}', '{after}', 1)" in expressions


def test_host_lists_are_as_the_policy_lets_through() -> None:
    expressions = validations("mpijob-elastic-config-maps")
    [script] = [
        found[1]
        for text in expressions
        if (found := re.search(r"script\.matches\(r'(.*)'\)", text))
    ]
    [listed_pods] = [
        re.findall(r"parts\[[12]\]\.matches\(r'(.*)'\)", text)
        for text in expressions
        if "parts" in text
    ]
    [hostfile] = [
        found[1]
        for text in expressions
        if (found := re.search(r"hostfile\.matches\(r'(.*)'\)", text))
    ]
    pods = [names.worker("j.x-worker-1", index) for index in (0, 7, 10, 2**31 - 1)]
    hosts = [
        names.host(pod, incarnation)
        for pod, incarnation in zip(pods, (0, 1, 20, 999_999_999), strict=True)
    ]
    for listed in ([], hosts):
        text = names.discover_hosts(listed, slots=2**31 - 1).replace(
            "echo j.x-worker-1-worker-", "W"
        )
        assert re.fullmatch(script, text)
        reminded = names.discover_hosts(listed, slots=1, reminder=names.reminder(pods[0], 9))
        assert re.fullmatch(script, reminded.replace("echo j.x-worker-1-worker-", "W"))
        assert not re.fullmatch(script, text + "W0:0\n")
        text = names.hostfile(pods[: len(listed)], slots=16).replace("j.x-worker-1-worker-", "W")
        assert re.fullmatch(hostfile, text)
    assert re.fullmatch(listed_pods[0], "# list 4294967295 drain 86400")
    for lines in ("", "W0:8 # 1a2b3c4d\nW10.r20:8 # 00000000\n"):
        assert re.fullmatch(listed_pods[1], lines)


def test_the_driver_is_the_script_that_the_policy_lets_through() -> None:
    [expression] = validations("mpijob-elastic-driver")
    assert expression.endswith(f"variables.after == r'''{elastic_script.TEXT}'''")


@pytest.mark.parametrize("overlay", RENDERED)
def test_the_policies_name_what_the_program_writes(overlay: str) -> None:
    texts = {
        manifest["metadata"]["name"]: str(manifest["spec"])
        for manifest in overlays.rendered(overlay)
        if manifest["kind"] == "ValidatingAdmissionPolicy"
    }
    of_pods = f"['{names.REFRESHED}', '{EVICTION_MARK}', '{DOMAIN}']"
    assert of_pods in texts["mpijob-elastic-pods"]
    assert f"['{names.MEMORY}', '{names.HISTORY}']" in texts["mpijob-elastic-config-maps"]
    written = (names.KEY_DISCOVER_HOSTS, names.KEY_HOSTFILE, names.KEY_KUBEXEC, names.KEY_ELASTIC)
    keys = str([*written])
    assert keys in texts["mpijob-elastic-config-maps"]
    assert (
        f"['{names.STATUS}', '{names.PHASE}', '{names.CHANGE}']" in texts["mpijob-elastic-mpijobs"]
    )
    assert f"'{SCALE_TIMEOUT}' in variables.before" in texts["mpijob-elastic-mpijobs"]
    assert (
        f"object.metadata.name == '{names.CERTIFICATE_SECRET}'" in texts["mpijob-elastic-secrets"]
    )
    assert f"key == '{EVICTION_MARK}'" in texts["mpijob-elastic-evictions"]
    assert (
        f"hook.name == '{names.EVICTIONS_HOOK}'" in texts["mpijob-elastic-webhook-configurations"]
    )
    webhooks = {
        "mpijob-elastic-secrets",
        "mpijob-elastic-webhook-configurations",
        "mpijob-elastic-evictions",
    }
    for name, text in texts.items():
        account = names.WEBHOOK if name in webhooks else names.CONTROLLER
        assert f"'system:serviceaccount:{names.NAMESPACE}:{account}'" in text


def test_alerts_are_about_metrics_that_there_are() -> None:
    registry = CollectorRegistry()
    Metrics(registry)
    known = set(
        re.findall(
            rb"^# TYPE (\w+)", generate_latest(registry) + WebhookMetrics().render(), re.MULTILINE
        )
    )
    rules = one(Overlay.PROMETHEUS, "PrometheusRule", "mpijob-elastic")["spec"]["groups"][0][
        "rules"
    ]
    for rule in rules:
        for metric in re.findall(r"\bmpijob_elastic_\w+", rule["expr"]):
            assert metric.removesuffix("_bucket").encode() in known, metric


@pytest.mark.parametrize("name", [names.CONTROLLER, names.WEBHOOK])
def test_a_page_of_the_largest_objects_fits_into_the_memory_of_each_deployment(name: str) -> None:
    """Anybody may store many objects of 1.5 MiB.

    A process that is killed for them is killed again when it lists.
    """
    [container] = pod_of(overlays.DEFAULT, name)["containers"]
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi"))
    at_rest, largest, copies = 100, 1.5, 1.3
    assert at_rest + PAGE * largest * copies <= limit


def test_an_installation_without_labels_differs_in_the_webhooks_arguments_alone() -> None:
    plan = InstallPlan(image="ours", overlays=(Overlay.CERT_MANAGER,))
    usual, unlabelled = (
        by_identity(replace(plan, template_labels=labels).manifests()) for labels in (True, False)
    )
    changed = [one for one in usual if usual[one] != unlabelled[one]]
    assert [(one.kind, one.name) for one in changed] == [("Deployment", names.WEBHOOK)]
    pods = [manifests[changed[0]]["spec"]["template"]["spec"] for manifests in (usual, unlabelled)]
    [before, after] = (pod["containers"][0]["args"] for pod in pods)
    assert after == [*before, "--no-template-labels"]


def test_the_webhook_knows_the_option_that_leaves_labels_as_they_are() -> None:
    help_text = (
        CliRunner()
        .invoke(app, ["webhook", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
        .output
    )
    assert overlays.LEAVES_LABELS in help_text


@pytest.mark.parametrize("kind", ["Mutating", "Validating"])
def test_each_webhook_asks_only_about_the_namespaces_that_are_given(kind: str) -> None:
    configuration = one(
        Overlay.SINGLE_NAMESPACE, f"{kind}WebhookConfiguration", names.WEBHOOK_CONFIGURATION
    )
    rules = [hook["namespaceSelector"]["matchExpressions"][0] for hook in configuration["webhooks"]]
    assert {(rule["key"], rule["operator"]) for rule in rules} == {
        ("kubernetes.io/metadata.name", "In")
    }


def test_a_namespace_that_takes_no_default_queue_keeps_the_other_hooks() -> None:
    configuration = one(
        overlays.DEFAULT, "MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION
    )
    asking = [
        hook["clientConfig"]["service"]["path"]
        for hook in configuration["webhooks"]
        if {"key": names.NO_DEFAULT_QUEUE, "operator": "NotIn", "values": ["disabled"]}
        in hook["namespaceSelector"]["matchExpressions"]
    ]
    assert asking == [names.PATH_DEFAULT_QUEUE]


def test_only_jobs_without_the_label_of_kueue_are_asked_about() -> None:
    configuration = one(
        overlays.DEFAULT, "MutatingWebhookConfiguration", names.WEBHOOK_CONFIGURATION
    )
    [asking] = [
        hook
        for hook in configuration["webhooks"]
        if hook["clientConfig"]["service"]["path"] == names.PATH_DEFAULT_QUEUE
    ]
    [condition] = asking["matchConditions"]
    assert f"'{LABEL_QUEUE}' in object.metadata.labels" in condition["expression"]
