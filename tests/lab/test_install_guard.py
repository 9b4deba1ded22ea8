"""The admission policies let the two accounts do what they do, and refuse what their rights alone would allow."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from lab.operator import objects
from lab.operator.objects import UID, Object
from mpijob_elastic import names
from mpijob_elastic.act import end_execs, launcher_execs
from mpijob_elastic.act.worker_probes import END as END_RANKS
from mpijob_elastic.act.worker_probes import SCRIPT, TELL
from mpijob_elastic.capabilities.autoscaling.api import AUTOSCALE, AUTOSCALERS, SCALE_TIMEOUT, autoscaler_name
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.gangs.api import VOLCANO_POD_GROUPS
from mpijob_elastic.capabilities.kube_queue.api import KUBEQUEUE_SUSPEND, QUEUE_UNITS, UNIT_WORKERS, queue_unit_name
from mpijob_elastic.capabilities.run_policy.facts import RUN_POLICY
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import (
    CONFIG_MAPS,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    PODS,
    ROLES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.kubexec import Exec
from tests.builders import KUBEXEC
from tests.lab.capabilities.kube_queue.kube_queue import served
from tests.lab.versions import needs
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
JOB = "train"
LAUNCHER, WORKER, GATED = names.launcher(JOB), names.worker(JOB, 0), names.worker(JOB, 1)
CONFIG = names.config_map(JOB)
DRY_RUN = {"dryRun": "All"}
PROBE, TOLD, ENDED = (["/bin/sh", "-c", script] for script in (SCRIPT, TELL, END_RANKS))
# No process has so high a number.
NO_EXEC = Exec(pid=4_194_305, ticks=5000, pod=WORKER, started_at=0.0)
END = end_execs.command([NO_EXEC, NO_EXEC])
# Other words in its places.
NOT_TO_END = (
    (2, f"{end_execs.SCRIPT}id\n"),
    (3, "$(id)"),
    (4, f"0 8 {WORKER}"),
    (5, f"-1 8 {WORKER}"),
    (5, "7 8"),
    (5, f"7 * {WORKER}"),
    (5, f"7 8 9 {WORKER}"),
    (4, "7 8 other-worker-0"),
    (5, "7 8 other-worker-0"),
    (5, f"7 8 {JOB}-launcher"),
    (5, f"7 8 {WORKER}*"),
    (5, f"7 8 x-{WORKER}"),
    (5, f"7 8 {WORKER}\n"),
)
NO_SCRIPTS = (
    "",
    "#!/bin/sh",
    "#!/bin/bash\n",
    "#!/bin/sh\nid\n",
    f"#!/bin/sh\necho {WORKER}:1",
    f"#!/bin/sh\necho {WORKER}\n",
    f"#!/bin/sh\necho {WORKER}:1 2\n",
    f"#!/bin/sh\necho {WORKER}:1; id\n",
    f"#!/bin/sh\necho {WORKER}:1\n\n",
    f"#!/bin/sh\necho {WORKER}:$(id)\n",
    f"#!/bin/sh\necho {WORKER}:0\n",
    f"#!/bin/sh\necho {WORKER}.r0:1\n",
    f"#!/bin/sh\necho {WORKER}.x:1\n",
    f"#!/bin/sh\necho {LAUNCHER}:1\n",
    f"#!/bin/sh\necho other-{WORKER}:1\n",
    "#!/bin/sh\necho other-worker-0:1\n",
    f"#!/bin/sh\necho {JOB}-worker-00:1\n",
    # What stands for the beginning of a line in the policy.
    "#!/bin/sh\nW0:1\n",
    f"#!/bin/sh\necho {WORKER}:1\nW0:1\n",
    f"#!/bin/sh\n echo {WORKER}:1\n",
    f"#!/bin/sh\r\necho {WORKER}:1\n",
    f"x\n#!/bin/sh\necho {WORKER}:1\n",
)
NO_HOSTFILES = (
    "x",
    "W0 slots=1\n",
    f"{WORKER}\n",
    f"{WORKER} slots=0\n",
    f"{WORKER} slots=1",
    f"{WORKER} slots=1 max_slots=2\n",
    f"{LAUNCHER} slots=1\n",
    "other-worker-0 slots=1\n",
)
NO_WORKERS = (
    "database-0",
    "other-worker-0",
    f"x-{WORKER}",
    f"{WORKER}0x",
    f"{JOB}-worker-01",
    f"{JOB}-worker-",
    LAUNCHER,
)

THEIRS, ANOTHERS, OURS = ({"name": gate} for gate in ("x.example/theirs", "mpijob-elastic/other", names.GATE_SUSPENDED))


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request of an account, `ok` if it goes through; UID in its body stands for that of the job."""

    ok: bool
    by: str
    method: str
    resource: Resource
    name: str = ""
    part: str | None = None
    body: Any = None
    query: dict[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class Accounts:
    """Controller, webhook and administrator, and what they send to a namespace with one job's objects."""

    clients: dict[str, ApiWriter]
    namespace: str
    uid: str

    async def goes_through(self, sent: Sent, policy: str) -> bool:
        """Tell whether it does; raise what is no refusal of that policy."""
        client, body = self.clients[sent.by], json.loads(json.dumps(sent.body).replace(UID, self.uid))
        path = sent.resource.path(self.namespace, sent.name, sent.part)
        try:
            if sent.method == "create":
                await client.create_object(path, body=body, query=sent.query)
            elif sent.method == "delete":
                # A request with a body has its options there, and the server looks for them nowhere else.
                await client.delete_object(path, options={"dryRun": ["All"]} if sent.query else None)
            else:
                form = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
                await client.patch_object(path, body=body, content_type=form, query=sent.query)
        except errors.Forbidden as error:
            if f"ValidatingAdmissionPolicy '{policy}' with binding" not in str(error):
                raise
            return False
        return True

    async def expect(self, policy: str, *requests: Sent) -> None:
        """Send these in order, and hold the answers against what is expected."""
        assert [sent for sent in requests if await self.goes_through(sent, policy) is not sent.ok] == []


def typed(resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def patched(
    ok: bool, resource: Resource, name: str, *bodies: Any, by: str = "controller", part: str | None = None
) -> list[Sent]:
    return [Sent(ok=ok, by=by, method="patch", resource=resource, name=name, part=part, body=body) for body in bodies]


def created(ok: bool, resource: Resource, *bodies: Any, by: str = "controller") -> list[Sent]:
    return [Sent(ok=ok, by=by, method="create", resource=resource, body=typed(resource) | body) for body in bodies]


def deleted(ok: bool, resource: Resource, name: str) -> Sent:
    return Sent(ok=ok, by="controller", method="delete", resource=resource, name=name)


def by_administrator(body: Any, part: str | None = None) -> Sent:
    """A change of the job, after which something else holds."""
    [change] = patched(True, MPI_JOBS, JOB, body, by="administrator", part=part)
    return change


@pytest.fixture
async def accounts(
    cluster: Cluster, client: ApiWriter, installed: Installed, namespace: str
) -> AsyncIterator[Accounts]:
    create(cluster, namespace, [mpi_job(namespace)])
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
    create(
        cluster,
        namespace,
        json.loads(json.dumps([*jobs_objects(namespace), *foreign_objects(namespace)]).replace(UID, uid)),
    )
    async with AsyncExitStack() as stack:
        kubeconfigs = {"controller": installed.controller_kubeconfig, "webhook": installed.webhook_kubeconfig}
        clients = {
            account: await stack.enter_async_context(await connect(user_agent="test", kubeconfig=kubeconfig))
            for account, kubeconfig in kubeconfigs.items()
        }
        found = Accounts(clients={**clients, "administrator": client}, namespace=namespace, uid=uid)
        await policies_act(found)
        yield found


async def policies_act(accounts: Accounts) -> None:
    """A new policy takes a moment."""
    tried = Sent(ok=False, by="controller", method="delete", resource=PODS, name="foreign", query=DRY_RUN)
    async with asyncio.timeout(PATIENCE):
        while await accounts.goes_through(tried, "mpijob-elastic-pods"):
            await asyncio.sleep(0.05)


def annotations(values: dict[str, str | None]) -> Object:
    return {"metadata": {"annotations": values}}


def added(path: str, value: Any, *, instead: bool = False) -> Object:
    return {"op": "replace" if instead else "add", "path": path, "value": value}


def removed(path: str) -> Object:
    return {"op": "remove", "path": path}


def size(replicas: int) -> Object:
    return {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}


TOUCHED, REQUESTED = (
    annotations({names.REFRESHED: "one"}),
    annotations({EVICTION_MARK: "requested 2026-11-23T00:00:00Z for 361s"}),
)
RELEASED = annotations({EVICTION_MARK: "released 2026-11-23T00:00:00Z"})
UNOWNED: Object = {"metadata": {"ownerReferences": None}}
HELD: Object = {"metadata": {"finalizers": ["x.example/y"]}}
# Other admission plugins run before the policies, so to these it looks as if we had sent it.
MARKS = {"policy.example.com/checked": "yes"}
MARKED: Object = {"metadata": {"annotations": MARKS, "labels": MARKS}}
UNLABELLED: Object = {"metadata": {"labels": {"app": None}}}
EVIL_IMAGE = [added("/spec/containers/0/image", "evil", instead=True)]


def in_role(role: str | None) -> Object:
    return {"metadata": {"labels": {names.LABEL_JOB_ROLE: role}}}


GATES, FIRST_GATE, NODES = (
    "/spec/schedulingGates",
    f"{'/spec/schedulingGates'}/2",
    added("/spec/nodeSelector", {"a": "b"}),
)
ENDED_AT_ONCE, ENDED_LATER = ([added("/spec/activeDeadlineSeconds", seconds)] for seconds in (1, 60))
PODS_SENT = [
    *patched(True, PODS, LAUNCHER, TOUCHED, annotations({names.REFRESHED: None}), MARKED),
    *patched(
        False,
        PODS,
        LAUNCHER,
        annotations({names.STATUS: "x"}),
        annotations({"kept": "no"}),
        annotations({"kept": None}),
    ),
    *patched(False, PODS, LAUNCHER, in_role(names.ROLE_WORKER), in_role(None), HELD, UNOWNED, EVIL_IMAGE),
    *patched(False, PODS, "foreign", TOUCHED),
    # Of a pod's spec only our gates.
    *patched(False, PODS, GATED, [added(GATES, [ANOTHERS, OURS], instead=True)], [removed(GATES)], [NODES]),
    *patched(False, PODS, GATED, [removed(FIRST_GATE), NODES], [removed(FIRST_GATE), *EVIL_IMAGE]),
    *patched(False, PODS, GATED, [removed(FIRST_GATE), *ENDED_AT_ONCE]),
    *patched(True, PODS, GATED, [added(GATES, [THEIRS], instead=True)]),
    # Only a launcher that is restarted, as this is without a restartPolicy of its own, and only at once.
    *patched(False, PODS, LAUNCHER, ENDED_LATER),
    *patched(False, PODS, WORKER, ENDED_AT_ONCE),
    *patched(True, PODS, LAUNCHER, ENDED_AT_ONCE),
    deleted(False, PODS, "foreign"),
    deleted(True, PODS, WORKER),
]
EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": WORKER}}
ANOTHER_PLUGIN: dict[str, str | None] = {"another.plugin/adds": "x"}
EVICTIONS_SENT = [
    *patched(True, PODS, WORKER, REQUESTED, by="webhook"),
    *patched(True, PODS, WORKER, RELEASED),
    *patched(True, PODS, WORKER, annotations(REQUESTED["metadata"]["annotations"] | ANOTHER_PLUGIN), by="webhook"),
    *patched(False, PODS, WORKER, RELEASED, annotations({EVICTION_MARK: None}), TOUCHED, by="webhook"),
    *patched(False, PODS, WORKER, annotations({"another.plugin/adds": "y"}), by="webhook"),
    *patched(False, PODS, WORKER, in_role(names.ROLE_LAUNCHER), HELD, UNOWNED, EVIL_IMAGE, by="webhook"),
    *patched(False, PODS, LAUNCHER, REQUESTED, by="webhook"),
    *patched(False, PODS, "foreign", REQUESTED, by="webhook"),
    *(
        Sent(
            ok=bool(query),
            by="webhook",
            method="create",
            resource=PODS,
            name=WORKER,
            part="eviction",
            body=EVICTION,
            query=query,
        )
        for query in (DRY_RUN, None)
    ),
]


def data(**keys: Any) -> Object:
    named = {"script": names.KEY_DISCOVER_HOSTS, "hostfile": names.KEY_HOSTFILE, "kubexec": names.KEY_KUBEXEC}
    return {"data": {named.get(key, key): value for key, value in keys.items()}}


HOSTS = [names.worker(JOB, 0), names.host(names.worker(JOB, 11), 12)]
HOSTFILE = names.hostfile([names.worker(JOB, index) for index in range(1000)], slots=4)
MAPPED = kubexec.mapped(KUBEXEC)
EVERY_WORKER = [names.worker(JOB, index) for index in range(MOST_WORKERS)]
LONG_HOSTS = [names.host(pod, 999_999_999) for pod in EVERY_WORKER]
CONFIG_MAPS_SENT = [
    *(
        sent
        for hosts, slots in ((HOSTS, 8), ([], 1))
        for body in (data(script=names.discover_hosts(hosts, slots=slots), hostfile=HOSTFILE),)
        for sent in patched(
            True, CONFIG_MAPS, CONFIG, {**annotations({names.MEMORY: "{}", names.HISTORY: "[]"}), **body}
        )
    ),
    # Once, and never back.
    *patched(True, CONFIG_MAPS, CONFIG, data(kubexec=MAPPED), MARKED),
    *patched(False, CONFIG_MAPS, CONFIG, *(data(kubexec=text) for text in ("evil", KUBEXEC, f"{MAPPED}\n", None))),
    *patched(False, CONFIG_MAPS, CONFIG, data(more="x"), data(hostfile=None), {"binaryData": {"more": "eA=="}}),
    *patched(False, CONFIG_MAPS, CONFIG, {"immutable": True}, annotations({names.PHASE: "x"}), UNLABELLED, UNOWNED),
    *patched(False, CONFIG_MAPS, CONFIG, *(data(script=script) for script in NO_SCRIPTS)),
    *patched(False, CONFIG_MAPS, CONFIG, *(data(hostfile=hostfile) for hostfile in NO_HOSTFILES)),
    *patched(False, CONFIG_MAPS, "foreign", data(kubexec=MAPPED), data(hostfile="evil")),
    *patched(False, CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "evil"}}),
    # The API server bounds the cost of an expression: the script of the largest job under long names must be within.
    *patched(
        True,
        CONFIG_MAPS,
        CONFIG,
        data(
            script=names.discover_hosts(LONG_HOSTS, slots=2**31 - 1),
            hostfile=names.hostfile(EVERY_WORKER, slots=2**31 - 1),
        ),
    ),
]
LISTED = "/rules/1/resourceNames"
ROLES_SENT = [
    *patched(True, ROLES, LAUNCHER, [added(LISTED, EVERY_WORKER)], MARKED),
    *patched(False, ROLES, LAUNCHER, *([added(f"{LISTED}/-", name)] for name in NO_WORKERS)),
    *patched(False, ROLES, LAUNCHER, [added(LISTED, [], instead=True)], [removed(LISTED)], [removed("/rules/0")]),
    *patched(False, ROLES, LAUNCHER, [added("/rules/0/resourceNames", ["x-worker-1"])]),
    *patched(False, ROLES, LAUNCHER, [added("/rules/0/verbs", ["get"], instead=True)], UNLABELLED),
    *patched(False, ROLES, "foreign", [added("/rules", [], instead=True)]),
]
MATCH = "gang.scheduling.koordinator.sh/match-policy"
GROUP: Object = {"spec": {"minMember": 5, "priorityClassName": "low"}}
TUNED, RETUNED = (
    {**annotations({"volcano.sh/task-topology-affinity": affinity}), "spec": {"queue": "team"}} for affinity in "ab"
)


