"""Every object of ours gets its owners where OwnerReferencesPermissionEnforcement is on, as on OpenShift.

The plugin refuses a new owner on an object that the account may not delete, and blockOwnerDeletion
without the right to change the owner's finalizers:
https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#ownerreferencespermissionenforcement
"""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed, install_into
from lab.options import Options
from lab.replicas import Controller, Webhook
from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.autoscaling.facts import AUTOSCALE, AUTOSCALERS
from mpijob_elastic.capabilities.et_operator.facts import SCALE_INS, SCALE_OUTS
from mpijob_elastic.capabilities.gangs.facts import COSCHEDULING, COSCHEDULING_POD_GROUPS
from mpijob_elastic.capabilities.kube_queue.facts import KUBEQUEUE_SUSPEND, QUEUE_UNITS
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE, WORKLOADS
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from tests.lab.capabilities.et_operator.test_requests import BY_COUNT, ask, ended, read
from tests.lab.definitions import definition
from tests.lab.job import Job, Object
from tests.lab.on_demand import OnDemand
from tests.lab.scalable import scalable
from tests.lab.upgrades import established
from tests.lab.versions import needs
from tests.lab.waiting import seen

pytestmark = [pytest.mark.lab, pytest.mark.thorough, needs("ValidatingAdmissionPolicy")]

