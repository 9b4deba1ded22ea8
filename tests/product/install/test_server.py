"""An older API server: it says so in /version, and does not serve every kind."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from mpijob_elastic.install import preflight
from mpijob_elastic.install.changes import Outcome
from mpijob_elastic.install.installer import Plan
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.refusal import Refused
from mpijob_elastic.install.server import OPTIONAL_KINDS, Server, examine
from mpijob_elastic.install.server_side_apply import Applier
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.writer import ApiWriter
from tests.faults.kubeconfig import write_plain

VERSION = {"major": "1", "minor": "27+", "gitVersion": "v1.27.16-provider.1"}
KINDS = {
    "/api/v1": ["Namespace", "ServiceAccount", "Service", "ConfigMap"],
    "/apis/apps/v1": ["Deployment"],
    "/apis/rbac.authorization.k8s.io/v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "/apis/policy/v1": ["PodDisruptionBudget"],
    "/apis/networking.k8s.io/v1": ["NetworkPolicy"],
    "/apis/coordination.k8s.io/v1": ["Lease"],
    "/apis/scheduling.k8s.io/v1": ["PriorityClass"],
    "/apis/admissionregistration.k8s.io/v1": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
}


async def serve(request: web.Request) -> web.Response:
    if request.path == "/version":
        return web.json_response(VERSION)
    if request.path not in KINDS:
        return web.json_response({"kind": "Status", "reason": "NotFound"}, status=404)
    names = [{"name": f"{kind.lower()}s", "kind": kind} for kind in KINDS[request.path]]
    subresources = [{"name": f"{one['name']}/status", "kind": one["kind"]} for one in names]
    return web.json_response({"resources": names + subresources})


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[ApiWriter]:
    application = web.Application()
    application.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    write_plain(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
    async with await connect(user_agent="test", kubeconfig=tmp_path / "kubeconfig") as client:
        yield client
    await runner.cleanup()


@pytest.fixture
async def server(client: ApiWriter) -> Server:
    return await examine(client, Plan().manifests())


async def test_it_is_known_by_version_and_kinds(server: Server) -> None:
    assert (server.version, server.minor) == ("v1.27.16-provider.1", 27)
    assert server.served["apps/v1", "Deployment"].path("a", "b") == "/apis/apps/v1/namespaces/a/deployments/b"
    assert {one["kind"] for one in Plan().manifests() if not server.serves(one)} == OPTIONAL_KINDS.keys()


async def test_kinds_that_only_help_are_skipped(client: ApiWriter, server: Server) -> None:
    for manifest in Plan().manifests():
        if manifest["kind"] in OPTIONAL_KINDS:
            change = await Applier(client=client, server=server).apply(manifest)
            assert (change.outcome, change.note) == (Outcome.SKIPPED, "not served by v1.27.16-provider.1")


async def test_kinds_that_are_needed_must_be_there(client: ApiWriter, server: Server) -> None:
    manifests = Plan(overlays=(Overlay.PROMETHEUS,)).manifests()
    with pytest.raises(Refused, match=r"v1\.27\.16-provider\.1 does not serve PodMonitor .*, PrometheusRule"):
        await preflight.check(client, server, manifests, jobs_namespaces=())


async def test_the_mpijob_must_be_there(client: ApiWriter, server: Server) -> None:
    with pytest.raises(Refused, match="with its CustomResourceDefinition first"):
        await preflight.check(client, server, Plan().manifests(), jobs_namespaces=())