def owned(name: str, **metadata: Any) -> Object:
    reference = {**typed(MPI_JOBS), "name": JOB, "uid": UID, "controller": True}
    return {"metadata": {"name": name, "ownerReferences": [reference], **metadata}}


POD_GROUPS_SENT = [
    *created(False, VOLCANO_POD_GROUPS, GROUP | {"metadata": {"name": "other"}}),
    *created(True, VOLCANO_POD_GROUPS, GROUP | owned(JOB, annotations={"kept": "yes"})),
    *patched(True, VOLCANO_POD_GROUPS, JOB, {"spec": {"minMember": 3}}, TUNED, RETUNED),
    *patched(
        True,
        VOLCANO_POD_GROUPS,
        JOB,
        *(annotations({MATCH: said}) for said in ("waiting-and-running", "once-satisfied")),
    ),
    *patched(
        False,
        VOLCANO_POD_GROUPS,
        JOB,
        annotations({MATCH: None}),
        {"spec": {"minMember": 4}},
        {"spec": {"minMember": 0}},
    ),
    *patched(
        False,
        VOLCANO_POD_GROUPS,
        JOB,
        {"spec": {"priorityClassName": "high"}},
        {"spec": {"minResources": {"cpu": "1"}}},
    ),
    *patched(False, VOLCANO_POD_GROUPS, JOB, annotations({"kept": "no"}), annotations({"kept": None}), UNOWNED),
]


