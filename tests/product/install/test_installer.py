"""Objects on their way to the server: customized, applied server-side, as its version serves them."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from typer.testing import CliRunner

from mpijob_elastic import names
from mpijob_elastic.cli import app
from mpijob_elastic.install import Refused, installer, overlays, removal
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Manifest, Outcome, identity
from mpijob_elastic.install.overlays import Overlay, for_jobs_in, for_version
from mpijob_elastic.install.server import (
    OPTIONAL_KINDS,
    Applier,
    Found,
    Server,
    check_rights,
    examine,
)
from mpijob_elastic.kube.resources import (
    CONFIG_MAPS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy


def test_hooks_come_last_and_rights_before_what_runs_under_them() -> None:
    kinds = [one["kind"] for one in InstallPlan().manifests()]
    assert kinds[0] == "Namespace"
    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
    for before, after in pairwise(
        ["ServiceAccount", "ClusterRole", "RoleBinding", "NetworkPolicy", "Deployment"]
    ):
        assert last(kinds, before) < kinds.index(after)


def test_every_object_has_our_label_and_is_there_once() -> None:
    manifests = InstallPlan(overlays=(Overlay.CERT_MANAGER, Overlay.PROMETHEUS)).manifests()
    assert len({identity(one) for one in manifests}) == len(manifests)
    assert all(
        one["metadata"]["labels"]["app.kubernetes.io/name"] == "mpijob-elastic" for one in manifests
    )


def test_the_order_of_overlays_does_not_matter() -> None:
    plans = [
        InstallPlan(
            overlays=(Overlay.CERT_MANAGER, Overlay.SINGLE_NAMESPACE), jobs_namespaces=("a",)
        ),
        InstallPlan(
            overlays=(Overlay.SINGLE_NAMESPACE, Overlay.CERT_MANAGER), jobs_namespaces=("a",)
        ),
        InstallPlan(overlays=(Overlay.CERT_MANAGER,), jobs_namespaces=("a",)),
    ]
    first, second, implied = ({identity(one): one for one in plan.manifests()} for plan in plans)
    assert first == second == implied


def test_overlays_that_change_one_container_are_both_in_it() -> None:
    manifests = InstallPlan(
        overlays=(Overlay.CERT_MANAGER,), jobs_namespaces=("a", "b")
    ).manifests()
    [webhook] = [
        one
        for one in manifests
        if identity(one).name == names.WEBHOOK and one["kind"] == "Deployment"
    ]
    [container] = webhook["spec"]["template"]["spec"]["containers"]
    assert "--certificate-directory=/certificates" in container["args"]
    assert container["env"] == [{"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": "a b"}]


@pytest.mark.parametrize("namespace", ["kube-system", "mpijob-elastic"])
def test_where_no_jobs_are_looked_after(namespace: str) -> None:
    with pytest.raises(ValueError, match=f"jobs in {namespace} are never managed"):
        InstallPlan(jobs_namespaces=("a", namespace))


def last(kinds: list[str], kind: str) -> int:
    return len(kinds) - 1 - kinds[::-1].index(kind)


def of_kind(manifests: list[Manifest], kind: str) -> list[Any]:
    return [one for one in manifests if one["kind"] == kind]


def test_the_namespaces_of_the_jobs_are_named_everywhere() -> None:
    manifests = for_jobs_in(overlays.rendered("single-namespace"), ["team-a", "team-b"])
    assert "your-namespace" not in str(manifests)
    for deployment in of_kind(manifests, "Deployment"):
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [
            {"name": "MPIJOB_ELASTIC_JOBS_NAMESPACE", "value": "team-a team-b"}
        ]
    rights = [one for kind in ("Role", "RoleBinding") for one in of_kind(manifests, kind)]
    names_in = {
        team: [one["metadata"]["name"] for one in rights if one["metadata"]["namespace"] == team]
        for team in ("team-a", "team-b")
    }
    assert names_in["team-a"] == names_in["team-b"]
    assert set(names_in["team-a"]) == {names.CONTROLLER, names.WEBHOOK, "mpijob-elastic-evictions"}
    assert {one["metadata"].get("namespace", "") for one in manifests} == {
        "",
        names.NAMESPACE,
        "team-a",
        "team-b",
    }
    hooks = [
        hook
        for kind in ("Mutating", "Validating")
        for hook in configuration(manifests, kind)["webhooks"]
    ]
    for hook in hooks:
        assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["team-a", "team-b"]


@pytest.mark.parametrize("minor", [30, 34])
def test_a_new_api_server_gets_everything(minor: int) -> None:
    manifests = overlays.rendered("default")
    assert for_version(manifests, minor) == manifests


@pytest.mark.parametrize("overlay", ["default", Overlay.SINGLE_NAMESPACE])
def test_before_admission_policies_the_webhook_may_not_mark_pods(overlay: str) -> None:
    manifests = overlays.rendered(overlay)
    gone = [one for one in manifests if one not in for_version(manifests, 29)]
    roles = [one for one in gone if one["kind"] in ("Role", "ClusterRole")]
    assert [rule["resources"] for one in roles for rule in one["rules"]] == [
        ["pods"],
        ["pods/eviction"],
    ]
    rest = [one for one in for_version(manifests, 29) if one["kind"] in ("Role", "ClusterRole")]
    assert names.EVICTIONS_HOOK in str(configuration(manifests, "Validating"))
    assert names.EVICTIONS_HOOK not in str(configuration(for_version(manifests, 29), "Validating"))
    assert not [
        one for one in rest if "webhook" in one["metadata"]["name"] and "pods" in str(one["rules"])
    ]


def configuration(manifests: list[Manifest], kind: str) -> Any:
    [one] = of_kind(manifests, f"{kind}WebhookConfiguration")
    return one


VERSION = {"major": "1", "minor": "29+", "gitVersion": "v1.29.16-provider.1"}
KINDS = {
    "/api/v1": ["Namespace", "ServiceAccount", "Service", "ConfigMap"],
    "/apis/apps/v1": ["Deployment"],
    "/apis/rbac.authorization.k8s.io/v1": [
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ],
    "/apis/policy/v1": ["PodDisruptionBudget"],
    "/apis/networking.k8s.io/v1": ["NetworkPolicy"],
    "/apis/coordination.k8s.io/v1": ["Lease"],
    "/apis/scheduling.k8s.io/v1": ["PriorityClass"],
    "/apis/admissionregistration.k8s.io/v1": [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ],
}


@pytest.fixture
def older(api: TinyApi, client: ApiWriter) -> ApiWriter:
    api.objects["/version"] = VERSION
    for path, kinds in KINDS.items():
        plurals = [(f"{kind.lower()}s{part}", kind) for kind in kinds for part in ("", "/status")]
        api.objects[path] = {
            "resources": [{"name": plural, "kind": kind} for plural, kind in plurals]
        }
    return client


@pytest.fixture
async def server(older: ApiWriter) -> Server:
    return await examine(older, InstallPlan().manifests())


async def test_it_is_known_by_version_and_kinds(server: Server) -> None:
    assert (server.version, server.minor) == ("v1.29.16-provider.1", 29)
    assert (
        server.served["apps/v1", "Deployment"].path("a", "b")
        == "/apis/apps/v1/namespaces/a/deployments/b"
    )
    wanted = {(one["apiVersion"], one["kind"]) for one in InstallPlan().manifests()}
    assert {kind for _, kind in wanted - server.served.keys()} == OPTIONAL_KINDS.keys()


@pytest.mark.parametrize(
    ("version", "minor", "overlays", "words"),
    [
        ("v1.27.16", 27, (), r"Kubernetes v1\.27\.16 is too old: 1\.28 is the oldest"),
        (
            "v1.29",
            29,
            (Overlay.PROMETHEUS,),
            r"v1\.29 does not serve PodMonitor .*, PrometheusRule",
        ),
        ("v1.29", 29, (), "with its CustomResourceDefinition first"),
    ],
)
async def test_a_server_that_lacks_what_is_needed_is_refused(
    older: ApiWriter,
    server: Server,
    version: str,
    minor: int,
    overlays: tuple[Overlay, ...],
    words: str,
) -> None:
    found = replace(server, version=version, minor=minor)
    with pytest.raises(Refused, match=words):
        await installer.check(older, found, InstallPlan(overlays=overlays), uncover=False)


async def test_kinds_that_only_help_are_skipped(older: ApiWriter, server: Server) -> None:
    for manifest in InstallPlan().manifests():
        if manifest["kind"] in OPTIONAL_KINDS:
            change = await Applier(client=older, server=server).apply(manifest)
            assert (change.outcome, change.note) == (
                Outcome.SKIPPED,
                "not served by v1.29.16-provider.1",
            )


def called_by(address: dict[str, Any]) -> list[dict[str, Any]]:
    """Two hooks, of which the second has an address of its own."""
    service = {"namespace": names.NAMESPACE, "name": names.WEBHOOK}
    return [{"clientConfig": {"service": service}}, {"clientConfig": address}]


@pytest.mark.parametrize("resource", [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--image=a/b:1", "--force-conflicts")])
async def test_a_webhook_outside_the_cluster_is_left_alone(
    api: TinyApi, resource: Resource, more: tuple[str, ...]
) -> None:
    """The address of an object that is registered by its URL cannot become a Service."""
    hooks = called_by({"url": "https://127.0.0.1:4433/mutate"})
    path = resource.path(name=names.WEBHOOK_CONFIGURATION)
    api.put(path, {"metadata": {"name": names.WEBHOOK_CONFIGURATION}, "webhooks": hooks})
    before = dict(api.objects)
    arguments = ["install", f"--kubeconfig={api.kubeconfig}", *more]
    done = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert isinstance(done.exception, Refused)
    said = str(done.exception)
    assert f"{resource.kind} {names.WEBHOOK_CONFIGURATION}" in said
    assert "https://127.0.0.1:4433/mutate" in said
    assert (
        "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration mpijob-elastic"
        in said
    )
    assert dict(api.objects) == before


@pytest.mark.parametrize(
    "hooks",
    [
        pytest.param(called_by({"service": {"namespace": "n", "name": "a"}}), id="by its Service"),
        pytest.param([], id="without hooks"),
        pytest.param(None, id="not there"),
    ],
)
async def test_a_webhook_in_the_cluster_is_no_obstacle(
    api: TinyApi, client: ApiWriter, hooks: list[dict[str, Any]] | None
) -> None:
    path = MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION)
    if hooks is not None:
        api.put(path, {"metadata": {"name": names.WEBHOOK_CONFIGURATION}, "webhooks": hooks})
    await installer.check_address(client)


async def test_who_may_not_read_the_registration_is_told_of_all_rights_later(
    proxy: FaultProxy, client: ApiWriter
) -> None:
    with proxy.inject(Answer(status=403, reason="Forbidden"), on=lambda one: one.method == "GET"):
        await installer.check_address(client)


MANIFEST = {
    "apiVersion": CONFIG_MAPS.api_version,
    "kind": CONFIG_MAPS.kind,
    "metadata": {"name": "a", "namespace": "n"},
    "data": {"key": "value"},
}
SERVER = Server(
    version="v1.34.4", minor=34, served={(CONFIG_MAPS.api_version, CONFIG_MAPS.kind): CONFIG_MAPS}
)


def patches(request: Request) -> bool:
    return request.method == "PATCH"


def deletions(request: Request) -> bool:
    return request.method == "DELETE"


async def test_what_somebody_else_creates_at_that_moment_is_applied_to(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await api.create(CONFIG_MAPS.path("n"), "a", apiVersion="v1", kind="ConfigMap")
    with proxy.inject(Answer(status=409, reason="AlreadyExists"), on=patches, times=1):
        change = await Applier(client=client, server=SERVER).apply(MANIFEST)
    assert change.outcome is Outcome.CONFIGURED
    assert api.objects[CONFIG_MAPS.path("n", "a")]["data"] == {"key": "value"}


async def test_fields_of_others_are_a_conflict(
    api: TinyApi, proxy: FaultProxy, client: ApiWriter
) -> None:
    await api.create(CONFIG_MAPS.path("n"), "a", apiVersion="v1", kind="ConfigMap")
    with (
        proxy.inject(Answer(status=409, reason="Conflict"), on=patches),
        pytest.raises(Refused, match="--force-conflicts"),
    ):
        await Applier(client=client, server=SERVER).apply(MANIFEST)


@pytest.mark.parametrize(("status", "reason"), [(404, "NotFound"), (409, "Conflict")])
async def test_what_is_gone_or_another_by_now_is_not_deleted(
    proxy: FaultProxy, client: ApiWriter, status: int, reason: str
) -> None:
    said: list[object] = []
    found = Found(resource=CONFIG_MAPS, namespace="n", name="a", uid="of another one")
    with proxy.inject(Answer(status=status, reason=reason), on=deletions):
        await removal.delete(client, [found], said.append)
    assert said == []


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (
            (),
            "create, get, patch K0, K1, K2, K3, K4, K5, K6, K7 and 12 more; nor create K0, K1 in ml; ask",
        ),
        (("create", "get"), "patch K0, K1, K2, K3, K4, K5, K6, K7 and 12 more; ask"),
    ],
)
async def test_missing_rights_are_told_together(
    api: TinyApi, client: ApiWriter, allowed: tuple[str, ...], said: str
) -> None:
    kinds = [
        Resource(group="a", version="v1", plural=f"k{number:02}", kind=f"K{number}")
        for number in range(20)
    ]
    wanted = [(kind, "", verb) for kind in kinds for verb in ("get", "create", "patch")]
    wanted += [(kind, "ml", "create") for kind in kinds[:2]]
    api.allows = lambda spec: spec["resourceAttributes"]["verb"] in allowed
    with pytest.raises(Refused) as refused:
        await check_rights(client, wanted)
    assert str(refused.value).startswith(f"your account may not {said}")
