"""What the preflight says of the rights to PodGroups."""

from dataclasses import replace
from typing import Any

import pytest

from mpijob_elastic.kube.writer import ApiWriter
from mpijob_elastic.model.gang import Gang
from mpijob_elastic.model.job import JobView, Ref
from tests.faults.faults import Answer, Request
from tests.faults.proxy import FaultProxy
from tests.faults.tiny_api import TinyApi
from upgrade import operators, pod_groups
from upgrade.findings import Finding, Verdict
from upgrade.operators import Account, Operator

VOLCANO, COSCHEDULING = "scheduling.volcano.sh", "scheduling.x-k8s.io"
FLAG = ("/opt/mpi-operator.v1", "--gang-scheduling=volcano")
REF = Ref(name="train", uid="1", resource_version="1")
JOB = JobView(namespace="ml", ref=REF, replicas=2, slots=1, spec_elastic=True, gang=Gang(scheduler="coscheduling"))


def operator(*command: str) -> Operator:
    found = operators.recognise("Deployment ops/mpi-operator", "mpi-operator:v0.2.3", command)
    assert found is not None
    return replace(found, account=Account(namespace="ops", name="mpi-operator"))


@pytest.fixture
def served(api: TinyApi) -> None:
    for version in (f"{VOLCANO}/v1beta1", f"{COSCHEDULING}/v1alpha1"):
        api.objects[f"/apis/{version}"] = {"name": version}


def may(api: TinyApi, *denied: str, user: str, namespace: str = "") -> list[Any]:
    """Let the API server deny this user these verbs; return the list of all that is asked."""
    asked = []

    def allows(spec: dict[str, Any]) -> bool:
        asked.append(spec)
        about = spec["resourceAttributes"]
        return not (spec["user"] == user and about["namespace"] == namespace and about["verb"] in denied)

    api.allows = allows
    return asked


def is_go(found: Finding, text: str) -> bool:
    return found.verdict is Verdict.GO and text in found.text


def is_care(found: Finding, *texts: str) -> bool:
    return found.verdict is Verdict.CARE and all(text in found.text for text in texts)


async def test_where_nobody_needs_them_nothing_is_asked(api: TinyApi, client: ApiWriter) -> None:
    asked = may(api, user="")
    ended = replace(JOB, finished=True)
    assert is_go(await pod_groups.look(client, [operator()], [ended, replace(JOB, gang=None)]), "no job needs them")
    assert asked == []


async def test_an_operator_with_the_flag_needs_the_definition(client: ApiWriter) -> None:
    found = await pod_groups.look(client, [operator(*FLAG)], [])
    assert is_care(found, "Deployment ops/mpi-operator", f"podgroups.{VOLCANO}/v1beta1 is not served: install Volcano")


@pytest.mark.usefixtures("served")
async def test_an_operator_with_the_flag_needs_the_rights(api: TinyApi, client: ApiWriter) -> None:
    asked = may(api, "list", "delete", user="system:serviceaccount:ops:mpi-operator")
    found = await pod_groups.look(client, [operator(*FLAG)], [])
    right = f"list, delete podgroups.{VOLCANO} in all namespaces (service account ops/mpi-operator)"
    assert is_care(found, f"no right to {right}: grant it, or remove the flag")
    assert sorted(spec["resourceAttributes"]["verb"] for spec in asked) == ["create", "delete", "list", "watch"]
    assert "system:serviceaccounts:ops" in asked[0]["groups"]
    of_one = await pod_groups.look(client, [operator(*FLAG, "-namespace", "ml")], [])
    assert is_go(of_one, "have the rights")


@pytest.mark.usefixtures("served")
async def test_the_controller_needs_the_rights_where_a_job_asks(api: TinyApi, client: ApiWriter) -> None:
    may(api, "create", user="system:serviceaccount:mpijob-elastic:mpijob-elastic-controller", namespace="ml")
    assert is_go(await pod_groups.look(client, [], [JOB]), "served")  # not installed: the upgrade grants them
    await api.create("/apis/apps/v1/namespaces/mpijob-elastic/deployments", "mpijob-elastic-controller")
    found = await pod_groups.look(client, [], [JOB])
    right = f"create podgroups.{COSCHEDULING} in namespace ml"
    assert is_care(found, "ml/train", right, "`mpijob-elastic upgrade apply` grants it")
    assert is_go(await pod_groups.look(client, [], [replace(JOB, namespace="other")]), "served")


async def test_a_job_that_asks_needs_the_definition(client: ApiWriter) -> None:
    found = await pod_groups.look(client, [], [JOB])
    assert is_care(found, "ml/train asks for a gang", "install coscheduling, or remove mpijob-elastic/gang")


async def test_kubernetes_serves_them_behind_gates_and_the_controller_makes_them_again(
    api: TinyApi, client: ApiWriter
) -> None:
    job = replace(JOB, gang=Gang(scheduler="kubernetes"))
    found = await pod_groups.look(client, [], [job])
    assert is_care(found, "so its pods start one by one: run Kubernetes 1.36 with the gates GenericWorkload and")
    api.objects["/apis/scheduling.k8s.io/v1alpha2"] = {"name": "v1alpha2"}
    may(api, "delete", user="system:serviceaccount:mpijob-elastic:mpijob-elastic-controller", namespace="ml")
    await api.create("/apis/apps/v1/namespaces/mpijob-elastic/deployments", "mpijob-elastic-controller")
    assert is_care(await pod_groups.look(client, [], [job]), "no right to delete podgroups.scheduling.k8s.io")


@pytest.mark.usefixtures("served")
async def test_without_the_right_to_ask_nothing_is_claimed(client: ApiWriter, proxy: FaultProxy) -> None:
    def reviews(request: Request) -> bool:
        return request.path.endswith("reviews")

    with proxy.inject(Answer(status=403), on=reviews):
        found = await pod_groups.look(client, [operator(*FLAG)], [])
    assert is_care(found, "unknown: this account may not ask what other accounts may do")