HPA, MANAGED = autoscaler_name(JOB), {names.LABEL_MANAGED_BY: names.PROGRAM}
TARGET, DEPLOYMENT = {**typed(MPI_JOBS), "name": JOB}, {"apiVersion": "apps/v1", "kind": "Deployment", "name": JOB}


def scaling(target: Object, metadata: Object) -> Object:
    return {"spec": {"scaleTargetRef": target, "maxReplicas": 3}, **metadata}


AUTOSCALERS_SENT = [
    *created(False, AUTOSCALERS, scaling(DEPLOYMENT, owned(HPA, labels=MANAGED))),
    *created(False, AUTOSCALERS, scaling(TARGET | {"name": "other"}, owned(HPA, labels=MANAGED))),
    *created(False, AUTOSCALERS, scaling(TARGET, owned(HPA, labels={}))),
    *created(False, AUTOSCALERS, scaling(TARGET, {"metadata": {"name": HPA, "labels": MANAGED}})),
    *created(True, AUTOSCALERS, scaling(TARGET, owned(HPA, labels=MANAGED))),
    *patched(True, AUTOSCALERS, HPA, {"spec": {"maxReplicas": 4}}),
    *patched(False, AUTOSCALERS, HPA, {"spec": {"scaleTargetRef": DEPLOYMENT}}, UNOWNED, HELD),
    *patched(False, AUTOSCALERS, HPA, {"metadata": {"labels": {names.LABEL_MANAGED_BY: None}}}),
    *created(True, AUTOSCALERS, scaling(TARGET, {"metadata": {"name": "of-a-user"}}), by="administrator"),
    deleted(False, AUTOSCALERS, "of-a-user"),
    deleted(True, AUTOSCALERS, HPA),
]


