"""The ClusterRoles for users give what the commands use, and the table of the page says so."""

from dataclasses import replace

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from mpijob_elastic import names
from mpijob_elastic.cli import app, rights
from mpijob_elastic.cli.rights import UserRight
from mpijob_elastic.install import overlays
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.install.objects import Manifest
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube import errors
from scripts import user_rights_table
from tests.product.cli.test_commands import typed

AGGREGATES = "rbac.authorization.k8s.io/aggregate-to-"
# Commands of an administrator, who has all rights, and those that ask no API server for objects.
OF_NO_USER = {
    "install",
    "uninstall",
    "controller",
    "webhook",
    "version",
    "upgrade",
    "status",
    "help",
}


def added() -> list[Manifest]:
    """The objects that only the overlay has."""
    default = {str(one["metadata"]["name"]) for one in overlays.rendered(overlays.DEFAULT)}
    rendered = overlays.rendered(Overlay.USER_ROLES)
    return [one for one in rendered if one["metadata"]["name"] not in default]


def cluster_role(name: str) -> Manifest:
    [found] = [
        one for one in added() if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", name)
    ]
    return found


def rules_of(role: Manifest) -> list[UserRight]:
    return [
        UserRight(group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


@pytest.mark.parametrize("name", [rights.VIEW, rights.EDIT])
def test_a_role_gives_what_commands_use_each_right_once(name: str) -> None:
    assert sorted(rules_of(cluster_role(name))) == sorted(rights.given(name))


def test_who_views_writes_nothing_and_looks_into_no_pod() -> None:
    assert {right.verb for right in rules_of(cluster_role(rights.VIEW))} == {"get", "list", "watch"}
    assert not [right for right in rights.given(rights.VIEW) if right.resource == "pods/exec"]
    assert rights.given(rights.VIEW) < rights.given(rights.EDIT)


@pytest.mark.parametrize(
    ("name", "into"), [(rights.VIEW, {"view", "edit", "admin"}), (rights.EDIT, {"edit", "admin"})]
)
def test_a_role_is_a_part_of_those_of_kubernetes(name: str, into: set[str]) -> None:
    labels = cluster_role(name)["metadata"]["labels"]
    found = {key.removeprefix(AGGREGATES): on for key, on in labels.items() if AGGREGATES in key}
    assert found == dict.fromkeys(into, "true")


def readers(manifests: list[Manifest]) -> list[str]:
    """The groups that are bound in our namespace."""
    return [
        subject["name"]
        for one in manifests
        if one["kind"] == "RoleBinding"
        for subject in one["subjects"]
        if subject["kind"] == "Group"
    ]


@pytest.mark.parametrize(
    ("group", "groups"),
    [
        ("system:authenticated", ["system:authenticated"]),
        ("ml@example.com", ["ml@example.com"]),
        ("", []),
    ],
)
def test_who_reads_the_lease_is_chosen(group: str, groups: list[str]) -> None:
    """On GKE everybody who may log in is every Google account."""
    plan = InstallPlan(overlays=(Overlay.USER_ROLES,))
    assert readers(replace(plan, lease_readers=group).manifests()) == groups
    assert readers(plan.manifests()) == ["system:authenticated"]
    assert readers(InstallPlan().manifests()) == []


def test_readers_of_the_lease_need_the_overlay() -> None:
    words = ("install", "--print", "--image=a:1", "--lease-readers=")
    done = typed(*words)
    assert done.exit_code == 2
    assert "--lease-readers: needs --overlay user-roles" in done.output
    assert "mpijob-elastic-view" in typed(*words, "--overlay=user-roles").output


def test_everybody_may_get_one_lease() -> None:
    others = [one for one in added() if one["kind"] != "ClusterRole"]
    assert {one["kind"]: one["metadata"]["namespace"] for one in others} == {
        "Role": names.NAMESPACE,
        "RoleBinding": names.NAMESPACE,
    }
    [role] = [one for one in others if one["kind"] == "Role"]
    [rule] = role["rules"]
    assert (rule["resources"], rule["verbs"]) == (["leases"], ["get"])
    assert rule["resourceNames"] == [names.LEASE]


#: Overlays that an installation may choose without choosing the roles.
OTHER_OVERLAYS = [overlays.DEFAULT, *sorted(set(Overlay) - {Overlay.USER_ROLES})]


@pytest.mark.parametrize("overlay", OTHER_OVERLAYS)
def test_nobody_gets_rights_by_default(overlay: str) -> None:
    text = str(overlays.rendered(overlay))
    assert AGGREGATES not in text
    assert "system:authenticated" not in text


def test_each_command_of_users_has_a_row() -> None:
    program = get_command(app)
    assert isinstance(program, TyperGroup)
    shown = {name for name, each in program.commands.items() if not each.hidden}
    ours = (name for name in rights.COMMANDS if not name.startswith(("kubectl", "upgrade")))
    rows = {name.partition(" ")[0] for name in ours}
    assert rows == shown - OF_NO_USER


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    """`make docs` writes it."""
    assert user_rights_table.PAGE.read_text() == user_rights_table.page()


def refused(message: str) -> errors.Forbidden:
    return errors.Forbidden(status=403, reason="Forbidden", message=message)


RBAC = 'x is forbidden: User "u" cannot {} resource "{}" in API group "{}"{}'
IN_ML = ' in the namespace "ml"'


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            refused(RBAC.format("list", "mpijobs", "kubeflow.org", IN_ML)),
            "your account may not list mpijobs.kubeflow.org in namespace ml; the ClusterRole "
            "mpijob-elastic-view gives this right",
        ),
        (
            refused(RBAC.format("create", "pods/exec", "", IN_ML)),
            "your account may not create pods/exec in namespace ml; the ClusterRole "
            "mpijob-elastic-edit gives this right",
        ),
        (
            refused(RBAC.format("list", "roles", "rbac.authorization.k8s.io", IN_ML)),
            "your account may not list roles.rbac.authorization.k8s.io in namespace ml",
        ),
        (
            refused(RBAC.format("list", "mpijobs", "kubeflow.org", " at the cluster scope")),
            "your account may not list mpijobs.kubeflow.org in all namespaces",
        ),
        (refused("admission webhook said no"), "admission webhook said no"),
        (errors.Unreachable("no\n  answer"), "no answer"),
    ],
)
def test_a_missing_right_is_one_sentence(error: errors.KubeError, words: str) -> None:
    assert rights.in_words(error) == words
    assert bool(rights.missing_right(error)) == words.startswith("your account")


