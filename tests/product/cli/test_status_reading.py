"""What `status` reads of a cluster, typed as users type it."""

import base64
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from mpijob_elastic import __version__, names
from mpijob_elastic.cli import exit_codes
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.cli.installation import status
from mpijob_elastic.cli.target import Where
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.resources import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    LEASES,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
)
from tests.doubles.api import TinyApi, merged, refused
from tests.doubles.direct import Sent
from tests.faults.kubeconfig import write_plain
from tests.product.cli.test_write_change import at_work_lease

OURS = 'admission webhook "sizes.webhook.mpijob-elastic" denied the request: no'
REGISTERED = MUTATING_WEBHOOKS.path(name=names.WEBHOOK_CONFIGURATION)
LEASE = LEASES.path(names.NAMESPACE, names.LEASE)
CONTROLLER = DEPLOYMENTS.path(names.NAMESPACE, names.CONTROLLER)
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
OPTED_OUT = {"mpijob-elastic/injection": "disabled"}
NOT_A_USERS = (
    REGISTERED,
    LEASE,
    f"/apis/apps/v1/namespaces/{names.NAMESPACE}/",
    f"/api/v1/namespaces/{names.NAMESPACE}/",
    "/apis/apps/v1/deployments",
    "/api/v1/pods",
    "/apis/kubeflow.org/v1/mpijobs",
    "/apis/apiextensions.k8s.io/",
)