def sizes(*allowed: int, of: Object) -> list[Sent]:
    """Whether the controller may set these sizes once the job says this."""
    tried = [
        (by_administrator(size(5)), *patched(replicas in allowed, MPI_JOBS, JOB, size(replicas)))
        for replicas in (1, 2, 4, 6, 7)
    ]
    return [by_administrator(of), *(sent for pair in tried for sent in pair)]


def held(value: str | None) -> Object:
    return annotations({KUBEQUEUE_SUSPEND: value})


MPI_JOBS_SENT = [
    *patched(True, MPI_JOBS, JOB, annotations({names.STATUS: "waiting"}), annotations({names.STATUS: None}), MARKED),
    *patched(
        True, MPI_JOBS, JOB, annotations({names.PHASE: "Scaling", names.CHANGE: "{}"}), annotations({names.PHASE: None})
    ),
    *patched(False, MPI_JOBS, JOB, annotations({names.ENABLED: "true"}), annotations({"kept": "no"})),
    *patched(False, MPI_JOBS, JOB, annotations({names.HISTORY: "[]"})),
    *patched(False, MPI_JOBS, JOB, annotations({"kept": None}), UNLABELLED, size(9)),
    # The hold of KubeQueue.
    *(
        sent
        for before in ("true", "false", None)
        for sent in (
            by_administrator(held(before)),
            *patched(True, MPI_JOBS, JOB, held("true")),
            *patched(False, MPI_JOBS, JOB, held("false")),
            *patched(True, MPI_JOBS, JOB, held(None)),
        )
    ),
    # Sizes of jobs that ask for it.
    *sizes(of={}),
    *sizes(1, 2, 4, of=annotations({SCALE_TIMEOUT: "60s"})),
    *sizes(2, 4, 6, of=annotations({AUTOSCALE: "fill", names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "6"})),
    *patched(False, MPI_JOBS, JOB, {"spec": size(4)["spec"] | {"slotsPerWorker": 2}}),
    *sizes(of=annotations({names.MAX_REPLICAS: "many"})),
    *sizes(of=annotations({AUTOSCALE: "cpu=70", names.MAX_REPLICAS: "6", SCALE_TIMEOUT: None})),
]
COUNTED = {"conditions": [{"type": "Created", "status": "True"}], "replicaStatuses": {"Worker": {"active": 1}}}


