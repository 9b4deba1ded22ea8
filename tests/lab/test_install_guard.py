"""The admission policies let the two accounts do what they do, and refuse what their rights alone would allow."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.errors import LabError
from lab.install import Installed
from mpijob_elastic import names
from mpijob_elastic.act import end_execs, launcher_execs
from mpijob_elastic.act.worker_probes import END as END_RANKS
from mpijob_elastic.act.worker_probes import SCRIPT, TELL
from mpijob_elastic.kube import errors
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.exec import exec_in_pod
from mpijob_elastic.kube.resources import (
    AUTOSCALERS,
    CONFIG_MAPS,
    MPI_JOBS,
    MUTATING_WEBHOOKS,
    POD_GROUPS,
    PODS,
    QUEUE_UNITS,
    ROLES,
    SECRETS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from mpijob_elastic.kube.writer import JSON_PATCH, MERGE_PATCH, ApiWriter
from mpijob_elastic.model import kubexec
from mpijob_elastic.model.bounds import MOST_WORKERS
from mpijob_elastic.model.execs import Exec
from tests.builders import KUBEXEC
from tests.lab.kube_queue import served
from tests.lab.versions import needs
from tests.lab.waiting import PATIENCE

pytestmark = [pytest.mark.lab, needs("ValidatingAdmissionPolicy")]
JOB = "train"
LABELS = {names.LABEL_GROUP_NAME: names.GROUP, names.LABEL_JOB_NAME: JOB}
APP = {names.LABEL_APP: JOB}
LAUNCHER, WORKER = names.launcher(JOB), names.worker(JOB, 0)
CONFIG = names.config_map(JOB)
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
# What a real job's ConfigMap is like with 1,000 workers.
HOSTFILE = names.hostfile([names.worker(JOB, index) for index in range(1000)], slots=8)


@dataclass(frozen=True, kw_only=True)
class Account:
    """Does things in a namespace with the token of one of our ServiceAccounts."""

    client: ApiWriter
    namespace: str

    async def patches(self, resource: Resource, name: str, patch: object) -> None:
        path = resource.path(self.namespace, name)
        form = JSON_PATCH if isinstance(patch, list) else MERGE_PATCH
        await self.client.patch_object(path, body=patch, content_type=form)

    async def patches_status(self, name: str, patch: object) -> None:
        path = MPI_JOBS.path(self.namespace, name, "status")
        await self.client.patch_object(path, body=patch, content_type=MERGE_PATCH)

    async def deletes(self, pod: str, *, dry_run: bool = False) -> None:
        query = {"dryRun": "All"} if dry_run else None
        await self.client.delete_object(PODS.path(self.namespace, pod), query=query)

    async def executes(self, pod: str, command: list[str]) -> str:
        result = await exec_in_pod(self.client, self.namespace, pod, container="main", command=command, timeout=10)
        return result.stdout


@contextmanager
def refused(policy: str) -> Iterator[None]:
    with pytest.raises(errors.Forbidden, match=f"ValidatingAdmissionPolicy '{policy}' with binding"):
        yield


@pytest.fixture
async def controller(cluster: Cluster, installed: Installed, namespace: str) -> AsyncIterator[Account]:
    """The controller, in a namespace with one job's objects and foreign ones beside them."""
    create(cluster, namespace, [mpi_job()])
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", namespace, "-o", "jsonpath={.metadata.uid}")
    create(cluster, namespace, [*jobs_objects(owner(uid)), *foreign_objects()])
    async with await connect(user_agent="test", kubeconfig=installed.controller_kubeconfig) as client:
        account = Account(client=client, namespace=namespace)
        await policies_act(account)
        yield account