class World(TinyApi):
    """A cluster with an installation that works; hook: asked before the webhook."""

    def __init__(self) -> None:
        super().__init__(page=500)
        self.requests: list[str] = []
        #: Whose jobs the webhook refuses.
        self.answers_in: Callable[[str], bool] = lambda _: True
        #: Whose new jobs the webhook changes, or None where somebody refuses that question.
        self.changes_in: Callable[[str], bool | None] | None = None
        #: Paths that this user may not read.
        self.closed: tuple[str, ...] = ()
        self.hook = self._asked
        self.put("/version", {"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
        self.put("/apis", {"groups": []})
        served = [{"name": "mpijobs", "kind": "MPIJob"}, {"name": "mpijobs/scale", "kind": "Scale"}]
        self.put("/apis/kubeflow.org/v1", {"resources": served})
        self.put(LEASE, at_work_lease())
        service = {"name": "w", "namespace": names.NAMESPACE}
        config = {"caBundle": base64.b64encode(b"x").decode(), "service": service}
        hook = {"name": "x", "clientConfig": config}
        self.put(REGISTERED, {"metadata": {"name": "mpijob-elastic"}, "webhooks": [hook]})
        ready = {"endpoints": [{"conditions": {"ready": True}}]}
        self.put(ENDPOINT_SLICES.path(names.NAMESPACE, "w"), ready)
        for name in (names.CONTROLLER, names.WEBHOOK):
            self.deploy(name)
        for name in ("ml", "default", "a"):
            self.namespace(name)

    def namespace(self, name: str, **labels: str) -> None:
        """Store a namespace with these labels."""
        self.put(NAMESPACES.path(name=name), {"metadata": {"name": name, "labels": labels}})

    def deploy(self, name: str, *covered: str) -> None:
        """Store one of our Deployments, for the jobs of these namespaces."""
        env = [{"name": names.JOBS_NAMESPACE_VARIABLE, "value": " ".join(covered)}]
        container = {"image": f"x:{__version__}", "env": env if covered else []}
        self.put(
            DEPLOYMENTS.path(names.NAMESPACE, name),
            {
                "metadata": {"name": name, "namespace": names.NAMESPACE},
                "spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
                "status": {"availableReplicas": 1},
            },
        )

    def _asked(self, sent: Sent) -> object | None:
        self.requests.append(f"{sent.method} {sent.path}")
        if sent.path == RULES:
            return {"status": {"resourceRules": [ALL], "incomplete": False}}
        if sent.method == "GET" and sent.path.startswith(self.closed):
            raise refused(403, "Forbidden", f'forbidden: User "u" cannot get path "{sent.path}"')
        if sent.method != "POST" or not sent.path.endswith("/mpijobs"):
            return None
        namespace = sent.path.split("/")[-2]
        if self.closed and namespace != "ml":
            raise refused(403, "Forbidden", 'User "u" cannot create resource "mpijobs"')
        if "annotations" not in sent.body["metadata"]:
            return self._changed(sent.body, namespace)
        if self.answers_in(namespace):
            raise refused(400, "BadRequest", OURS)
        return dict(sent.body)

    def _changed(self, job: Any, namespace: str) -> object:
        changes = (self.changes_in or self.answers_in)(namespace)
        if changes is None:
            raise refused(403, "Forbidden", "exceeded quota: mpijobs")
        marked = {"metadata": {"annotations": {names.PUT_BACK: "true"}}}
        return merged(job, marked) if changes else dict(job)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with World() as api:
        yield api


async def said(api: TinyApi, capsys: pytest.CaptureFixture[str], namespace: str = "ml") -> Any:
    """Return the exit code, the parts with their states and words, and the last line."""
    where = Where(kubeconfig=api.kubeconfig, namespace=namespace)
    code = await status.status(where, output="table")
    lines = capsys.readouterr().out.splitlines()
    rows = [re.split(r"  +", line, maxsplit=2) for line in lines]
    parts = {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}
    return code, parts, lines[-1]


async def test_an_installation_that_works(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, parts, last = await said(world, capsys)
    assert parts["webhook"] == ("ok", "answers for jobs in ml; 1 of 1 replicas ready")
    # This cluster has no definition of MPIJobs and no operator.
    assert (code, last) == (Exit.OTHERWISE, "mpijob-elastic works, but something needs care.")


@pytest.mark.parametrize("namespace", [names.NAMESPACE, "kube-system"])
async def test_a_namespace_of_the_system_does_not_stand_for_the_webhook(
    world: World, capsys: pytest.CaptureFixture[str], namespace: str
) -> None:
    world.answers_in = lambda asked: asked == "default"
    code, parts, _ = await said(world, capsys, namespace)
    assert parts["webhook"] == ("ok", "answers for jobs in default; 1 of 1 replicas ready")
    assert parts["namespaces"] == ("ok", f"all; the webhook leaves out {namespace}")
    assert code is Exit.OTHERWISE


@pytest.mark.parametrize(
    ("closed", "words"),
    [
        ((), "answers for jobs in default; 1 of 1 replicas ready"),
        ((CONTROLLER,), "not asked for jobs in ml; 1 of 1 replicas ready"),
    ],
)
async def test_a_namespace_that_opts_out_of_the_webhook_is_not_broken(
    world: World, capsys: pytest.CaptureFixture[str], closed: tuple[str, ...], words: str
) -> None:
    world.namespace("ml", **OPTED_OUT)
    world.answers_in = lambda asked: asked != "ml"
    world.closed = closed
    code, parts, _ = await said(world, capsys)
    assert parts["webhook"] == ("ok", words)
    assert code is Exit.OTHERWISE


async def test_users_and_administrators_hear_that_a_namespace_is_not_covered(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.deploy(names.CONTROLLER, "a", "b")
    world.answers_in = lambda asked: asked == "a"
    code, parts, last = await said(world, capsys)
    assert parts["namespaces"] == ("care", "a, b; ml is not covered")
    assert (code, last) == (
        Exit.REFUSED,
        "mpijob-elastic does not cover this namespace, so no command changes jobs here.",
    )
    for may_read_the_lease in (True, False):
        world.closed = tuple(
            path for path in NOT_A_USERS if not (may_read_the_lease and path == LEASE)
        )
        code, _, last = await said(world, capsys)
        assert code is Exit.REFUSED
        assert "not cover the namespace" in last
        assert ("A controller of mpijob-elastic leads" in last) is may_read_the_lease


async def test_a_lease_that_is_away_for_a_moment_is_no_missing_right(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = world.hook

    def away(sent: Sent) -> object | None:
        if sent.path == LEASE:
            raise refused(503, "ServiceUnavailable", "shutting down")
        return hook(sent)

    world.hook = away
    with pytest.raises(errors.ApiError, match="shutting down"):
        await said(world, capsys)


async def test_without_mpijobs_nobody_is_told_of_rights(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.objects.pop("/apis/kubeflow.org/v1")
    hook = world.hook

    def unserved(sent: Sent) -> object | None:
        if "/apis/kubeflow.org/v1" in sent.path:
            raise refused(404, "", "404 page not found")
        return hook(sent)

    world.hook = unserved
    code, parts, last = await said(world, capsys)
    assert (code, last) == (
        Exit.NOT_KNOWN,
        "Whether mpijob-elastic works is not known, because its webhook could not be asked.",
    )
    assert parts["kubectl scale"][1].endswith("install mpi-operator v0.2.3")
    assert parts["preflight"][1].startswith("cluster and jobs: no (definition")


async def test_a_namespace_that_does_not_exist_is_no_right_that_is_missing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = world.hook

    def absent(sent: Sent) -> object | None:
        if sent.method == "POST" and "/typo/" in sent.path:
            raise refused(404, "NotFound", 'namespaces "typo" not found')
        return hook(sent)

    world.hook = absent
    code, _, last = await said(world, capsys, "typo")
    assert (code, last) == (
        Exit.NOT_KNOWN,
        "Whether mpijob-elastic works is not known, because its webhook could not be asked.",
    )


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/version", "kubernetes"),
        ("/apis", "found beside"),
        ("/apis/kubeflow.org/v1", "kubectl scale"),
        (RULES, "your rights"),
    ],
)
async def test_what_this_user_may_not_read_of_the_api_server_is_a_dash(
    world: World, capsys: pytest.CaptureFixture[str], path: str, part: str
) -> None:
    hook = world.hook

    def closed(sent: Sent) -> object | None:
        if sent.path == path:
            raise refused(403, "Forbidden", "no")
        return hook(sent)

    world.hook = closed
    code, parts, _ = await said(world, capsys)
    assert parts[part] == ("-", "-")
    assert code is Exit.OTHERWISE


async def test_a_ca_that_is_no_base64_is_no_certificate(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"caBundle": "!!!!a", "service": {"name": "w", "namespace": names.NAMESPACE}}
    world.put(REGISTERED, {"metadata": {}, "webhooks": [{"name": "x", "clientConfig": config}]})
    secret = f"/api/v1/namespaces/{names.NAMESPACE}/secrets/{names.CERTIFICATE_SECRET}"
    world.put(secret, {"data": {"tls.crt": "A"}})
    _, parts, _ = await said(world, capsys)
    assert parts["certificates"] == ("-", "-")


async def test_a_registration_without_webhooks_is_wrong(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.put(REGISTERED, {"metadata": {}, "webhooks": None})
    world.answers_in = lambda _: False
    code, parts, _ = await said(world, capsys)
    assert code is Exit.REFUSED
    assert parts["webhook"] == (
        "wrong",
        "the API server cannot trust the webhook (caBundle is empty)",
    )


async def test_a_large_cluster_is_read_once_and_in_large_pages(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each page costs a round trip."""
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    for number in range(2000):
        metadata = {"name": f"p{number}", "namespace": "a", "uid": str(number)}
        world.put(PODS.path("a", f"p{number}"), {"metadata": metadata, "spec": spec})
    await said(world, capsys)
    asked = [one for one in world.requests if one == f"GET {PODS.path()}"]
    # The pods of all operators, and the pods of jobs by their label.
    assert len(asked) == 2 * 2000 / 500
    assert world.requests.count(f"GET {DEPLOYMENTS.path()}") == 1
    assert world.requests.count(f"GET {LEASE}") == 1
    # The first of both asks whether this user may.
    assert world.requests.count(f"GET {MPI_JOBS.path()}") == 2


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (web.Response(text="<html>log in", content_type="text/html"), Exit.NOT_KNOWN),
        (web.json_response({}), Exit.NOT_KNOWN),
        (web.Response(text="fine"), Exit.NOT_KNOWN),
        (web.json_response({}, status=502), Exit.NOT_KNOWN),
        (web.json_response({}, status=503), Exit.NOT_KNOWN),
        (web.json_response({}, status=500), Exit.REFUSED),
    ],
)
async def test_what_a_proxy_says_is_no_answer(
    answer: web.Response, code: Exit, tmp_path: Any
) -> None:
    async def say(_request: web.Request) -> web.Response:
        return web.Response(
            body=answer.body, status=answer.status, content_type=answer.content_type
        )

    application = web.Application()
    application.router.add_get("/{path:.*}", say)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        write_plain(tmp_path / "kubeconfig", f"http://127.0.0.1:{runner.addresses[0][1]}")
        with pytest.raises(errors.KubeError) as raised:
            await status.status(Where(kubeconfig=tmp_path / "kubeconfig"), output="table")
    finally:
        await runner.cleanup()
    assert exit_codes.of(raised.value) is code


UNCHANGING = (
    "the webhook changes nothing in namespace ml (no MutatingWebhookConfiguration mpijob-elastic), "
    "so new launchers get no discover_hosts.sh: an administrator runs "
    "`mpijob-elastic install` with the options of the installation"
)


@pytest.mark.parametrize("changes", [False, None])
async def test_an_administrator_sees_that_half_of_the_registration_is_gone(
    world: World, capsys: pytest.CaptureFixture[str], changes: bool | None
) -> None:
    world.changes_in = lambda _: changes
    world.objects.pop(REGISTERED)
    code, parts, last = await said(world, capsys)
    assert parts["webhook"] == ("wrong", UNCHANGING)
    assert code is Exit.REFUSED
    assert last.startswith("mpijob-elastic does not work, because its webhook is not registered:")


async def test_a_user_sees_that_new_launchers_get_no_host_list(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.changes_in = lambda _: False
    world.closed = tuple(path for path in NOT_A_USERS if path != LEASE)
    code, parts, last = await said(world, capsys)
    state, words = parts["webhook"]
    assert (state, words.startswith("the webhook has changed no new job in")) == ("care", True)
    assert (code, last) == (Exit.OTHERWISE, "mpijob-elastic works, but something needs care.")


async def test_a_registered_webhook_that_marks_no_job_is_slow_or_of_a_version_before(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.changes_in = lambda _: False
    _, parts, _ = await said(world, capsys)
    assert parts["webhook"][0] == "ok"


async def test_a_webhook_that_checks_no_jobs_does_not_work_either(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.answers_in, world.changes_in = (lambda _: False), (lambda _: True)
    _, parts, last = await said(world, capsys)
    assert parts["webhook"][0] == "wrong"
    assert "no ValidatingWebhookConfiguration mpijob-elastic" in parts["webhook"][1]
    assert last.startswith("mpijob-elastic does not work; an administrator looks at ")