def counts(**worker: Any) -> Object:
    return {"replicaStatuses": {"Worker": worker}}


SELECTOR = counts(selector=names.worker_selector(JOB))
STATUS_SENT = [
    by_administrator({"status": COUNTED}, "status"),
    *(
        sent
        for ok, status in (
            (False, {"conditions": []}),
            (False, {"startTime": "2026-01-01T00:00:00Z"}),
            (False, counts(active=2)),
            (False, counts(active=None)),
            (False, {"replicaStatuses": {"Launcher": {"active": 1}}}),
            (False, counts(selector="app=other")),
            (False, {"replicaStatuses": None}),
            (True, SELECTOR),
        )
        for sent in patched(ok, MPI_JOBS, JOB, {"status": status}, part="status")
    ),
]


@pytest.mark.parametrize(
    ("policy", "requests"),
    [
        pytest.param("mpijob-elastic-pods", PODS_SENT, id="the launcher's touch, our gates, pods of jobs"),
        pytest.param("mpijob-elastic-evictions", EVICTIONS_SENT, id="the webhook marks workers and evicts nobody"),
        pytest.param("mpijob-elastic-config-maps", CONFIG_MAPS_SENT, id="host lists and memory"),
        pytest.param("mpijob-elastic-roles", ROLES_SENT, id="workers by name", marks=pytest.mark.thorough),
        pytest.param("mpijob-elastic-pod-groups", POD_GROUPS_SENT, id="PodGroups of jobs, to fewer pods"),
        pytest.param("mpijob-elastic-autoscalers", AUTOSCALERS_SENT, id="HPAs of the job that controls them"),
        pytest.param("mpijob-elastic-mpijobs", MPI_JOBS_SENT, id="what we say of jobs, and sizes if asked"),
        pytest.param("mpijob-elastic-mpijob-status", STATUS_SENT, id="the selector of a status"),
    ],
)
async def test_only_what_we_write_goes_through(accounts: Accounts, policy: str, requests: list[Sent]) -> None:
    await accounts.expect(policy, *requests)


