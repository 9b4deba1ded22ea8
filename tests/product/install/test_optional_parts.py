"""Parts that were chosen before and are not named now: they go only if that is asked for."""

import asyncio
import shlex
import sys
from collections.abc import Sequence

import pytest

from mpijob_elastic import names
from mpijob_elastic.cli import main
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.install import optional_parts, overlays
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Manifest, identity
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.install.server import Found, every_manifest
from mpijob_elastic.kube.resources import DEPLOYMENTS, Resource
from tests.doubles.api import TinyApi

ROLES, ALERTS, REQUESTS = Overlay.USER_ROLES, Overlay.PROMETHEUS, Overlay.ET_OPERATOR
NARROW = Overlay.SINGLE_NAMESPACE
READERS = "/apis/rbac.authorization.k8s.io/v1/namespaces/mpijob-elastic/rolebindings"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
IMAGE = "--image=registry.example/mpijob-elastic:0.4.0"


def resource_of(manifest: Manifest) -> Resource:
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    plural = "networkpolicies" if kind == "NetworkPolicy" else f"{kind.lower()}s"
    return Resource(group=group, version=version, plural=plural, kind=kind)


def found(manifest: Manifest) -> Found:
    one = identity(manifest)
    return Found(
        resource=resource_of(manifest), namespace=one.namespace, name=one.name, uid="a-uid"
    )


def stale(installed: Sequence[Overlay], given: Sequence[Overlay]) -> list[Found]:
    kept = {identity(manifest) for manifest in overlays.combined(given)}
    there = overlays.combined(installed)
    return [found(manifest) for manifest in there if identity(manifest) not in kept]


@pytest.mark.parametrize(
    ("installed", "given", "lost"),
    [
        ([], [], []),
        ([ROLES], [ROLES], []),
        ([ROLES], [], [ROLES]),
        ([ROLES, ALERTS, REQUESTS], [], [ROLES, ALERTS, REQUESTS]),
        ([ROLES, ALERTS], [ALERTS], [ROLES]),
        ([REQUESTS, NARROW], [NARROW], [REQUESTS]),
        ([REQUESTS], [NARROW], [REQUESTS]),
        # What covers other namespaces, and who makes the certificate, is looked after elsewhere.
        ([NARROW], [], []),
        ([], [NARROW], []),
        ([Overlay.CERT_MANAGER], [], []),
        ([], [Overlay.CERT_MANAGER], []),
    ],
)
def test_what_was_chosen_before_and_is_not_named_is_lost(
    installed: list[Overlay], given: list[Overlay], lost: list[Overlay]
) -> None:
    assert optional_parts.lost(stale(installed, given), given) == lost


def test_a_group_that_reads_the_lease_no_more_is_no_loss_of_the_overlay() -> None:
    [binding] = [
        found(one)
        for one in overlays.rendered(ROLES)
        if one["metadata"]["name"] == "mpijob-elastic-status" and one["kind"] == "RoleBinding"
    ]
    assert optional_parts.lost([binding], [ROLES]) == []


@pytest.mark.parametrize("overlay", optional_parts.LOSSES)
def test_each_such_overlay_is_known_by_objects_of_its_own(overlay: Overlay) -> None:
    assert optional_parts.own_objects(overlay)


@pytest.fixture
async def with_roles(api: TinyApi) -> TinyApi:
    """An API server with everything of the overlay user-roles."""
    api.objects["/version"] = {"minor": "34", "gitVersion": "v1.34.4"}
    for manifest in every_manifest():
        path = resource_of(manifest)
        served = f"/apis/{path.api_version}" if path.group else f"/api/{path.api_version}"
        known = api.objects.get(served, {"resources": []})["resources"]
        kind = {"name": path.plural, "kind": path.kind}
        api.objects[served] = {"resources": [*known, kind]}
    api.objects["/apis/kubeflow.org/v1"] = {"resources": [{"name": "mpijobs", "kind": "MPIJob"}]}
    for manifest in InstallPlan(overlays=(ROLES,)).manifests():
        one = identity(manifest)
        await api.create(resource_of(manifest).path(one.namespace), one.name, **manifest)
    return api


async def bind(api: TinyApi, group: str) -> None:
    """Let a group read the Lease; nobody for ""."""
    if not group:
        await api.delete(READERS, "mpijob-elastic-status")
        return
    subjects = [{"kind": "Group", "name": group}]
    await api.update(READERS, "mpijob-elastic-status", subjects=subjects)


