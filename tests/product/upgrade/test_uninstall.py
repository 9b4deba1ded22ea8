"""A removal of the installation: what it says before it is confirmed, and that it looks at pods again."""

import pytest

from mpijob_elastic import names
from mpijob_elastic.capabilities.kueue.facts import WORKLOADS
from mpijob_elastic.install import Refused, role_bindings
from mpijob_elastic.install.removal import Quota, QuotaHolder
from mpijob_elastic.install.server import Found
from mpijob_elastic.kube.errors import Forbidden
from mpijob_elastic.kube.resources import DEPLOYMENTS, NAMESPACES, PODS, Resource
from mpijob_elastic.kube.writer import ApiWriter
from tests.doubles.api import TinyApi, refused
from tests.doubles.direct import Sent
from upgrade.traces import Traces
from upgrade.uninstall import Uninstallation

HELD = QuotaHolder(
    resource=WORKLOADS, namespace="ml", name="train-launcher", uid="u", job="ml/train", job_uid="j"
)
RUNNING = Quota(used=(HELD,))


@pytest.mark.parametrize(
    "traces", [None, Traces(), Traces(kept=("ml/train",))], ids=["alone", "traces", "a launcher"]
)
async def test_it_says_which_jobs_keep_their_quota(
    client: ApiWriter, traces: Traces | None
) -> None:
    planned = Uninstallation(
        client=client, found=[], takes_scale=False, traces=traces, quota=RUNNING
    )
    assert planned.is_empty
    assert [
        line
        for line in planned.stays()
        if "because their pods run: ml/train. It is free when" in line
    ]


@pytest.mark.parametrize("traces", [None, Traces(), Traces(kept=("ml/train",))])
async def test_annotations_of_users_are_among_what_stays(
    client: ApiWriter, traces: Traces | None
) -> None:
    planned = Uninstallation(
        client=client, found=[], takes_scale=False, traces=traces, quota=Quota()
    )
    said = " ".join(planned.stays())
    assert "stay" in said
    assert ("Annotations on MPIJobs that users wrote" in said) == (traces is not None)
    assert ("mpijob-elastic/min-replicas" in said) == (traces is not None)


async def test_pods_that_came_to_a_gate_after_the_question_are_seen(
    api: TinyApi, client: ApiWriter
) -> None:
    controller = await api.create(DEPLOYMENTS.path(names.NAMESPACE), names.CONTROLLER)
    uid = controller["metadata"]["uid"]
    found = [Found(resource=DEPLOYMENTS, namespace=names.NAMESPACE, name=names.CONTROLLER, uid=uid)]
    await api.create(
        PODS.path(), "train-launcher", spec={"schedulingGates": [{"name": names.GATE_QUEUED}]}
    )
    planned = Uninstallation(
        client=client, found=found, takes_scale=False, traces=None, quota=Quota()
    )
    with pytest.raises(
        Refused, match=r"gate of ours that nobody else takes off: /train-launcher\. For each"
    ):
        await planned.run(seconds=1, say=print)
    assert api.deletions == []


async def test_bindings_of_others_to_our_roles_are_named(api: TinyApi, client: ApiWriter) -> None:
    bindings, whole = (
        Resource(group=RBAC, version="v1", plural=f"{kind.lower()}s", kind=kind)
        for kind in ("RoleBinding", "ClusterRoleBinding")
    )
    edit = {"kind": "ClusterRole", "name": "mpijob-elastic-edit"}
    for namespace, name, role in (
        ("ml", "ann", edit),
        ("ml", "bob", {"kind": "ClusterRole", "name": "edit"}),
        ("ml", "own", {**edit, "kind": "Role"}),
    ):
        await api.create(bindings.path(namespace), name, roleRef=role)
    await api.create(whole.path(), "all", roleRef={**edit, "name": "mpijob-elastic-view"})
    ours = await api.create(whole.path(), "ours", roleRef=edit)
    going = [
        Found(resource=CLUSTER_ROLES, namespace="", name=f"mpijob-elastic-{role}", uid=role)
        for role in ("edit", "view")
    ]
    going.append(Found(resource=whole, namespace="", name="ours", uid=str(ours["metadata"]["uid"])))
    said = role_bindings.lines(await role_bindings.left(client, going))
    assert [line.partition(". ")[0] for line in said] == [
        "These bindings to the ClusterRole mpijob-elastic-edit stay, and give no right without it: "
        "RoleBinding ml/ann",
        "These bindings to the ClusterRole mpijob-elastic-view stay, and give no right without it: "
        "ClusterRoleBinding all",
    ]
    assert await role_bindings.left(client, going[2:]) == []


RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = Resource(group=RBAC, version="v1", plural="clusterroles", kind="ClusterRole")
WHY = "the platform team forbids it"


async def planned_for(
    api: TinyApi, client: ApiWriter, *kinds: Resource, keeps: Resource
) -> Uninstallation:
    """A removal of an object of each of these kinds, one of which a policy keeps."""

    def keeping(sent: Sent) -> None:
        if sent.method == "DELETE" and sent.path.endswith(f"/{keeps.plural}/{names.CONTROLLER}"):
            raise refused(403, "Forbidden", WHY)

    found = []
    for kind in kinds:
        inside = names.NAMESPACE if kind is DEPLOYMENTS else ""
        made = await api.create(kind.path(inside), names.CONTROLLER)
        one = Found(
            resource=kind, namespace=inside, name=names.CONTROLLER, uid=made["metadata"]["uid"]
        )
        found.append(one)
    api.hook = keeping
    return Uninstallation(
        client=client, found=found, takes_scale=False, traces=Traces(), quota=Quota()
    )


async def test_a_refusal_after_the_controller_has_gone_holds_up_nothing_and_is_told(
    api: TinyApi, client: ApiWriter
) -> None:
    planned = await planned_for(
        api, client, DEPLOYMENTS, CLUSTER_ROLES, NAMESPACES, keeps=CLUSTER_ROLES
    )
    said: list[str] = []
    left = await planned.run(seconds=1, say=lambda news: said.append(str(news)))
    name = names.CONTROLLER
    assert left == [f"Not deleted: ClusterRole {name}: 403 Forbidden: {WHY}"]
    assert [*api.objects] == [CLUSTER_ROLES.path(name=name)]


async def test_a_namespace_that_a_policy_keeps_is_not_waited_for(
    api: TinyApi, client: ApiWriter
) -> None:
    planned = await planned_for(api, client, DEPLOYMENTS, NAMESPACES, keeps=NAMESPACES)
    [left] = await planned.run(seconds=1, say=print)
    assert left == f"Not deleted: Namespace {names.CONTROLLER}: 403 Forbidden: {WHY}"


async def test_a_refusal_while_the_controller_is_there_ends_it(
    api: TinyApi, client: ApiWriter
) -> None:
    planned = await planned_for(api, client, DEPLOYMENTS, CLUSTER_ROLES, keeps=DEPLOYMENTS)
    with pytest.raises(Forbidden, match=WHY):
        await planned.run(seconds=1, say=print)
    assert len(api.objects) == 2