async def test_roles_never_more_than_we_hold(accounts: Accounts) -> None:
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    [sent] = patched(False, ROLES, LAUNCHER, [added("/rules/-", more)])
    with pytest.raises(errors.Forbidden):
        await accounts.goes_through(sent, "none")


UNIT_NAME = queue_unit_name(JOB)
CONSUMER: Object = {"spec": {"consumerRef": {**typed(MPI_JOBS), "name": JOB}}}
OF_A_POD = {"apiVersion": "v1", "kind": "Pod", "name": WORKER, "uid": "u"}
UNIT: Object = {**CONSUMER, **owned(UNIT_NAME, annotations={UNIT_WORKERS: "2"})}


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["status", None], ids=["a status of its own", "no subresource"])
async def test_queue_units_only_of_the_job_that_controls_them_and_never_a_grant(
    cluster: Cluster, accounts: Accounts, part: str | None
) -> None:
    of_others = {"spec": {"consumerRef": CONSUMER["spec"]["consumerRef"] | {"name": "other"}}}
    granted: list[Object] = [] if part else [UNIT | {"status": {"phase": "Dequeued"}}]
    phases = [{"status": {"phase": phase}} for phase in ("Dequeued", "Succeed", "")]
    with served(cluster, subresource=bool(part)):
        await accounts.expect(
            "mpijob-elastic-queue-units",
            *created(False, QUEUE_UNITS, UNIT | owned("other"), UNIT | {"metadata": {"name": UNIT_NAME}}),
            *created(False, QUEUE_UNITS, UNIT | of_others, *granted),
            *created(True, QUEUE_UNITS, UNIT | {"status": {"phase": "Enqueued"}}),
            *patched(False, QUEUE_UNITS, UNIT_NAME, *phases, part=part),
            *patched(True, QUEUE_UNITS, UNIT_NAME, {"status": {"phase": "Running"}}, part=part),
            *patched(False, QUEUE_UNITS, UNIT_NAME, {"spec": {"resource": {"cpu": "0"}}}, UNOWNED),
            *patched(False, QUEUE_UNITS, UNIT_NAME, annotations({UNIT_WORKERS: "1"})),
            *patched(True, QUEUE_UNITS, UNIT_NAME, [added("/metadata/ownerReferences/-", OF_A_POD)]),
            *patched(False, QUEUE_UNITS, UNIT_NAME, [added("/metadata/ownerReferences/-", OF_A_POD | {"kind": "Job"})]),
            *created(True, QUEUE_UNITS, UNIT | {"metadata": {"name": "of-a-user"}}, by="administrator"),
            deleted(False, QUEUE_UNITS, "of-a-user"),
            deleted(True, QUEUE_UNITS, UNIT_NAME),
        )