@pytest.mark.parametrize(
    ("typed_words", "where", "words"),
    [
        # Whoever lacks the first right is told at once of the role that the command needs.
        (
            "scaleout train",
            IN_ML,
            " in namespace ml; the ClusterRole mpijob-elastic-edit gives all rights that "
            "`scaleout` needs",
        ),
        (
            "set bounds train",
            IN_ML,
            " in namespace ml; the ClusterRole mpijob-elastic-edit gives all rights that "
            "`set bounds` needs",
        ),
        (
            "list",
            IN_ML,
            " in namespace ml; the ClusterRole mpijob-elastic-view gives all rights that "
            "`get` needs",
        ),
        (
            "get -A",
            " at the cluster scope",
            " in all namespaces: name one by -n NAMESPACE, or ask for a ClusterRoleBinding to "
            "mpijob-elastic-view",
        ),
        ("upgrade preflight", " at the cluster scope", " in all namespaces"),
    ],
)
def test_the_role_that_is_named_gives_all_that_the_command_needs(
    typed_words: str, where: str, words: str
) -> None:
    error = refused(RBAC.format("list", "mpijobs", "kubeflow.org", where))
    command = rights.command_of(typed_words.split())
    said = rights.missing_right(error, command)
    assert said == f"your account may not list mpijobs.kubeflow.org{words}"


@pytest.mark.parametrize("command", rights.COMMANDS)
def test_a_role_gives_all_that_each_command_needs(command: str) -> None:
    assert rights.role_of(rights.COMMANDS[command].needed)


@pytest.mark.parametrize(
    ("line", "of"),
    [
        ("mpijobs.kubeflow.org/scale: get", UserRight("kubeflow.org", "mpijobs/scale", "get")),
        ("pods.metrics.k8s.io: list", UserRight("metrics.k8s.io", "pods", "list")),
        ("pods/exec: create", UserRight("", "pods/exec", "create")),
    ],
)
def test_a_right_is_read_as_it_is_written(line: str, of: UserRight) -> None:
    assert rights.rights(line) == {of}
    assert line == f"{of.of}: {of.verb}"