async def typed(api: TinyApi, monkeypatch: pytest.MonkeyPatch, *words: str) -> object:
    """The exit code of a command that somebody types."""
    command = ["mpijob-elastic", *words, f"--kubeconfig={api.kubeconfig}"]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        await asyncio.to_thread(main)
    return ended.value.code


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
@pytest.mark.parametrize(
    ("group", "readers"),
    [
        ("system:authenticated", ""),
        ("ml@example.com", " --lease-readers ml@example.com"),
        ("", " --lease-readers ''"),
    ],
)
async def test_who_forgets_the_roles_of_users_is_told_what_to_type(
    with_roles: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: list[str],
    group: str,
    readers: str,
) -> None:
    await bind(with_roles, group)
    before = dict(with_roles.objects)
    words = ["install", IMAGE, *more]
    assert await typed(with_roles, monkeypatch, *words) == Exit.REFUSED
    assert dict(with_roles.objects) == before
    again = shlex.join([names.PROGRAM, *words, f"--kubeconfig={with_roles.kubeconfig}"])
    said = capsys.readouterr().err
    assert f"--overlay user-roles{readers} is missing: whoever" in said
    assert f"type `{again} --overlay user-roles{readers}`." in said
    assert said.rstrip().endswith("To lose it, add --remove-overlay user-roles instead")


ROLES_AGAIN = "--overlay=user-roles"


@pytest.mark.parametrize(
    ("group", "words", "keeps"),
    [
        ("ml@example.com", [ROLES_AGAIN], "--lease-readers ml@example.com"),
        ("", [ROLES_AGAIN], "--lease-readers ''"),
        ("ml@example.com", [ROLES_AGAIN, "--lease-readers=system:authenticated"], ""),
        ("ml@example.com", [ROLES_AGAIN, "--lease-readers=others"], ""),
        ("", [ROLES_AGAIN, "--lease-readers="], ""),
        ("system:authenticated", [ROLES_AGAIN], ""),
    ],
)
async def test_the_lease_is_opened_to_everybody_only_if_that_is_typed(
    with_roles: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    group: str,
    words: list[str],
    keeps: str,
) -> None:
    await bind(with_roles, group)
    await typed(with_roles, monkeypatch, "install", IMAGE, "--dry-run", "--no-scale", *words)
    said = capsys.readouterr().err
    assert said.startswith(f"mpijob-elastic: {keeps} is missing: ") == bool(keeps), said
    assert ("--lease-readers system:authenticated instead" in said) == bool(keeps)


async def test_an_interrupted_first_installation_has_forgotten_nothing(
    with_roles: TinyApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await bind(with_roles, "")
    await with_roles.delete(HOOKS, names.WEBHOOK_CONFIGURATION)
    words = ["install", IMAGE, "--dry-run", "--no-scale", ROLES_AGAIN]
    await typed(with_roles, monkeypatch, *words)
    assert "given before" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "words", "is_refused"),
    [
        (False, [], True),
        (False, ["--no-template-labels"], False),
        (False, ["--template-labels"], False),
        (True, [], False),
        (True, ["--no-template-labels"], False),
    ],
)
async def test_labels_are_put_back_again_only_if_that_is_typed(
    with_roles: TinyApi,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    *,
    before: bool,
    is_refused: bool,
) -> None:
    manifests = InstallPlan(template_labels=before).manifests()
    [spec] = [
        one["spec"]
        for one in manifests
        if (one["kind"], one["metadata"]["name"]) == ("Deployment", names.WEBHOOK)
    ]
    await with_roles.update(DEPLOYMENTS.path(names.NAMESPACE), names.WEBHOOK, spec=spec)
    typed_words = ["install", IMAGE, "--dry-run", "--no-scale", ROLES_AGAIN, *words]
    await typed(with_roles, monkeypatch, *typed_words)
    said = capsys.readouterr().err
    assert ("--no-template-labels is missing: " in said) == is_refused, said
    assert ("add --template-labels instead" in said) == is_refused


async def test_roles_go_if_that_is_asked_for(
    with_roles: TinyApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["install", IMAGE, "--dry-run", "--no-scale", "--remove-overlay=user-roles"]
    await typed(with_roles, monkeypatch, *words)
    seen = capsys.readouterr()
    assert "deleted     ClusterRole mpijob-elastic-edit" in seen.out, seen.err


async def test_an_overlay_is_given_or_removed(
    with_roles: TinyApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["install", "--overlay=user-roles", "--remove-overlay=user-roles"]
    assert await typed(with_roles, monkeypatch, *words) == Exit.USAGE
    assert "--remove-overlay: user-roles is given, too" in capsys.readouterr().err