SURE = ("uid", "resource_version")
LATE: Object = {"spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}}
ASKS = {**annotations({RUN_POLICY: "true"}), **LATE}


def ended(condition: str, reason: str = "", completed: str | None = "2026-01-01T00:00:00Z") -> Sent:
    conditions = [{"type": condition, "status": "True", "reason": reason}]
    return by_administrator({"status": {"conditions": conditions, "completionTime": completed}}, "status")


async def test_mpijobs_only_finished_ones_that_ask_for_it_are_deleted(accounts: Accounts) -> None:
    policy, path = "mpijob-elastic-mpijob-deletions", MPI_JOBS.path(accounts.namespace, JOB)

    async def delete(*preconditions: str) -> None:
        controller = accounts.clients["controller"]
        metadata = msgspec.json.decode(await controller.get(path))["metadata"]
        keep = {"resource_version": metadata["resourceVersion"], "uid": metadata["uid"]}
        await controller.delete_object(path, **{key: keep[key] for key in preconditions})

    async def refuses(*changes: Sent, preconditions: tuple[str, ...] = SURE) -> None:
        await accounts.expect("none", *changes)
        with pytest.raises(errors.Forbidden, match=f"ValidatingAdmissionPolicy '{policy}' with binding"):
            await delete(*preconditions)

    await refuses()
    await refuses(by_administrator(ASKS), ended("Running"))
    await refuses(ended("Failed", "MPIJobEvicted"))
    await refuses(ended("Failed", "MPIJobFailed", None))
    for spoiled in (
        *(annotations({RUN_POLICY: said}) for said in (None, "false")),
        {"spec": {"runPolicy": None}},
    ):
        await refuses(ended("Failed", "MPIJobFailed"), by_administrator(ASKS), by_administrator(spoiled))
    for preconditions in ((), ("uid",), ("resource_version",)):
        await refuses(by_administrator(ASKS), preconditions=preconditions)
    await delete(*SURE)


async def executes(accounts: Accounts, pod: str, command: list[str]) -> str:
    client = accounts.clients["controller"]
    result = await exec_in_pod(client, accounts.namespace, pod, container="main", command=command, timeout=PATIENCE)
    return result.stdout


async def test_exec_only_the_five_commands_each_where_it_belongs(cluster: Cluster, accounts: Accounts) -> None:
    for pod, command in (
        (WORKER, ["/bin/sh", "-c", "id"]),
        (WORKER, [*PROBE[:2], SCRIPT + "id\n"]),
        (WORKER, [*PROBE, "id"]),
        (WORKER, [*TOLD[:2], TELL.replace("ranks", "all")]),
        (LAUNCHER, PROBE),
        (WORKER, [*ENDED[:2], "kill -KILL -1"]),
        (LAUNCHER, TOLD),
        (LAUNCHER, ENDED),
        (LAUNCHER, ["/bin/sh", "-c", "id"]),
        (WORKER, launcher_execs.COMMAND),
        ("foreign", PROBE),
        ("foreign", launcher_execs.COMMAND),
        (WORKER, END),
        ("foreign", END),
        *((LAUNCHER, [*END[:at], word, *END[at + 1 :]]) for at, word in NOT_TO_END),
        (LAUNCHER, END[:-2]),
        (LAUNCHER, [*END, *END[4:] * 16]),
        (LAUNCHER, [*END, "id"]),
    ):
        # Who is refused a WebSocket is not told why; that it is not the rights, the last lines show.
        with pytest.raises(errors.Forbidden):
            await executes(accounts, pod, command)
    if cluster.exec_offered:
        pods = (f"pod/{WORKER}", f"pod/{LAUNCHER}")
        cluster.kubectl("wait", "-n", accounts.namespace, *pods, "--for=condition=Ready", "--timeout=240s")
        answers = (
            (WORKER, PROBE, "idle"),
            (WORKER, TOLD, "told"),
            (WORKER, ENDED, "told"),
            (LAUNCHER, END, "gone\ngone"),
        )
        for pod, command, says in answers:
            assert await executes(accounts, pod, command) == f"{says}\n"
        assert (await executes(accounts, LAUNCHER, launcher_execs.COMMAND)).startswith("main ")


async def test_exec_no_input(cluster: Cluster, installed: Installed, accounts: Accounts) -> None:
    command = ("exec", "-i", "-n", accounts.namespace, WORKER, "--", *PROBE)
    with pytest.raises(LabError, match="ValidatingAdmissionPolicy 'mpijob-elastic-exec' with binding"):
        cluster.kubectl(*command, stdin="id\n", kubeconfig=installed.controller_kubeconfig)


async def test_secrets_only_the_certificates(accounts: Accounts) -> None:
    token = {
        "metadata": {
            "name": names.CERTIFICATE_SECRET,
            "annotations": {"kubernetes.io/service-account.name": names.CONTROLLER},
        },
        "type": "kubernetes.io/service-account-token",
    }
    other = {"metadata": {"name": "other"}, "type": "Opaque"}
    ours = replace(accounts, namespace=names.NAMESPACE)
    await ours.expect("mpijob-elastic-secrets", *created(False, SECRETS, other, token, by="webhook"))


@pytest.mark.parametrize("resource", [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
async def test_of_the_webhook_configurations_only_the_bundle(accounts: Accounts, resource: Resource) -> None:
    client, hook = accounts.clients["webhook"], "/webhooks/0"
    path = resource.path(name=names.WEBHOOK_CONFIGURATION)

    async def changes(*patch: Object) -> None:
        await client.patch_object(path, body=[*patch], content_type=JSON_PATCH, query=DRY_RUN)

    async def refuses(*patch: Object) -> None:
        with pytest.raises(errors.Forbidden, match="'mpijob-elastic-webhook-configurations' with binding"):
            await changes(*patch)

    await changes(added(f"{hook}/clientConfig/caBundle", "eA=="))
    for change in (
        added(f"{hook}/clientConfig/url", "https://127.0.0.1:1/", instead=True),
        added(f"{hook}/rules/0/resources/-", "secrets"),
        added(f"{hook}/rules/0/operations", ["DELETE"], instead=True),
        added(f"{hook}/failurePolicy", "Fail", instead=True),
        added(f"{hook}/timeoutSeconds", 30, instead=True),
        removed(f"{hook}/namespaceSelector"),
        added(f"{hook}/matchConditions", [{"name": "never", "expression": "false"}]),
        added(f"{hook}/objectSelector", {"matchLabels": {"x": "y"}}),
        removed(hook),
        {"op": "move", "from": hook, "path": "/webhooks/1"},
        removed("/webhooks"),
        added("/metadata/labels/x", "y"),
        added("/metadata/finalizers", ["x.example/y"]),
    ):
        await refuses(change)
    await refuses(
        {"op": "copy", "from": hook, "path": "/webhooks/-"},
        added(f"{hook}/name", "more.webhook.mpijob-elastic", instead=True),
    )
    for number, found in enumerate(msgspec.json.decode(await client.get(path))["webhooks"]):
        field, secret = f"/webhooks/{number}/clientConfig/url", f"/evict/{'0' * 64}"
        origin = "/".join(found["clientConfig"]["url"].split("/")[:3])
        for value in (f"https://127.0.0.1:1{secret}", f"{origin}/evict/1", f"{origin}/validated"):
            await refuses(added(field, value, instead=True))
        may = found["name"] == names.EVICTIONS_HOOK
        await (changes if may else refuses)(added(field, origin + secret, instead=True))


def create(cluster: Cluster, namespace: str, bodies: list[Object]) -> None:
    stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies})
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=stdin)