async def policies_act(account: Account) -> None:
    """A new policy takes a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await account.deletes("foreign", dry_run=True)
            except errors.Forbidden:
                return
            await asyncio.sleep(0.05)


async def test_pods_only_the_launchers_touch(controller: Account) -> None:
    await controller.patches(PODS, LAUNCHER, annotations({names.REFRESHED: "one"}))
    await controller.patches(PODS, LAUNCHER, annotations({names.REFRESHED: None}))
    for patch in (
        annotations({names.STATUS: "x"}),
        annotations({"kept": "no"}),
        annotations({"kept": None}),
        {"metadata": {"labels": {names.LABEL_JOB_ROLE: names.ROLE_WORKER}}},
        {"metadata": {"labels": {names.LABEL_JOB_ROLE: None}}},
        {"metadata": {"finalizers": ["x.example/y"]}},
        {"metadata": {"ownerReferences": None}},
        [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}],
    ):
        with refused("mpijob-elastic-pods"):
            await controller.patches(PODS, LAUNCHER, patch)
    with refused("mpijob-elastic-pods"):
        await controller.patches(PODS, "foreign", annotations({names.REFRESHED: "one"}))


async def test_the_webhook_only_marks_workers_and_evicts_nobody(installed: Installed, controller: Account) -> None:
    policy, requested = "mpijob-elastic-evictions", "requested 2026-11-23T00:00:00Z"
    async with await connect(user_agent="test", kubeconfig=installed.webhook_kubeconfig) as client:
        webhook = Account(client=client, namespace=controller.namespace)
        await webhook.patches(PODS, WORKER, annotations({names.EVICTION: requested}))
        await controller.patches(PODS, WORKER, annotations({names.EVICTION: "released 2026-11-23T00:00:00Z"}))
        await webhook.patches(PODS, WORKER, annotations({names.EVICTION: requested, "another.plugin/adds": "x"}))
        for patch in (
            annotations({names.EVICTION: "released 2026-11-23T00:00:00Z"}),
            annotations({names.EVICTION: None}),
            annotations({names.REFRESHED: "x"}),
            annotations({"another.plugin/adds": "y"}),
            {"metadata": {"labels": {names.LABEL_JOB_ROLE: names.ROLE_LAUNCHER}}},
            {"metadata": {"finalizers": ["x.example/y"]}},
            {"metadata": {"ownerReferences": None}},
            [{"op": "replace", "path": "/spec/containers/0/image", "value": "evil"}],
        ):
            with refused(policy):
                await webhook.patches(PODS, WORKER, patch)
        for other in (LAUNCHER, "foreign"):
            with refused(policy):
                await webhook.patches(PODS, other, annotations({names.EVICTION: requested}))
        body = {**kind("policy/v1", "Eviction"), "metadata": {"name": WORKER}}
        path = PODS.path(webhook.namespace, WORKER, "eviction")
        await client.create_object(path, body=body, query={"dryRun": "All"})
        with refused(policy):
            await client.create_object(path, body=body)


async def test_of_a_pods_spec_only_our_scheduling_gates(cluster: Cluster, controller: Account) -> None:
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", controller.namespace, "-o", "jsonpath={.metadata.uid}")
    gates = [{"name": gate} for gate in ("x.example/theirs", "mpijob-elastic/other", names.GATE_SUSPENDED)]
    gated = pod(names.worker(JOB, 1), LABELS)
    gated["metadata"]["ownerReferences"] = [owner(uid)]
    gated["spec"]["schedulingGates"] = gates
    create(cluster, controller.namespace, [gated])
    path = "/spec/schedulingGates"
    for patch in (
        [{"op": "replace", "path": path, "value": gates[1:]}],
        [{"op": "remove", "path": path}],
        [{"op": "add", "path": "/spec/nodeSelector", "value": {"a": "b"}}],
        [{"op": "remove", "path": f"{path}/2"}, {"op": "add", "path": "/spec/nodeSelector", "value": {"a": "b"}}],
        [{"op": "remove", "path": f"{path}/2"}, {"op": "replace", "path": "/spec/containers/0/image", "value": "x"}],
        [{"op": "remove", "path": f"{path}/2"}, {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 1}],
    ):
        with refused("mpijob-elastic-pods"):
            await controller.patches(PODS, names.worker(JOB, 1), patch)
    await controller.patches(PODS, names.worker(JOB, 1), [{"op": "replace", "path": path, "value": gates[:1]}])


async def test_of_the_launchers_only_one_that_is_restarted_is_ended(cluster: Cluster, controller: Account) -> None:
    def ends(seconds: int) -> list[dict[str, Any]]:
        return [{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": seconds}]

    for name in (LAUNCHER, WORKER):  # the launcher restarts always, as these pods have no restartPolicy of their own
        with refused("mpijob-elastic-pods"):
            await controller.patches(PODS, name, ends(1 if name == WORKER else 60))
    await controller.patches(PODS, LAUNCHER, ends(1))


async def test_pods_only_of_jobs_are_deleted(controller: Account) -> None:
    with refused("mpijob-elastic-pods"):
        await controller.deletes("foreign")
    await controller.deletes(WORKER)


async def test_exec_only_the_five_commands_each_where_it_belongs(cluster: Cluster, controller: Account) -> None:
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
            await controller.executes(pod, command)
    if cluster.exec_offered:
        pods = (f"pod/{WORKER}", f"pod/{LAUNCHER}")
        cluster.kubectl("wait", "-n", controller.namespace, *pods, "--for=condition=Ready", "--timeout=240s")
        assert await controller.executes(WORKER, PROBE) == "idle\n"
        assert await controller.executes(WORKER, TOLD) == "told\n"
        assert await controller.executes(WORKER, ENDED) == "told\n"
        assert (await controller.executes(LAUNCHER, launcher_execs.COMMAND)).startswith("main ")
        assert await controller.executes(LAUNCHER, END) == "gone\ngone\n"


async def test_exec_no_input(cluster: Cluster, installed: Installed, controller: Account) -> None:
    command = ("exec", "-i", "-n", controller.namespace, WORKER, "--", *PROBE)
    with pytest.raises(LabError, match="ValidatingAdmissionPolicy 'mpijob-elastic-exec' with binding"):
        cluster.kubectl(*command, stdin="id\n", kubeconfig=installed.controller_kubeconfig)


async def test_config_maps_only_the_host_lists_and_the_memory(controller: Account) -> None:
    hosts = [names.worker(JOB, 0), names.host(names.worker(JOB, 11), 12)]
    for script in (names.discover_hosts(hosts, slots=8), names.discover_hosts([], slots=1)):
        data = {names.KEY_DISCOVER_HOSTS: script, names.KEY_HOSTFILE: HOSTFILE.replace("slots=8", "slots=4")}
        await controller.patches(CONFIG_MAPS, CONFIG, {**annotations({names.MEMORY: "{}"}), "data": data})
    # Once, and never back.
    await controller.patches(CONFIG_MAPS, CONFIG, {"data": {names.KEY_KUBEXEC: kubexec.mapped(KUBEXEC)}})
    for patch in (
        {"data": {names.KEY_KUBEXEC: "evil"}},
        {"data": {names.KEY_KUBEXEC: KUBEXEC}},
        {"data": {names.KEY_KUBEXEC: f"{kubexec.mapped(KUBEXEC)}\n"}},
        {"data": {names.KEY_KUBEXEC: None}},
        {"data": {"more": "x"}},
        {"data": {names.KEY_HOSTFILE: None}},
        {"binaryData": {"more": "eA=="}},
        {"immutable": True},
        annotations({names.STATUS: "x"}),
        {"metadata": {"labels": {"app": None}}},
        {"metadata": {"ownerReferences": None}},
        *({"data": {names.KEY_DISCOVER_HOSTS: script}} for script in NO_SCRIPTS),
        *({"data": {names.KEY_HOSTFILE: hostfile}} for hostfile in NO_HOSTFILES),
    ):
        with refused("mpijob-elastic-config-maps"):
            await controller.patches(CONFIG_MAPS, CONFIG, patch)
    with refused("mpijob-elastic-config-maps"):
        await controller.patches(CONFIG_MAPS, "foreign", {"data": {names.KEY_KUBEXEC: kubexec.mapped(KUBEXEC)}})
    for name, key in (("foreign", names.KEY_HOSTFILE), ("kube-root-ca.crt", "ca.crt")):
        with refused("mpijob-elastic-config-maps"):
            await controller.patches(CONFIG_MAPS, name, {"data": {key: "evil"}})


async def test_config_maps_of_the_largest_job(controller: Account) -> None:
    """The API server bounds the cost of an expression; a script of 10,000 hosts under long names must be within."""
    pods = [names.worker(JOB, index) for index in range(MOST_WORKERS)]
    script = names.discover_hosts([names.host(pod, 999_999_999) for pod in pods], slots=2**31 - 1)
    data = {names.KEY_DISCOVER_HOSTS: script, names.KEY_HOSTFILE: names.hostfile(pods, slots=2**31 - 1)}
    await controller.patches(CONFIG_MAPS, CONFIG, {"data": data})


async def test_what_other_admission_plugins_add_is_let_through(controller: Account) -> None:
    """They run before the policies, so to these it looks as if we had sent it."""
    marks = {"policy.example.com/checked": "yes"}
    patch = {"metadata": {"annotations": marks, "labels": marks}}
    for resource, name in ((PODS, LAUNCHER), (CONFIG_MAPS, CONFIG), (ROLES, LAUNCHER), (MPI_JOBS, JOB)):
        await controller.patches(resource, name, patch)


async def test_roles_of_the_largest_job(controller: Account) -> None:
    workers = [names.worker(JOB, index) for index in range(MOST_WORKERS)]
    await controller.patches(ROLES, LAUNCHER, [{"op": "add", "path": "/rules/1/resourceNames", "value": workers}])


async def test_roles_only_workers_by_name(controller: Account) -> None:
    path = "/rules/1/resourceNames"
    workers = [names.worker(JOB, index) for index in range(1000)]
    await controller.patches(ROLES, LAUNCHER, [{"op": "add", "path": path, "value": workers}])
    for patch in (
        *([{"op": "add", "path": f"{path}/-", "value": name}] for name in NO_WORKERS),
        [{"op": "replace", "path": path, "value": []}],
        [{"op": "remove", "path": path}],
        [{"op": "add", "path": "/rules/0/resourceNames", "value": ["x-worker-1"]}],
        [{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}],
        [{"op": "remove", "path": "/rules/0"}],
        {"metadata": {"labels": {"app": None}}},
    ):
        with refused("mpijob-elastic-roles"):
            await controller.patches(ROLES, LAUNCHER, patch)
    with refused("mpijob-elastic-roles"):
        await controller.patches(ROLES, "foreign", [{"op": "replace", "path": "/rules", "value": []}])


async def test_roles_never_more_than_we_hold(controller: Account) -> None:
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    with pytest.raises(errors.Forbidden):
        await controller.patches(ROLES, LAUNCHER, [{"op": "add", "path": "/rules/-", "value": more}])


async def test_pod_groups_only_of_jobs_and_only_to_fewer_pods(cluster: Cluster, controller: Account) -> None:
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", controller.namespace, "-o", "jsonpath={.metadata.uid}")
    path = POD_GROUPS.path(controller.namespace)
    group = {**kind(POD_GROUPS.api_version, POD_GROUPS.kind), "spec": {"minMember": 5, "priorityClassName": "low"}}
    with refused("mpijob-elastic-pod-groups"):
        await controller.client.create_object(path, body={**group, "metadata": {"name": "other"}})
    metadata = {"name": JOB, "ownerReferences": [owner(uid)], "annotations": {"kept": "yes"}}
    await controller.client.create_object(path, body={**group, "metadata": metadata})
    await controller.patches(POD_GROUPS, JOB, {"spec": {"minMember": 3}})
    tuned = {**annotations({"volcano.sh/task-topology-affinity": "a"}), "spec": {"queue": "team"}}
    await controller.patches(POD_GROUPS, JOB, tuned)
    await controller.patches(POD_GROUPS, JOB, {**tuned, **annotations({"volcano.sh/task-topology-affinity": "b"})})
    match = "gang.scheduling.koordinator.sh/match-policy"
    for policy in ("waiting-and-running", "once-satisfied"):
        await controller.patches(POD_GROUPS, JOB, annotations({match: policy}))
    for patch in (
        annotations({match: None}),
        {"spec": {"minMember": 4}},
        {"spec": {"minMember": 0}},
        {"spec": {"priorityClassName": "high"}},
        {"spec": {"minResources": {"cpu": "1"}}},
        annotations({"kept": "no"}),
        annotations({"kept": None}),
        {"metadata": {"ownerReferences": None}},
    ):
        with refused("mpijob-elastic-pod-groups"):
            await controller.patches(POD_GROUPS, JOB, patch)


async def test_autoscalers_only_of_the_job_that_controls_them(cluster: Cluster, controller: Account) -> None:
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", controller.namespace, "-o", "jsonpath={.metadata.uid}")
    path, name = AUTOSCALERS.path(controller.namespace), names.autoscaler(JOB)
    target = kind(MPI_JOBS.api_version, MPI_JOBS.kind) | {"name": JOB}
    deployment = kind("apps/v1", "Deployment") | {"name": JOB}
    labels = {names.LABEL_MANAGED_BY: names.PROGRAM}
    metadata: dict[str, Any] = {"name": name, "labels": labels, "ownerReferences": [owner(uid)]}

    def hpa(scaled: dict[str, str], metadata: dict[str, Any]) -> dict[str, Any]:
        spec = {"scaleTargetRef": scaled, "maxReplicas": 3}
        return {**kind(AUTOSCALERS.api_version, AUTOSCALERS.kind), "metadata": metadata, "spec": spec}

    bad = [
        hpa(deployment, metadata),
        hpa({**target, "name": "other"}, metadata),
        hpa(target, {**metadata, "labels": {}}),
        hpa(target, {**metadata, "ownerReferences": []}),
    ]
    for body in bad:
        with refused("mpijob-elastic-autoscalers"):
            await controller.client.create_object(path, body=body)
    await controller.client.create_object(path, body=hpa(target, metadata))
    await controller.patches(AUTOSCALERS, name, {"spec": {"maxReplicas": 4}})
    for patch in (
        {"spec": {"scaleTargetRef": deployment}},
        {"metadata": {"labels": {names.LABEL_MANAGED_BY: None}}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"finalizers": ["example.com/keep"]}},
    ):
        with refused("mpijob-elastic-autoscalers"):
            await controller.patches(AUTOSCALERS, name, patch)
    of_a_user = hpa(target, {"name": "of-a-user"})
    cluster.kubectl("create", "-n", controller.namespace, "-f", "-", stdin=json.dumps(of_a_user))
    with refused("mpijob-elastic-autoscalers"):
        await controller.client.delete_object(AUTOSCALERS.path(controller.namespace, "of-a-user"))
    await controller.client.delete_object(AUTOSCALERS.path(controller.namespace, name))


async def test_queue_units_only_of_the_job_that_controls_them_and_never_a_grant(
    cluster: Cluster, controller: Account
) -> None:
    uid = cluster.kubectl("get", "mpijob", JOB, "-n", controller.namespace, "-o", "jsonpath={.metadata.uid}")
    path, name = QUEUE_UNITS.path(controller.namespace), names.queue_unit(JOB)
    metadata: dict[str, Any] = {"name": name, "annotations": {names.WORKERS: "2"}, "ownerReferences": [owner(uid)]}
    spec: dict[str, Any] = {"consumerRef": kind(MPI_JOBS.api_version, MPI_JOBS.kind) | {"name": JOB}}
    unit = {**kind(QUEUE_UNITS.api_version, QUEUE_UNITS.kind), "metadata": metadata, "spec": spec}

    async def marks(phase: str, status: str | None = "status") -> None:
        body = {"status": {"phase": phase}}
        found = QUEUE_UNITS.path(controller.namespace, name, status)
        await controller.client.patch_object(found, body=body, content_type=MERGE_PATCH)

    policy = "mpijob-elastic-queue-units"
    for subresource in (True, False):
        with served(cluster, subresource=subresource):
            for bad in (
                {"metadata": {**metadata, "name": "other"}},
                {"metadata": {**metadata, "ownerReferences": []}},
                {"spec": {"consumerRef": {**spec["consumerRef"], "name": "other"}}},
                *([] if subresource else [{"status": {"phase": "Dequeued"}}]),
            ):
                with refused(policy):
                    await controller.client.create_object(path, body={**unit, **bad})
            await controller.client.create_object(path, body={**unit, "status": {"phase": "Enqueued"}})
            part = "status" if subresource else None
            for phase in ("Dequeued", "Succeed", ""):
                with refused(policy):
                    await marks(phase, part)
            await marks("Running", part)
            for patch in (
                {"spec": {"resource": {"cpu": "0"}}},
                annotations({names.WORKERS: "1"}),
                {"metadata": {"ownerReferences": None}},
            ):
                with refused(policy):
                    await controller.patches(QUEUE_UNITS, name, patch)
            cluster.kubectl("create", "-n", controller.namespace, "-f", "-", stdin=json.dumps(of_a_user(unit)))
            with refused(policy):
                await controller.client.delete_object(QUEUE_UNITS.path(controller.namespace, "of-a-user"))
            await controller.client.delete_object(QUEUE_UNITS.path(controller.namespace, name))


def of_a_user(unit: dict[str, Any]) -> dict[str, Any]:
    return {**unit, "metadata": {"name": "of-a-user"}}


async def test_mpijobs_only_the_hold_of_kube_queue(cluster: Cluster, controller: Account) -> None:
    for before in ("true", "false", None):
        cluster.kubectl(
            "patch",
            "mpijob",
            JOB,
            "-n",
            controller.namespace,
            "--type=merge",
            f"--patch={json.dumps(annotations({names.KUBEQUEUE_SUSPEND: before}))}",
        )
        await controller.patches(MPI_JOBS, JOB, annotations({names.KUBEQUEUE_SUSPEND: "true"}))
        with refused("mpijob-elastic-mpijobs"):
            await controller.patches(MPI_JOBS, JOB, annotations({names.KUBEQUEUE_SUSPEND: "false"}))
        await controller.patches(MPI_JOBS, JOB, annotations({names.KUBEQUEUE_SUSPEND: None}))


async def test_mpijobs_only_what_we_say_of_them(controller: Account) -> None:
    await controller.patches(MPI_JOBS, JOB, annotations({names.STATUS: "waiting"}))
    await controller.patches(MPI_JOBS, JOB, annotations({names.STATUS: None}))
    for patch in (
        annotations({names.ENABLED: "true"}),
        annotations({"kept": "no"}),
        annotations({"kept": None}),
        {"metadata": {"labels": {"app": None}}},
        {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 9}}}},
    ):
        with refused("mpijob-elastic-mpijobs"):
            await controller.patches(MPI_JOBS, JOB, patch)


async def test_mpijobs_sizes_only_of_jobs_that_ask_for_it(cluster: Cluster, controller: Account) -> None:
    def patch(body: dict[str, Any]) -> None:
        where = ("-n", controller.namespace, "mpijob", JOB, "--type=merge", f"--patch={json.dumps(body)}")
        cluster.kubectl("patch", *where)

    async def sizes(*allowed: int, of: tuple[int, ...] = (1, 2, 4, 6, 7)) -> None:
        for replicas in of:
            size = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}}
            patch({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 5}}}})
            with nullcontext() if replicas in allowed else refused("mpijob-elastic-mpijobs"):
                await controller.patches(MPI_JOBS, JOB, size)

    await sizes()
    patch(annotations({names.SCALE_TIMEOUT: "60s"}))
    await sizes(1, 2, 4)
    patch(annotations({names.AUTOSCALE: "fill", names.MIN_REPLICAS: "2", names.MAX_REPLICAS: "6"}))
    await sizes(2, 4, 6)
    more = {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 4}}, "slotsPerWorker": 2}}
    with refused("mpijob-elastic-mpijobs"):
        await controller.patches(MPI_JOBS, JOB, more)
    patch(annotations({names.MAX_REPLICAS: "many"}))
    await sizes()
    patch(annotations({names.AUTOSCALE: "cpu=70", names.MAX_REPLICAS: "6", names.SCALE_TIMEOUT: None}))
    await sizes()


async def test_mpijobs_only_finished_ones_that_ask_for_it_are_deleted(cluster: Cluster, controller: Account) -> None:
    path = MPI_JOBS.path(controller.namespace, JOB)

    def patch(body: dict[str, Any], *more: str) -> None:
        where = ("-n", controller.namespace, "mpijob", JOB, "--type=merge", f"--patch={json.dumps(body)}")
        cluster.kubectl("patch", *where, *more)

    def end(condition: str, reason: str = "", completed: str | None = "2026-01-01T00:00:00Z") -> None:
        found = [{"type": condition, "status": "True", "reason": reason}]
        patch({"status": {"conditions": found, "completionTime": completed}}, "--subresource=status")

    async def delete(*preconditions: str) -> None:
        metadata = msgspec.json.decode(await controller.client.get(path))["metadata"]
        keep = {"resource_version": metadata["resourceVersion"], "uid": metadata["uid"]}
        await controller.client.delete_object(path, **{key: keep[key] for key in preconditions})

    async def refuses(*preconditions: str) -> None:
        with refused("mpijob-elastic-mpijob-deletions"):
            await delete(*preconditions)

    sure = ("uid", "resource_version")
    asks = annotations({names.RUN_POLICY: "true"})
    await refuses(*sure)
    patch({**asks, "spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}})
    for condition, reason, completed in (
        ("Running", "", "2026-01-01T00:00:00Z"),
        ("Failed", "MPIJobEvicted", "2026-01-01T00:00:00Z"),
        ("Failed", "MPIJobFailed", None),
    ):
        end(condition, reason, completed)
        await refuses(*sure)
    end("Failed", "MPIJobFailed")
    for spoiled in (
        annotations({names.RUN_POLICY: None}),
        annotations({names.RUN_POLICY: "false"}),
        {"spec": {"runPolicy": None}},
    ):
        patch(spoiled)
        await refuses(*sure)
        patch({**asks, "spec": {"runPolicy": {"ttlSecondsAfterFinished": 0}}})
    for preconditions in ((), ("uid",), ("resource_version",)):
        await refuses(*preconditions)
    await delete(*sure)


async def test_of_the_status_only_the_selector(cluster: Cluster, controller: Account) -> None:
    operators = {"conditions": [{"type": "Created", "status": "True"}], "replicaStatuses": {"Worker": {"active": 1}}}
    patch = json.dumps({"status": operators})
    where = ("-n", controller.namespace, JOB, "--subresource=status", "--type=merge")
    cluster.kubectl("patch", "mpijob", *where, f"--patch={patch}")
    refusals: list[dict[str, Any]] = [
        {"conditions": []},
        {"startTime": "2026-01-01T00:00:00Z"},
        {"replicaStatuses": {"Worker": {"active": 2}}},
        {"replicaStatuses": {"Worker": {"active": None}}},
        {"replicaStatuses": {"Launcher": {"active": 1}}},
        {"replicaStatuses": {"Worker": {"selector": "app=other"}}},
        {"replicaStatuses": None},
    ]
    for status in refusals:
        with refused("mpijob-elastic-mpijob-status"):
            await controller.patches_status(JOB, {"status": status})
    selector = {"selector": names.worker_selector(JOB)}
    await controller.patches_status(JOB, {"status": {"replicaStatuses": {"Worker": selector}}})


async def test_secrets_only_the_certificates(installed: Installed, controller: Account) -> None:
    other = {"metadata": {"name": "other"}, "type": "Opaque"}
    account = {"kubernetes.io/service-account.name": names.CONTROLLER}
    token = {
        "metadata": {"name": names.CERTIFICATE_SECRET, "annotations": account},
        "type": "kubernetes.io/service-account-token",
    }
    async with await connect(user_agent="test", kubeconfig=installed.webhook_kubeconfig) as webhook:
        for body in (other, token):
            with refused("mpijob-elastic-secrets"):
                await webhook.create_object(SECRETS.path(names.NAMESPACE), body={**body, **kind("v1", "Secret")})


@pytest.mark.parametrize("resource", [MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS])
async def test_of_the_webhook_configurations_only_the_bundle(
    installed: Installed, controller: Account, resource: Resource
) -> None:
    path = resource.path(name=names.WEBHOOK_CONFIGURATION)
    async with await connect(user_agent="test", kubeconfig=installed.webhook_kubeconfig) as client:
        hook = "/webhooks/0"
        bundle = {"op": "add", "path": f"{hook}/clientConfig/caBundle", "value": "eA=="}
        query = {"dryRun": "All"}
        await client.patch_object(path, body=[bundle], content_type=JSON_PATCH, query=query)
        another = {"op": "copy", "from": hook, "path": "/webhooks/-"}
        refusals: list[dict[str, object]] = [
            {"op": "replace", "path": f"{hook}/clientConfig/url", "value": "https://127.0.0.1:1/"},
            {"op": "add", "path": f"{hook}/rules/0/resources/-", "value": "secrets"},
            {"op": "replace", "path": f"{hook}/rules/0/operations", "value": ["DELETE"]},
            {"op": "replace", "path": f"{hook}/failurePolicy", "value": "Fail"},
            {"op": "replace", "path": f"{hook}/timeoutSeconds", "value": 30},
            {"op": "remove", "path": f"{hook}/namespaceSelector"},
            {"op": "add", "path": f"{hook}/matchConditions", "value": [{"name": "never", "expression": "false"}]},
            {"op": "add", "path": f"{hook}/objectSelector", "value": {"matchLabels": {"x": "y"}}},
            {"op": "remove", "path": hook},
            {"op": "move", "from": hook, "path": "/webhooks/1"},
            {"op": "remove", "path": "/webhooks"},
            {"op": "add", "path": "/metadata/labels/x", "value": "y"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["x.example/y"]},
        ]
        for change in refusals:
            with refused("mpijob-elastic-webhook-configurations"):
                await client.patch_object(path, body=[change], content_type=JSON_PATCH, query=query)
        for number, found in enumerate(msgspec.json.decode(await client.get(path))["webhooks"]):
            url, field = found["clientConfig"]["url"], f"/webhooks/{number}/clientConfig/url"
            origin, may = "/".join(url.split("/")[:3]), found["name"] == names.EVICTIONS_HOOK
            secret = f"/evict/{'0' * 64}"
            for value in (
                "https://127.0.0.1:1" + secret,
                f"{origin}/evict/1",
                f"{origin}/validated",
            ):
                with refused("mpijob-elastic-webhook-configurations"):
                    change = {"op": "replace", "path": field, "value": value}
                    await client.patch_object(path, body=[change], content_type=JSON_PATCH, query=query)
            with nullcontext() if may else refused("mpijob-elastic-webhook-configurations"):
                change = {"op": "replace", "path": field, "value": origin + secret}
                await client.patch_object(path, body=[change], content_type=JSON_PATCH, query=query)
        renamed = {"op": "replace", "path": f"{hook}/name", "value": "more.webhook.mpijob-elastic"}
        with refused("mpijob-elastic-webhook-configurations"):
            await client.patch_object(path, body=[another, renamed], content_type=JSON_PATCH, query=query)


def kind(api_version: str, name: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": name}


def annotations(values: dict[str, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": values}}


def create(cluster: Cluster, namespace: str, bodies: list[dict[str, Any]]) -> None:
    stdin = json.dumps({**kind("v1", "List"), "items": bodies})
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=stdin)


def owner(uid: str) -> dict[str, Any]:
    return {**kind("kubeflow.org/v1", "MPIJob"), "name": JOB, "uid": uid, "controller": True}


def mpi_job() -> dict[str, Any]:
    replicas = {role: {"replicas": 1, "template": {"spec": {"containers": []}}} for role in ("Launcher", "Worker")}
    return {
        **kind("kubeflow.org/v1", "MPIJob"),
        "metadata": {"name": JOB, "annotations": {"kept": "yes"}, "labels": APP},
        "spec": {"mpiReplicaSpecs": replicas},
    }


def pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels, "annotations": {"kept": "yes"}}
    spec = {"containers": [{"name": "main", "image": "none"}]}
    return {**kind("v1", "Pod"), "metadata": metadata, "spec": spec}


def config_map(name: str) -> dict[str, Any]:
    data = {names.KEY_HOSTFILE: HOSTFILE, names.KEY_KUBEXEC: KUBEXEC}
    return {**kind("v1", "ConfigMap"), "metadata": {"name": name, "labels": APP}, "data": data}


def role(name: str) -> dict[str, Any]:
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"], "resourceNames": [WORKER]},
    ]
    return {**kind("rbac.authorization.k8s.io/v1", "Role"), "metadata": {"name": name, "labels": APP}, "rules": rules}


def jobs_objects(reference: dict[str, Any]) -> list[dict[str, Any]]:
    bodies = [
        pod(LAUNCHER, {**LABELS, names.LABEL_JOB_ROLE: names.ROLE_LAUNCHER}),
        pod(WORKER, {**LABELS, names.LABEL_JOB_ROLE: names.ROLE_WORKER}),
        config_map(CONFIG),
        role(LAUNCHER),
    ]
    return [{**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}} for body in bodies]


def foreign_objects() -> list[dict[str, Any]]:
    return [pod("foreign", LABELS), config_map("foreign"), role("foreign")]