PLUGIN = "OwnerReferencesPermissionEnforcement"
QUICK = {"mpijob-elastic/drain-timeout": "1s"}
# What each capability that creates objects needs to make one for a job.
ASKING: dict[str, tuple[Resource, dict[str, Any]]] = {
    "autoscaling": (
        AUTOSCALERS,
        {
            "annotations": {
                AUTOSCALE: "cpu=70",
                names.MIN_REPLICAS: "1",
                names.MAX_REPLICAS: "4",
            }
        },
    ),
    "gangs": (COSCHEDULING_POD_GROUPS, {"annotations": {"mpijob-elastic/gang": COSCHEDULING}}),
    "kube_queue": (QUEUE_UNITS, {"annotations": {KUBEQUEUE_SUSPEND: "true"}}),
    "kueue": (WORKLOADS, {"job_labels": {LABEL_QUEUE: "team"}}),
}
# Capabilities that create no object of their own. et-operator's requests have tests of their own.
WITHOUT = {
    "avoided_nodes",
    "disruption",
    "et_operator",
    "history",
    "missed_fields",
    "run_policy",
    "stragglers",
}
# Pods become owners of these later, so that quota stays with pods of a deleted job.
ADOPTED = (QUEUE_UNITS, WORKLOADS)
OF_A_POD = {"apiVersion": "v1", "kind": "Pod", "name": "train-worker-0", "uid": "u"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A lab with the plugin, where every kind of ours is served from the beginning."""
    options = Options(admission_plugins=(PLUGIN,))
    with ExitStack() as stack:
        running = stack.enter_context(
            Cluster.start(name=f"pytest-owners-{os.getpid()}", options=options)
        )
        for kind in (COSCHEDULING_POD_GROUPS, QUEUE_UNITS, WORKLOADS):
            one = definition(kind, status=True)
            running.kubectl("create", "-f", "-", stdin=json.dumps(one))
            established(running, f"crd/{one['metadata']['name']}")
        stack.enter_context(scalable(running))
        yield running


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Installed:
    made = install_into(cluster, also=(Overlay.ET_OPERATOR,))
    for kind in (SCALE_INS, SCALE_OUTS):
        established(cluster, f"crd/{kind.plural}.{kind.group}")
    return made


@pytest.fixture
def elastic(
    cluster: Cluster, installed: Installed, webhook: Webhook, programs: OnDemand
) -> Controller:
    assert webhook.ready()
    return programs.get(
        "elastic",
        cluster,
        lambda: Controller.start(cluster, installed, "--component=et-operator"),
    )


@pytest.fixture
async def controller(installed: Installed) -> AsyncIterator[ApiWriter]:
    """A client with the controller's token."""
    async with await connect(
        user_agent="test", kubeconfig=installed.controller_kubeconfig
    ) as connected:
        yield connected


async def objects(job: Job, resource: Resource) -> list[Object]:
    found: list[Object] = msgspec.json.decode(await job.client.get(resource.path(job.namespace)))[
        "items"
    ]
    return found


async def run_granted(job: Job, unit: str) -> None:
    """Grant a QueueUnit, and wait until its job runs: only then does the unit get further owners."""
    await job.client.patch_object(
        QUEUE_UNITS.path(job.namespace, unit, "status"),
        body={"status": {"phase": "Dequeued"}},
        content_type=MERGE_PATCH,
    )
    await seen(
        lambda: objects(job, QUEUE_UNITS),
        lambda found: [one["status"]["phase"] for one in found] == ["Running"],
        "a QueueUnit whose job runs",
    )


def owners(found: Object) -> list[str]:
    return [one["name"] for one in found["metadata"].get("ownerReferences", [])]


def test_each_capability_is_known() -> None:
    folder = Path(capabilities.__file__).parent
    rooms = {one.parent.name for one in folder.glob("*/__init__.py")}
    assert rooms == {*ASKING, *WITHOUT}


def test_the_plugin_is_on(cluster: Cluster, namespace: str) -> None:
    """Somebody who may patch an object but not delete it gives it no owner."""
    inside = ("-n", namespace)
    rule = ("--verb=get,patch", "--resource=configmaps")
    cluster.kubectl("create", "role", "patches", *rule, *inside)
    cluster.kubectl("create", "rolebinding", "patches", "--role=patches", "--user=dev", *inside)
    cluster.kubectl("create", "configmap", "one", *inside)
    owner = {"metadata": {"ownerReferences": [OF_A_POD]}}
    patch = ("patch", "configmap", "one", "--as=dev", "--type=merge", f"-p={json.dumps(owner)}")
    with pytest.raises(LabError, match="cannot set an ownerRef on a resource you can't delete"):
        cluster.kubectl(*patch, *inside)


@pytest.mark.parametrize("capability", ASKING)
@pytest.mark.usefixtures("operator", "elastic")
async def test_what_a_capability_makes_belongs_to_its_job(
    job: Job, controller: ApiWriter, capability: str
) -> None:
    resource, parts = ASKING[capability]
    await job.create(replicas=2, **parts)
    [made, *_] = await seen(
        lambda: objects(job, resource), bool, f"{resource.kind} of {capability}"
    )
    assert owners(made)[0] == job.name
    assert "Refused" not in (await job.state()).notices
    if resource in ADOPTED:
        name = made["metadata"]["name"]
        if resource == QUEUE_UNITS:
            await run_granted(job, name)
        change = [{"op": "add", "path": "/metadata/ownerReferences/-", "value": OF_A_POD}]
        raw = await controller.patch_object(
            resource.path(job.namespace, name),
            body=change,
            content_type=JSON_PATCH,
            query={"dryRun": "All"},
        )
        assert owners(msgspec.json.decode(raw))[-1] == OF_A_POD["name"]


@pytest.mark.usefixtures("operator", "elastic")
async def test_scale_ins_and_scale_outs_are_answered_and_belong_to_the_job(job: Job) -> None:
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    for resource, parts in (
        (SCALE_OUTS, {"generateName": "out-", "toAdd": {"count": 1}, "timeout": 600}),
        (SCALE_INS, BY_COUNT),
    ):
        name = await ask(job, resource, **parts)
        assert (await ended(job, resource, name))[0] == "ScaleSucceeded"
        assert owners(await read(job, resource, name)) == [job.name]


@pytest.mark.usefixtures("operator", "elastic")
async def test_requests_are_answered_even_if_no_owner_may_be_set(
    job: Job, cluster: Cluster
) -> None:
    """As before the right to delete them, or under a policy of the cluster."""
    await job.create(replicas=2, annotations=QUICK)
    await job.settled(2)
    role = json.loads(cluster.kubectl("get", "clusterrole", RIGHTS, "-o", "json"))
    cluster.kubectl("patch", "clusterrole", RIGHTS, "--type=json", f"-p={json.dumps(NO_DELETE)}")
    try:
        may_not = (
            "auth",
            "can-i",
            "delete",
            f"{SCALE_OUTS.plural}.{SCALE_OUTS.group}",
            f"--as={names.CONTROLLER_USER}",
        )
        await seen(
            lambda: answered(cluster, *may_not), lambda said: said == "no", "the right is gone"
        )
        name = await ask(job, SCALE_OUTS, name="out", toAdd={"count": 1}, timeout=600)
        assert (await ended(job, SCALE_OUTS, name))[0] == "ScaleSucceeded"
        assert owners(await read(job, SCALE_OUTS, name)) == []
    finally:
        rules = [{"op": "replace", "path": "/rules", "value": role["rules"]}]
        cluster.kubectl("patch", "clusterrole", RIGHTS, "--type=json", f"-p={json.dumps(rules)}")


RIGHTS = "mpijob-elastic-et-operator"
NO_DELETE = [{"op": "replace", "path": "/rules/0/verbs", "value": ["list", "watch", "patch"]}]


async def answered(cluster: Cluster, *arguments: str) -> str:
    """What kubectl prints, though it ends with 1 for a `no`."""
    try:
        return cluster.kubectl(*arguments).strip()
    except LabError:
        return "no"