def mpi_job(namespace: str, **facts: Any) -> Object:
    job = objects.mpi_job(
        name=JOB, namespace=namespace, **{"replicas": 1, "annotations": {"kept": "yes"}, "uid": UID, **facts}
    )
    job["metadata"]["labels"] = {names.LABEL_APP: JOB}
    return job


def pod(name: str, role: str = "", **spec: Any) -> Object:
    labels = {
        names.LABEL_GROUP_NAME: names.GROUP,
        names.LABEL_JOB_NAME: JOB,
        **({names.LABEL_JOB_ROLE: role} if role else {}),
    }
    metadata = {**(owned(name) if role else {"metadata": {"name": name}})["metadata"], "labels": labels}
    containers = [{"name": "main", "image": "none"}]
    return typed(PODS) | {
        "metadata": metadata | {"annotations": {"kept": "yes"}},
        "spec": {"containers": containers, **spec},
    }


def jobs_objects(namespace: str) -> list[Object]:
    """What the operator makes of the job, with pods that need nothing else, and a hostfile as of 1,000 workers."""
    made = [objects.config_map(mpi_job(namespace, replicas=1000, slots=8)), objects.role(mpi_job(namespace))]
    pods = [pod(LAUNCHER, names.ROLE_LAUNCHER), pod(WORKER, names.ROLE_WORKER)]
    return [*made, *pods, pod(GATED, names.ROLE_WORKER, schedulingGates=[THEIRS, ANOTHERS, OURS])]


def foreign_objects(namespace: str) -> list[Object]:
    return [pod("foreign"), *({**one, "metadata": {"name": "foreign"}} for one in jobs_objects(namespace)[:2])]
